"""Quantization per channel: the same attention, smaller errors."""

from dataclasses import replace

import numpy as np
import pytest

from hw.attention.driver.division import separate_groups_are_free
from hw.attention.driver.mask import Mask
from hw.attention.driver.quantize import equalized
from hw.attention.driver.workload import AttentionWorkload
from hw.attention.engine import AttentionEngine
from hw.board import load_board
from sim.engines.attention.accuracy import KINDS, quantization_error
from sim.engines.attention.adapter import ADAPTER
from sim.engines.attention.cases import SMALL
from sim.golden.attention.exact import attention_float64
from tests.support.attention.tensors import CONFIG, OPTIONS, changed, floats


@pytest.mark.parametrize("cap", [None, 2.0])
def test_equalized_tensors_have_the_same_attention(cap):
    tensors = floats(heads=4, kv_heads=2, queries=9, keys=20, value_size=16)
    tensors["k"] = tensors["k"] * 3 + 5
    tensors["k"][1, :, 3] = 7  # nothing is left of it in the middle
    tensors["q"][:2, :, 4] = 0
    tensors["v"][0, :, 5] = 0
    equal = equalized(*tensors.values(), read=np.ones((2, 20), bool), centre=cap is None)
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


def test_channels_are_equalized_by_default_where_that_costs_nothing():
    """Each K/V head is a job then: long enough, and its results in units that nobody asked for."""
    long = floats(heads=4, kv_heads=2, queries=40, keys=80)

    def channels(tensors, config=CONFIG):
        return bool((ADAPTER.job(tensors, config).inputs.channels != 1).any())

    assert channels(long)
    assert not channels(long | {"per_channel": np.asarray(0)})
    assert not channels(floats(heads=4, kv_heads=2))  # jobs of a few cycles
    assert channels(floats(heads=4, kv_heads=1))  # one job in any case
    assert not channels(long, changed(CONFIG, output="bfloat16"))
    assert channels(long | {"per_channel": np.asarray(1)}, changed(CONFIG, output="bfloat16"))
    assert channels(long, changed(CONFIG, output="int8"))
    assert not channels(long | {"output_scale": np.asarray(0.01)}, changed(CONFIG, output="int8"))
    assert not channels(long | {"v_scale": np.asarray(0.03)})


@pytest.mark.parametrize("seed", range(10))
def test_no_job_more_takes_a_cycle_where_channels_are_equalized_by_default(seed):
    """By the prediction, of launches from some cycles on, with groups of heads and without."""
    board, rng = load_board("u55c"), np.random.default_rng(seed)
    engine = AttentionEngine()
    config = engine.default_config(board)
    counts = rng.integers(1, 90, int(rng.choice([1, 1, 3])))
    group = int(rng.choice([1, 2]))
    heads = int(rng.integers(2, 9))
    workload = AttentionWorkload(
        heads=group * heads,
        kv_heads=heads,
        queries=tuple(map(int, rng.integers(1, 40, len(counts)) if seed % 2 else counts)),
        keys=tuple(map(int, counts)),
        query_size=64,
        value_size=32 * int(rng.integers(1, 4)),
        causal=bool(seed % 3),
    )
    apart = replace(workload, settings=tuple(head // group for head in range(group * heads)))
    cycles = [engine.predict(each, config, board).cycles_total for each in (workload, apart)]
    assert cycles[0] == cycles[1] or not separate_groups_are_free(workload, config)


MISLEADING = {"stray": 3e3, "huge": 1e30, "not a number": np.nan, "infinite": np.inf}


@pytest.mark.parametrize("value", MISLEADING.values(), ids=MISLEADING)
@pytest.mark.parametrize("per_channel", [0, 1])
@pytest.mark.parametrize("hidden", ["pages", "tail", "window", "causal", "bitmap", "queries"])
def test_what_no_query_reads_decides_nothing(hidden, per_channel, value):
    """Results are those of the same launch with zeros there."""
    results = []
    for unread in (0.0, value):
        tensors = floats(heads=4, kv_heads=2, queries=9, keys=80) | {"per_channel": np.asarray(per_channel)}
        config = changed(SMALL, rows=4, streams=1, decode=False)
        if hidden in ("pages", "tail"):
            table = {"block_table": np.array([[3, 1]]), "page_keys": np.asarray(16)}
            lengths = {"query_lengths": np.array([9]), "key_lengths": np.array([29])}
            tensors |= table | lengths
            places = {"pages": [0, 2, 4], "tail": [1]}[hidden]
            for side in "kv":
                for page in places:
                    tensors[side][:, 16 * page + (13 if hidden == "tail" else 0) : 16 * (page + 1)] = unread
        if hidden == "window":
            tensors |= {"causal": np.asarray(1), "window": np.asarray(20)}
            tensors["k"][:, : 80 - 9 - 20 + 1] = tensors["v"][:, : 80 - 9 - 20 + 1] = unread
        if hidden == "causal":
            # The last query is that of the last key: the ends of queries and keys meet in the middle.
            lengths = {"query_lengths": np.array([5, 4]), "key_lengths": np.array([3, 77])}
            tensors |= lengths | {"causal": np.asarray(1)}
            tensors["q"][:, :2] = unread  # before the first key
        if hidden == "bitmap":
            bits = np.zeros((4, 3, 5), bool)
            bits[:, :, 1], bits[1, 2, 3] = 1, 1
            tensors |= {"bitmap": bits, "pack": np.asarray(1)}
            for side in "kv":
                tensors[side][:, :16] = tensors[side][:, 32:48] = tensors[side][1, 48:] = unread
                tensors[side][:, 64:] = unread
        if hidden == "queries":
            tensors |= {"bitmap": np.array([[1] * 5, [0] * 5, [1] * 5]), "pack": np.asarray(1)}
            tensors["q"][:, 4:8] = unread
        job = ADAPTER.job(tensors, config)
        o = ADAPTER.golden(job, config)
        results.append((ADAPTER.results(job, config, o), ADAPTER.errors(job, config, o)))
    (clean, errors), (strange, same_errors) = results
    assert all(np.array_equal(clean[name], strange[name]) for name in clean)
    assert errors == same_errors
    assert errors["relative_rms_error_given_inputs"] < 0.03
    assert "saturated_inputs_ratio" not in errors


@pytest.mark.parametrize("seed", range(6))
def test_read_tokens_are_those_of_visible_pairs(seed):
    rng = np.random.default_rng(seed)
    queries, keys = (int(n) for n in rng.integers(1, 40, 2))
    by_queries, by_keys = (int(n) for n in rng.integers(1, 9, 2))
    bitmap = rng.random((-(-queries // by_queries), -(-keys // by_keys))) < 0.3
    mask = Mask(
        causal=bool(seed % 2),
        window=int(rng.integers(0, 20)),
        bitmap=bitmap if seed > 2 else None,
        tile_queries=by_queries,
        tile_keys=by_keys,
    )
    visible = mask.visible(np.arange(queries), np.arange(keys), queries, keys)
    own_queries, own_keys = mask.read(queries, keys)
    assert np.array_equal(own_queries, visible.any(1))
    assert np.array_equal(own_keys, visible.any(0))
