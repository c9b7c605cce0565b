"""The attention adapter: what it refuses, how it quantizes, how it lays tensors out."""

import re

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.board import load_board
from hw.errors import InputError
from sim.engines.attention import ADAPTER

CONFIG = AttentionConfig(rows=4, head_dim=32, tile_keys=16, ports_per_stream=1)


def floats(heads=2, kv_heads=1, queries=5, keys=7, size=32):
    rng = np.random.default_rng(0)
    return {
        "q": rng.normal(size=(heads, queries, size)),
        "k": rng.normal(size=(kv_heads, keys, size)),
        "v": rng.normal(size=(kv_heads, keys, size)),
    }


def changed(name, value):
    return lambda tensors: tensors | {name: value}


def without(name):
    return lambda tensors: {key: value for key, value in tensors.items() if key != name}


INT8 = np.zeros((2, 5, 32), np.int8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("v"), "tensor v must be given as [heads, tokens, 32], not 'missing'"),
        (changed("bias", np.zeros(3)), "tensor name must be one of "),
        (
            changed("q", np.zeros((2, 5, 32), np.int16)),
            "dtype of q must be int8 or floating point, not 'int16'",
        ),
        (changed("q", np.zeros((5, 32))), "shape of q must be [heads, tokens, 32], not (5, 32)"),
        (
            changed("q", np.zeros((2, 5, 48))),
            "head size of q must be 32, the head_dim of the configuration, not 48",
        ),
        (changed("q", np.zeros((2, 0, 32))), "tokens of q must be from 1 to 65536, not 0"),
        (changed("k", np.zeros((1, 65537, 32), np.int8)), "tokens of k must be from 1 to 65536, not 65537"),
        (changed("k", np.zeros((0, 7, 32))), "heads of k must be at least 1, not 0"),
        (changed("v", np.zeros((1, 8, 32))), "shape of v must be (1, 7, 32), the shape of k, not (1, 8, 32)"),
        (changed("q", np.zeros((3, 5, 32))), None),
        (
            changed("q", np.full((2, 5, 32), np.nan)),
            "tensor q must be finite everywhere, not 'NaN or infinity'",
        ),
        (changed("k", np.full((1, 7, 32), np.inf)), "tensor k must be finite everywhere"),
        (changed("q", INT8), "q_scale must be given beside an int8 q, not 'missing'"),
        (changed("q_scale", np.float64(0)), "q_scale must be one positive number, not 0.0"),
        (changed("v_scale", np.float64("nan")), "v_scale must be one positive number, not nan"),
        (changed("k_scale", np.ones(2)), "k_scale must be one positive number, not [1.0, 1.0]"),
        (changed("softmax_scale", np.float64(-1)), "softmax_scale must be one positive number, not -1.0"),
        (changed("softmax_scale", np.float64(1e30)), "softmax_scale * q_scale * k_scale must be from "),
        (
            changed("output_fraction", np.int64(16)),
            "output_fraction must be a whole number from 0 to 15, not 16",
        ),
        (
            changed("output_fraction", np.float64(3)),
            "output_fraction must be a whole number from 0 to 15, not 3.0",
        ),
    ],
)
def test_wrong_tensors_are_refused(change, message):
    tensors = change(floats())
    if message is None:  # three query heads on one key head are fine; on two they are not
        ADAPTER.job(tensors, CONFIG)
        tensors |= {"k": np.zeros((2, 7, 32)), "v": np.zeros((2, 7, 32))}
        message = "heads of q must be a multiple of the 2 heads of k, not 3"
    with pytest.raises(InputError, match=re.escape(message)):
        ADAPTER.job(tensors, CONFIG)


def test_floats_are_quantized_per_tensor():
    tensors = floats()
    job = ADAPTER.job(tensors, CONFIG)
    assert job.q_scale == pytest.approx(np.abs(tensors["q"]).max() / 127)
    assert np.abs(job.q * job.q_scale - tensors["q"]).max() <= job.q_scale / 2 * 1.0001
    assert job.given is not None


def test_zeros_quantize_to_zeros():
    job = ADAPTER.job(floats() | {"v": np.zeros((1, 7, 32))}, CONFIG)
    assert not job.v.any()
    assert not ADAPTER.golden(job, CONFIG)["o"].any()


def test_int8_goes_through_untouched():
    rng = np.random.default_rng(1)
    q, k, v = (rng.integers(-128, 128, (2, 5, 32)).astype(np.int8) for _ in range(3))
    scales = {f"{name}_scale": np.float64(0.02) for name in "qkv"}
    job = ADAPTER.job({"q": q, "k": k, "v": v} | scales, CONFIG)
    assert (job.q == q).all()
    assert (job.v == v).all()
    assert job.given is None


def test_default_output_fraction_uses_the_range_without_saturating():
    job = ADAPTER.job(floats(), CONFIG)
    o = ADAPTER.golden(job, CONFIG)["o"]
    assert 2**13 <= np.abs(o.astype(int)).max() < 2**15 - 1 or job.fraction == 15


@pytest.mark.parametrize("ports", [1, 2])
def test_slices_hold_every_byte_once(ports):
    config = AttentionConfig(rows=4, head_dim=64, tile_keys=32, ports_per_stream=ports)
    job = ADAPTER.job(floats(size=64), config)
    launch = ADAPTER.launch(job, config, load_board("u55c"))
    slices = [
        buffer.data.view(np.int8).reshape(*job.k.shape[:2], -1)
        for buffer in launch.buffers
        if buffer.argument.startswith("k")
    ]
    assert len(slices) == ports
    assert (np.concatenate(slices, axis=2) == job.k).all()


def test_output_bytes_become_o():
    job = ADAPTER.job(floats(), CONFIG)
    golden = ADAPTER.golden(job, CONFIG)["o"]
    raw = golden.astype("<i2").reshape(-1).view(np.uint8)
    assert (ADAPTER.outputs(job, CONFIG, {"o": raw})["o"] == golden).all()
    results = ADAPTER.results(job, CONFIG, {"o": golden})
    assert np.allclose(results["o"], golden * job.v_scale * 2.0**-job.fraction)
    errors = ADAPTER.errors(job, CONFIG, {"o": golden})
    assert errors["relative_rms_error_int8_inputs"] < 2e-3
    assert errors["relative_rms_error_given_inputs"] < 5e-2


def test_metrics_follow_the_formulas():
    job = ADAPTER.job(floats(heads=2, kv_heads=1, queries=5, keys=7), CONFIG)
    metrics = ADAPTER.metrics(job, CONFIG, load_board("u55c"))
    assert metrics.useful_macs == 2 * 5 * 7 * 2 * 32
    assert metrics.mac_slots_per_cycle == 4 * 2 * 32
    assert metrics.compulsory_bytes == 2 * 5 * 32 * 3 + 2 * 7 * 32
    assert metrics.predicted_read_bytes == 2 * 5 * 32 + 2 * 2 * 7 * 2 * 32
    assert metrics.predicted_write_bytes == 2 * 5 * 32 * 2
    assert metrics.bound_cycles >= metrics.useful_macs / metrics.mac_slots_per_cycle
