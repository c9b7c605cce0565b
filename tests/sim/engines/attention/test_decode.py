"""Launches of which jobs decode: their results, their rows in memory, their descriptors."""

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.driver import division
from hw.attention.driver.formats import slope_multiplier
from hw.attention.walk.descriptor import CAUSAL, DECODE, FIELDS, REUSE_KV, WINDOWED
from sim.engines.attention.adapter import ADAPTER
from sim.engines.attention.cases import random_tensors
from tests.support.attention.tensors import BOARD, changed, floats

CONFIG = AttentionConfig(
    rows=4,
    lanes=32,
    folds=2,
    tile_keys=16,
    streams=2,
    ports_per_stream=2,
    port_bits=256,
    merge_lanes=2,
    cached_keys=64,
    logit_cap=True,
    alibi=True,
    decode=True,
)


def force(monkeypatch, decode):
    """Let all jobs decode that may, or none."""
    monkeypatch.setattr(division, "_cycles", lambda job, _: job.decode != decode)


def kinds(job):
    return [piece.share.shape.decode for piece in job.pieces]


@pytest.mark.parametrize("seed", range(12))
def test_results_are_near_attention_either_way(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    tensors = random_tensors(rng, CONFIG)
    for name in ("output_fraction", "pack", "bitmap_queries", "bitmap_keys"):
        tensors.pop(name, None)
    tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("bitmap")}
    for decode in (False, True):
        force(monkeypatch, decode)
        job = ADAPTER.job(tensors, CONFIG)
        assert set(kinds(job)) == {decode}
        assert not decode or all(piece.share.shape.pack <= 2 for piece in job.pieces)
        o = job.real(ADAPTER.golden(job, CONFIG)["o"])
        assert np.abs(o - job.exact).max() <= 2e-3 * np.abs(job.exact).max()


def test_results_are_those_of_an_engine_with_as_many_streams(monkeypatch):
    tensors = floats(heads=4, kv_heads=2, queries=3, keys=500, size=40)
    tensors |= {"causal": np.asarray(True), "window": np.asarray(333), "logit_cap": np.asarray(3.0)}
    force(monkeypatch, True)
    o = ADAPTER.golden(ADAPTER.job(tensors, CONFIG), CONFIG)["o"]
    for streams in (2, 4):
        plain = changed(CONFIG, decode=False, streams=streams, ports_per_stream=1)
        other = ADAPTER.golden(ADAPTER.job(tensors, plain), plain)["o"]
        assert np.array_equal(o, other) == (streams == 4)


@pytest.mark.parametrize("decode", [False, True])
def test_rows_are_whole_parts_where_either_kind_of_job_looks(decode, monkeypatch):
    """Two streams of two ports: key n is in row n // 4 of port n // 2 mod 2 of stream n mod 2."""
    force(monkeypatch, decode)
    lengths = {"query_lengths": np.array([2, 3]), "key_lengths": np.array([70, 41])}
    # 33 elements take two parts, 15 one.
    tensors = floats(heads=2, kv_heads=2, keys=111, size=33, value_size=15)
    job = ADAPTER.job(tensors | lengths | {"softmax_scale": np.array([0.1, 0.2])}, CONFIG)
    launch = ADAPTER.launch(job, CONFIG, BOARD)
    data = {buffer.argument: buffer.data for buffer in launch.buffers}
    assert len(job.pieces) == 4
    assert launch.scalars["flags"] == DECODE * decode

    def field(n, name):
        at, size = FIELDS[name]
        at += 256 * (n - 1)
        return int.from_bytes(data["jobs"][at : at + size].tobytes(), "little") if n else 0

    for n, piece in enumerate(job.pieces):
        first, keys = (0, 70) if piece.share.sequence == 0 else (70, 41)
        assert n == 0 or field(n, "flags") == DECODE * decode
        for side, tensor, row in (("k", job.inputs.k, 64), ("v", job.inputs.v, 32)):
            size = tensor.shape[2]
            assert size < row
            wanted = tensor[piece.share.kv_heads.start, first : first + keys]
            for key in range(keys):
                port = data[f"{side}{2 * (key % 2) + key // 2 % 2}"]
                at = field(n, f"{side}_offset") + key // 4 * row
                found = port[at : at + row].view(np.int8)
                assert (found[:size] == wanted[key]).all()
                assert not found[size:].any()
    # A head has whole tiles of 32 keys: 24 and 16 rows at each port.
    assert data["k0"].size == 2 * 64 * (24 + 16)


def test_descriptors_of_both_kinds():
    """Heads of a group that fill the rows of a pass do not decode, the one of another scale does; slopes are
    those of the heads, whatever the order of jobs.
    """
    tensors = floats(heads=10, kv_heads=2, queries=1, keys=900)
    tensors |= {
        "softmax_scale": np.array(2 * [0.1, 0.1, 0.1, 0.1, 0.2]),
        "alibi_slopes": 2.0 ** -np.arange(10),
        "causal": np.asarray(True),
        "window": np.asarray(800),
    }
    job = ADAPTER.job(tensors, CONFIG)
    assert [piece.share.heads.start for piece in job.pieces] == [0, 5, 4, 9]
    assert kinds(job) == [False, False, True, True]
    launch = ADAPTER.launch(job, CONFIG, BOARD)
    data = {buffer.argument: buffer.data for buffer in launch.buffers}
    slopes = data["slopes"].view("<i4")
    assert slopes.tolist() == [slope_multiplier(2.0**-n) for n in range(10)]
    at, _ = FIELDS["slopes"]
    assert [data["jobs"][256 * n + at] for n in range(3)] == [4 * 5, 4 * 4, 4 * 9]
    at, _ = FIELDS["flags"]
    masks = CAUSAL + WINDOWED
    assert [data["jobs"][256 * n + at] for n in range(3)] == [masks, masks + DECODE, masks + DECODE]
    assert not launch.scalars["flags"] & (DECODE | REUSE_KV)
    o = job.real(ADAPTER.golden(job, CONFIG)["o"])
    assert np.abs(o - job.exact).max() <= 2e-3 * np.abs(job.exact).max()


def test_cases_have_jobs_of_both_kinds():
    cases = [case for case in ADAPTER.cases() if case.name.startswith("decode")]
    found = {case.name: kinds(ADAPTER.job(case.tensors, case.config)) for case in cases}
    assert all(set(each) == {False, True} for each in found.values())
    assert {each[0] for each in found.values()} == {False, True}
    random = [case for case in ADAPTER.cases() if case.name.startswith("random") and case.config.decodes]
    assert sum(any(kinds(ADAPTER.job(case.tensors, case.config))) for case in random) >= 8
