"""Predictions of random attention launches of all modes against the RTL with the calibrated memory models."""

import numpy as np
import pytest

from hw.board import load_board
from sim.engines.attention.cases import CONFIGS, random_tensors
from sim.run.run import run

#: Cycles that any prediction may be off: the launches take some hundred, most of them memory's latency.
SLACK = 100


def compared(board_name, count, directory):
    """Run random launches of every configuration of a board; give cycles, and the sum of all errors."""
    simulated = wrong = 0
    for number, (name, config) in enumerate(CONFIGS):
        if name != board_name:
            continue
        for seed in range(1000, 1000 + count):
            tensors = random_tensors(np.random.default_rng([number, seed]), config)
            result = run("attention", config, load_board(name), tensors, seed=seed, directory=directory)
            assert result.bit_exact, (number, seed, result.mismatches)
            prediction, cycles = result.report.prediction, result.report.cycles.cycles_total
            assert prediction.predicted_read_error_bytes == 0, (number, seed)
            assert prediction.predicted_write_error_bytes == 0, (number, seed)
            error = abs(prediction.predicted_cycles - cycles)
            assert error <= SLACK + 0.2 * cycles, (number, seed)
            simulated += cycles
            wrong += error
    return simulated, wrong


@pytest.mark.parametrize("count", [25, pytest.param(100, marks=pytest.mark.soak)])
def test_predictions_of_random_launches(count, tmp_path):
    """Bytes exactly; the errors of all cycles add up to 2 % of these."""
    simulated, wrong = compared("u55c", count, tmp_path)
    assert wrong <= 0.02 * simulated


@pytest.mark.parametrize("count", [10, pytest.param(100, marks=pytest.mark.soak)])
def test_predictions_where_all_ports_share_a_channel(count, tmp_path):
    """Bytes exactly; cycles only roughly, for how ports disturb each other is not part of the model."""
    simulated, wrong = compared("zcu104", count, tmp_path)
    assert wrong <= 0.06 * simulated
