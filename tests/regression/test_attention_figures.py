"""The figures the attention engine promises, on the generated RTL with the calibrated HBM model attached."""

import math

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.board import load_board
from sim.run import run

HEAD_DIM, TOKENS = 64, 1024


def normal_int8(shape, seed):
    x = np.random.default_rng(seed).normal(size=shape)
    step = np.abs(x).max() / 127
    return np.rint(x / step).astype(np.int8), np.float64(step)


def one_head(tokens, head_dim=HEAD_DIM, heads=1):
    tensors = {}
    for seed, name in enumerate("qkv"):
        tensors[name], tensors[f"{name}_scale"] = normal_int8((heads, tokens, head_dim), seed)
    return tensors


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """One head of 1,024 tokens on the U55C's default engine: 32 rows, 64 lanes, two arrays."""
    config = AttentionConfig()
    assert (config.rows, config.head_dim) == (32, 64)
    folder = tmp_path_factory.mktemp("one_head")
    return run("attention", config, load_board("u55c"), one_head(TOKENS), directory=folder)


def test_bit_exact(result):
    assert result.bit_exact


def test_multipliers_are_useful_from_start_to_done(result):
    assert result.report.work.mac_utilization_ratio >= 0.98


def test_bytes_follow_the_formula_exactly(result):
    passes = math.ceil(TOKENS / 32)
    size = TOKENS * HEAD_DIM
    traffic = result.report.traffic
    assert sum(port.useful_read_bytes for port in traffic.ports) == size + passes * 2 * size
    assert sum(port.useful_write_bytes for port in traffic.ports) == 2 * size
    assert traffic.bus_bytes == traffic.useful_bytes


def test_cycle_model_is_within_two_percent(result):
    assert abs(result.report.prediction.predicted_cycles_error_ratio) <= 0.02


def test_integer_arithmetic_is_within_two_thousandths_of_softmax(result):
    assert result.report.errors["relative_rms_error_int8_inputs"] <= 2e-3


def test_counters_agree_with_the_testbench(result):
    """From the start bit on the bus to the interrupt pin: a few cycles around what the kernel counts."""
    report = result.report
    assert 0 <= report.simulation.cycles_start_to_done - report.cycles.cycles_total <= 12
