"""Quantization per channel: the same attention, smaller errors."""

import numpy as np
import pytest

from sim.engines.attention.accuracy import KINDS, quantization_error
from sim.engines.attention.adapter import ADAPTER
from sim.engines.attention.quantize import equalized
from sim.golden.attention.exact import attention_float64
from tests.support.attention.tensors import CONFIG, OPTIONS, changed, floats


@pytest.mark.parametrize("cap", [None, 2.0])
def test_equalized_tensors_have_the_same_attention(cap):
    tensors = floats(heads=4, kv_heads=2, queries=9, keys=20, value_size=16)
    tensors["k"] = tensors["k"] * 3 + 5
    tensors["k"][1, :, 3] = 7  # nothing is left of it in the middle
    tensors["q"][:2, :, 4] = 0
    tensors["v"][0, :, 5] = 0
    equal = equalized(*tensors.values(), centre=cap is None)
    assert (equal.channels <= 1).all()
    o = attention_float64(equal.q, equal.k, equal.v, softmax_scale=0.2, cap=cap)
    exact = attention_float64(*tensors.values(), softmax_scale=0.2, cap=cap)
    assert np.allclose(o * equal.channels.repeat(2, 0)[:, None], exact, rtol=1e-9)
    most_keys = np.abs(equal.k).max(1)
    used = [channel for channel in range(32) if channel not in (3, 4)]
    assert np.allclose(most_keys[0, used], np.abs(equal.q[:2]).max((0, 1))[used])


@pytest.mark.parametrize("output", ["int8", "int16", "bfloat16"])
def test_results_come_back_in_real_units(output):
    tensors = floats(heads=4, kv_heads=2, queries=9, keys=20, value_size=24)
    tensors["v"] *= np.exp(np.random.default_rng(1).normal(size=(2, 1, 24)))
    config = changed(CONFIG, output=output)
    job = ADAPTER.job(tensors | {"per_channel": np.asarray(1)}, config)
    assert len(job.pieces) == 2  # the heads of a group stay together
    golden = ADAPTER.golden(job, config)
    results = ADAPTER.results(job, config, golden)
    assert results["o_scale"].shape == (4, 24)
    exact = attention_float64(tensors["q"], tensors["k"], tensors["v"], softmax_scale=32**-0.5)
    assert np.abs(results["o"] - exact).max() < 0.03 * np.abs(exact).max()
    errors = ADAPTER.errors(job, config, golden)
    assert errors["relative_rms_error_int8_inputs"] < {"int8": 2e-2, "int16": 2e-4, "bfloat16": 3e-3}[output]


def test_a_cap_does_not_let_keys_be_moved():
    tensors = floats(heads=1, queries=3) | {"logit_cap": np.asarray(1.5), "per_channel": np.asarray(1)}
    tensors["k"] = tensors["k"] + 4
    job = ADAPTER.job(tensors, OPTIONS)
    exact = attention_float64(tensors["q"], tensors["k"], tensors["v"], softmax_scale=32**-0.5, cap=1.5)
    o = ADAPTER.results(job, OPTIONS, ADAPTER.golden(job, OPTIONS))["o"]
    assert np.abs(o - exact).max() < 0.05 * np.abs(exact).max()


@pytest.mark.parametrize("kind", KINDS)
def test_most_of_the_error_is_gone_where_channels_differ(kind):
    alike, equal = (
        quantization_error(kind=kind, spread=1.0, seed=0, per_channel=chosen) for chosen in (False, True)
    )
    assert equal < {"normal": 0.9, "channels": 0.5, "off centre": 0.5}[kind] * alike
    assert equal < 2e-2
