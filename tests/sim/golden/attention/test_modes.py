"""Modes of the golden attention model: masks, groups, caps, slopes, streams, against models made of loops."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.attention.driver.formats import Output, Scaling
from hw.attention.driver.integers import IntegerJob
from hw.attention.driver.mask import Mask
from hw.errors import InputError
from sim.golden.attention.exact import attention_float64
from sim.golden.attention.formats import (
    EXP_SEGMENTS,
    PROBABILITY_BITS,
    Arithmetic,
    exp2_table,
    results,
    tanh_table,
)
from sim.golden.attention.model import attention_job
from tests.support.attention.golden import attention


def sees(mask, i, j, queries, keys):
    """Whether query i sees key j, from the page."""
    position = i + keys - queries
    if mask.causal and j > position:
        return False
    if mask.window and j <= position - mask.window:
        return False
    return mask.bitmap is None or bool(mask.bitmap[i // mask.tile_queries][j // mask.tile_keys])


def in_loops(q, k, v, *, softmax_scale, mask, cap, slopes):
    """Exact attention, one key at a time."""
    heads, queries, _ = q.shape
    out = np.zeros((heads, queries, v.shape[2]))
    for h in range(heads):
        key_head = h * k.shape[0] // heads
        for i in range(queries):
            weights = {}
            for j in range(k.shape[1]):
                if sees(mask, i, j, queries, k.shape[1]):
                    logit = softmax_scale * sum(
                        float(a) * float(b) for a, b in zip(q[h, i], k[key_head, j], strict=True)
                    )
                    if cap is not None:
                        logit = cap * math.tanh(logit / cap)
                    if slopes is not None:
                        logit -= slopes[h] * abs(i + k.shape[1] - queries - j)
                    weights[j] = math.exp(logit)
            for j, weight in weights.items():
                out[h, i] += weight / sum(weights.values()) * v[key_head, j]
    return out


def in_python_integers(job, arithmetic, h, i):
    """O and l of one row, straight from the tables of the specification, unbounded, widths asserted."""

    def rounded(a, n):
        return (a + (1 << (n - 1))) >> n if n > 0 else a

    def sat24(a):
        return max(-(2**23), min(2**23 - 1, a))

    heads, queries, _ = job.q.shape
    kv_head, keys = h * job.k.shape[0] // heads, job.k.shape[1]
    k, v = job.k[kv_head].tolist(), job.v[kv_head].tolist()
    starts, drops = (table.tolist() for table in exp2_table(arithmetic.exp_segments))
    within_bits = 12 - int(math.log2(arithmetic.exp_segments))
    tanh_starts, tanh_rises = (table.tolist() for table in tanh_table())
    bits, tile, count = arithmetic.probability_bits, arithmetic.tile_keys, arithmetic.streams
    maxima, outputs, totals = [-4096] * count, [[0] * job.v.shape[2] for _ in range(count)], [0] * count
    for n, s in itertools.product(range(-(-keys // (tile * count))), range(count)):
        t = {}
        for j in range(n * tile * count + s, min((n + 1) * tile * count, keys), count):
            if not sees(job.mask, i, j, queries, keys):
                continue
            score = sum(a * b for a, b in zip(job.q[h, i].tolist(), k[j], strict=True))
            x = sat24(rounded(score * job.scale.multiplier, job.scale.shift))
            if job.cap:
                a = min(abs(x), 2**21 - 1)
                bent = rounded(2**11 * tanh_starts[a >> 11] + tanh_rises[a >> 11] * (a & 2047), 13)
                bent = min(bent, 2**17 - 1)
                x = rounded((bent if x >= 0 else -bent) * job.cap, 17)
                assert -(2**23) <= x < 2**23
            if job.slopes is not None:
                x = sat24(x - rounded(job.slopes[h] * abs(i + keys - queries - j), 12))
            t[j] = x
        new = max([maxima[s]] + [(x + 4095) >> 12 for x in t.values()])
        assert new == -4096 or -2048 <= new <= 2048
        rise, maxima[s] = new - maxima[s], new
        p = {}
        for j, x in t.items():
            u = (new << 12) - x
            assert 0 <= u < 2**25
            e, f = u >> 12, u & 4095
            segment, within = f >> within_bits, f & (2**within_bits - 1)
            y = starts[segment] - rounded(drops[segment] * within, within_bits)
            p[j] = 0 if e >= bits + 2 else rounded(4 * y, e + 20 - bits)
            assert 0 <= p[j] <= 2**bits
        partial = [sum(p[j] * v[j][d] for j in p) for d in range(job.v.shape[2])]
        assert all(-tile * 2 ** (7 + bits) <= x < tile * 2 ** (7 + bits) for x in partial)
        outputs[s] = [rounded(o, rise) + x for o, x in zip(outputs[s], partial, strict=True)]
        totals[s] = rounded(totals[s], rise) + sum(p.values())
    top = max(maxima)
    output = [sum(rounded(outputs[s][d], top - maxima[s]) for s in range(count)) for d in range(len(v[0]))]
    total = sum(rounded(totals[s], top - maxima[s]) for s in range(count))
    assert all(-(2 ** (23 + bits)) <= x < 2 ** (23 + bits) for x in output)
    assert 0 <= total < 2 ** (17 + bits)
    if top > -4096:
        assert total >= 2 ** (bits - 1) - 1
        assert all(abs(x) < 146 * total for x in output)
    return output, total


@st.composite
def masks(draw, queries, keys):
    bitmap, tile_queries, tile_keys = None, draw(st.integers(1, 8)), draw(st.sampled_from([4, 16]))
    if draw(st.booleans()):
        shape = (-(-queries // tile_queries), -(-keys // tile_keys))
        bitmap = np.random.default_rng(draw(st.integers(0, 2**32 - 1))).random(shape) < draw(
            st.sampled_from([0.1, 0.7])
        )
    return Mask(
        causal=draw(st.booleans()),
        window=draw(st.sampled_from([0, 0, 1, 7, 40, 65536])),
        bitmap=bitmap,
        tile_queries=tile_queries,
        tile_keys=tile_keys,
    )


@st.composite
def jobs(draw):
    """Small jobs of all modes; every third one of extreme inputs."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    kv_heads, group = draw(st.integers(1, 2)), draw(st.integers(1, 3))
    queries, keys = draw(st.integers(1, 12)), draw(st.integers(1, 80))
    corner = draw(st.integers(0, 2)) == 0

    def tensor(*shape):
        return (rng.choice([-128, 127, 0], shape) if corner else rng.integers(-128, 128, shape)).astype(
            np.int8
        )

    size, value_size = draw(st.sampled_from([(8, 8), (8, 5), (3, 16)]))
    kind = draw(st.sampled_from(["int8", "int16", "bfloat16"]))
    slopes = draw(st.sampled_from([0, 1, 2**22, 2**26 - 1]))
    return IntegerJob(
        q=tensor(kv_heads * group, queries, size),
        k=tensor(kv_heads, keys, size),
        v=tensor(kv_heads, keys, value_size),
        scale=Scaling(multiplier=draw(st.integers(1, 2**17 - 1)), shift=draw(st.integers(1, 30))),
        output=Output(
            kind=kind,
            fraction=draw(st.integers(0, 15)),
            multiplier=draw(st.integers(2**16, 2**17 - 1)),
            shift=draw(st.integers(19, 47)),
        ),
        mask=draw(masks(queries, keys)),
        cap=draw(st.sampled_from([0, 0, 1, 295464, 2**23 - 1])),
        slopes=tuple(rng.integers(0, slopes + 1, kv_heads * group).tolist()) if slopes else None,
    )


arithmetics = st.builds(
    Arithmetic,
    tile_keys=st.sampled_from([16, 32]),
    streams=st.sampled_from([1, 2, 8]),
    probability_bits=st.sampled_from(PROBABILITY_BITS),
    exp_segments=st.sampled_from(EXP_SEGMENTS),
)


@settings(max_examples=80, deadline=None)
@given(job=jobs(), arithmetic=arithmetics, seed=st.integers(0, 2**32 - 1))
def test_jobs_of_all_modes_equal_the_page_in_python_integers(job, arithmetic, seed):
    golden = attention_job(job, arithmetic)
    assert golden.dtype == job.output.dtype
    rng = np.random.default_rng(seed)
    for _ in range(4):
        h, i = int(rng.integers(job.q.shape[0])), int(rng.integers(job.q.shape[1]))
        output, total = in_python_integers(job, arithmetic, h, i)
        expected = results(
            np.array([output]), np.array([total]), job.output, arithmetic.probability_bits
        ).tolist()
        assert golden[h, i].tolist() == expected[0]


@settings(max_examples=40, deadline=None)
@given(data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_float_oracle_equals_loops(data, seed):
    rng = np.random.default_rng(seed)
    queries, keys = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 30))
    heads, kv_heads = data.draw(st.sampled_from([(1, 1), (4, 2), (3, 1)]))
    mask = data.draw(masks(queries, keys))
    q, k, v = (rng.normal(size=(n, m, 4)) for n, m in ((heads, queries), (kv_heads, keys), (kv_heads, keys)))
    modes = {
        "softmax_scale": 1.5,
        "mask": mask,
        "cap": data.draw(st.sampled_from([None, 1.0, 30.0])),
        "slopes": data.draw(st.sampled_from([None, [0.3, 0.0, 2.0, 0.1][:heads]])),
    }
    exact = attention_float64(q, k, v, **modes)
    np.testing.assert_allclose(exact, in_loops(q, k, v, **modes), rtol=1e-12, atol=1e-14)


def test_float_oracle_works_in_blocks_of_rows(monkeypatch):
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(2, n, 8)) for n in (50, 70, 70))
    modes = {"softmax_scale": 0.5, "mask": Mask(causal=True, window=20), "slopes": [0.1, 0.2]}
    whole = attention_float64(q, k, v, **modes)
    monkeypatch.setattr("sim.golden.attention.exact._BLOCK_SCORES", 300)
    np.testing.assert_allclose(attention_float64(q, k, v, **modes), whole, rtol=1e-13)


@settings(max_examples=30, deadline=None)
@given(job=jobs(), arithmetic=arithmetics)
def test_rows_without_visible_keys_are_zeros_and_others_do_not_depend_on_hidden_keys(job, arithmetic):
    queries, keys = job.q.shape[1], job.k.shape[1]
    golden = attention_job(job, arithmetic)
    visible = job.mask.visible(np.arange(queries), np.arange(keys), queries, keys)
    assert job.mask.pairs(queries, keys) == visible.sum()
    assert not golden[:, ~visible.any(axis=1)].any()
    hidden = ~visible.any(axis=0)
    k, v = job.k.copy(), job.v.copy()
    k[:, hidden], v[:, hidden] = 127, -128
    assert (attention_job(changed(job, k=k, v=v), arithmetic) == golden).all()


def changed(job, **changes):
    return IntegerJob(**{name: getattr(job, name) for name in job.__dataclass_fields__} | changes)


def random_job(rng, *, heads=2, kv_heads=1, queries=20, keys=100, size=16, **changes):
    q, k, v = (
        rng.integers(-128, 128, shape).astype(np.int8)
        for shape in ((heads, queries, size), (kv_heads, keys, size), (kv_heads, keys, size))
    )
    return IntegerJob(
        **{
            "q": q,
            "k": k,
            "v": v,
            "scale": Scaling(multiplier=90_000, shift=19),
            "output": Output(fraction=7),
        }
        | changes
    )


@pytest.mark.parametrize("streams", [1, 4])
def test_a_causal_row_equals_attention_to_the_keys_before_it(streams):
    """Deleting the keys that a row does not see changes nothing, whatever Nq and Nk are."""
    rng = np.random.default_rng(0)
    arithmetic = Arithmetic(tile_keys=16, streams=streams)
    for queries, keys in ((30, 30), (7, 90), (50, 20)):
        job = random_job(rng, queries=queries, keys=keys, mask=Mask(causal=True))
        golden = attention_job(job, arithmetic)
        for i in range(queries):
            seen = i + 1 + keys - queries
            if seen <= 0:
                assert not golden[:, i].any()
                continue
            alone = changed(job, q=job.q[:, i : i + 1], k=job.k[:, :seen], v=job.v[:, :seen], mask=Mask())
            assert (attention_job(alone, arithmetic)[:, 0] == golden[:, i]).all()


def test_a_window_on_whole_tiles_equals_attention_to_its_keys():
    rng = np.random.default_rng(1)
    job = random_job(rng, queries=1, keys=96, mask=Mask(causal=True, window=48))
    cut = changed(job, k=job.k[:, 48:], v=job.v[:, 48:], mask=Mask())
    arithmetic = Arithmetic(tile_keys=16)
    assert (attention_job(job, arithmetic) == attention_job(cut, arithmetic)).all()


def test_a_window_without_causal_shows_the_keys_after_the_query():
    mask = Mask(window=3)
    seen = mask.visible(np.arange(2), np.arange(6), 2, 6)
    assert seen.tolist() == [[0, 0, 1, 1, 1, 1], [0, 0, 0, 1, 1, 1]]


def test_a_bitmap_equals_deleting_its_clear_tiles():
    rng = np.random.default_rng(2)
    bitmap = np.array([[1, 0, 0, 1], [0, 1, 1, 1], [0, 0, 0, 0]], bool)
    mask = Mask(bitmap=bitmap, tile_queries=8, tile_keys=16)
    job = random_job(rng, queries=20, keys=60, mask=mask)
    arithmetic = Arithmetic(tile_keys=16)
    golden = attention_job(job, arithmetic)
    for row in range(2):
        columns = [j for j in range(60) if bitmap[row, j // 16]]
        queries = slice(8 * row, 8 * row + 8)
        alone = changed(job, q=job.q[:, queries], k=job.k[:, columns], v=job.v[:, columns], mask=Mask())
        assert (attention_job(alone, arithmetic) == golden[:, queries]).all()
    assert not golden[:, 16:].any()


def test_heads_rows_and_jobs_do_not_depend_on_each_other():
    """Any packing of heads into rows gives the same results, and so does any queue of jobs."""
    rng = np.random.default_rng(3)
    job = random_job(
        rng, heads=6, kv_heads=2, slopes=tuple(range(0, 6 * 2**20, 2**20)), mask=Mask(causal=True)
    )
    arithmetic = Arithmetic(tile_keys=16, streams=2)
    together = attention_job(job, arithmetic)
    alone = [
        changed(
            job,
            q=job.q[h : h + 1],
            k=job.k[h // 3 : h // 3 + 1],
            v=job.v[h // 3 : h // 3 + 1],
            slopes=(job.slopes[h],),
        )
        for h in range(6)
    ]
    for h, results_of_one in enumerate(attention_job(job, arithmetic) for job in alone):
        assert (results_of_one[0] == together[h]).all()


def test_blocks_of_rows_do_not_show(monkeypatch):
    job = random_job(np.random.default_rng(4), queries=70, mask=Mask(causal=True))
    whole = attention_job(job, Arithmetic(tile_keys=16))
    monkeypatch.setattr("sim.golden.attention.model._BLOCK_SCORES", 16 * 9)
    assert (attention_job(job, Arithmetic(tile_keys=16)) == whole).all()


def test_one_stream_and_default_formats_equal_the_plain_function():
    job = random_job(np.random.default_rng(5))
    plain = attention(job.q, job.k, job.v, scale=job.scale, fraction=7, tile_keys=32)
    assert (attention_job(job, Arithmetic(tile_keys=32)) == plain).all()


def test_zero_slopes_and_streams_without_keys_change_nothing():
    job = random_job(np.random.default_rng(6), keys=40)
    plain = attention_job(job, Arithmetic(tile_keys=64))
    assert (attention_job(changed(job, slopes=(0, 0)), Arithmetic(tile_keys=64)) == plain).all()
    job = random_job(np.random.default_rng(6), keys=1)
    plain = attention_job(job, Arithmetic(tile_keys=64))
    assert (attention_job(job, Arithmetic(tile_keys=64, streams=16)) == plain).all()


@pytest.mark.parametrize("streams", [1, 4])
@pytest.mark.parametrize("bits", PROBABILITY_BITS)
def test_a_maximum_that_rises_with_every_tile(bits, streams):
    """Worst for rescaling: every tile is many log2 units above the one before."""
    keys, tile = 128, 16
    q = np.full((1, 2, 1), 1, np.int8)
    k = np.arange(-128, 128, 2, dtype=np.int8).reshape(1, keys, 1)
    v = np.random.default_rng(0).integers(-128, 128, (1, keys, 8)).astype(np.int8)
    for shift, fall in ((1, 0), (3, 1), (5, 2)):
        job = IntegerJob(
            q=q,
            k=k,
            v=v,
            scale=Scaling(multiplier=2 ** (12 + shift), shift=shift + fall),
            output=Output(fraction=7),
        )
        arithmetic = Arithmetic(tile_keys=tile, streams=streams, probability_bits=bits)
        golden = attention_job(job, arithmetic)
        exact = attention_float64(q, k, v, softmax_scale=math.log(2) * 2.0**-fall)
        assert np.abs(golden / 128 - exact).max() <= 128 * 10 * 2.0**-bits + 0.05
        assert in_python_integers(job, arithmetic, 0, 0)[1] > 0


@pytest.mark.parametrize("bits", PROBABILITY_BITS)
@pytest.mark.parametrize("streams", [1, 16])
@pytest.mark.parametrize(("key", "value"), [(-128, -128), (127, 127), (-128, 127)])
def test_longest_sequence_of_extremes_fits_its_widths(bits, streams, key, value):
    """The model raises OverflowError where a running sum leaves its register."""
    keys = 65536
    job = IntegerJob(
        q=np.full((1, 1, 32), key, np.int8),
        k=np.full((1, keys, 32), key, np.int8),
        v=np.full((1, keys, 8), value, np.int8),
        # t is a whole number of log2 units: every p is as large as it gets.
        scale=Scaling(multiplier=2**16, shift=16),
        output=Output(fraction=7),
    )
    golden = attention_job(job, Arithmetic(probability_bits=bits, streams=streams))
    assert (np.abs(golden - value * 2**7) <= 1).all()


@pytest.mark.parametrize("sums", [("total", "l"), ("output", "O")])
def test_the_model_notices_sums_wider_than_their_registers(monkeypatch, sums):
    attribute, name = sums
    job = random_job(np.random.default_rng(7))
    limit = 12 if attribute == "total" else 14
    monkeypatch.setattr("sim.golden.attention.model._SUM_BITS", limit - 16 if name == "l" else 48)
    monkeypatch.setattr("sim.golden.attention.model._OUTPUT_BITS", limit - 16 if name == "O" else 48)
    with pytest.raises(OverflowError, match=f"running .* {name} is wider than its register"):
        attention_job(job, Arithmetic())


def test_a_bitmap_that_does_not_fit_is_refused():
    mask = Mask(bitmap=np.ones((2, 2), bool), tile_queries=10, tile_keys=16)
    with pytest.raises(InputError, match="shape of the bitmap"):
        random_job(np.random.default_rng(0), mask=mask)
