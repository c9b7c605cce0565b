"""The attention adapter: what it refuses, how it quantizes, divides into jobs and lays tensors out."""

import math

import numpy as np
import pytest

from hw.attention.driver.formats import bfloat16_values
from hw.attention.driver.mask import Mask
from hw.attention.engine import AttentionEngine
from hw.attention.walk.descriptor import CAUSAL, DESCRIPTOR_BYTES, FIELDS, PAGED, REUSE_KV, SPARSE, WINDOWED
from sim.engines.attention.adapter import ADAPTER
from sim.engines.attention.cases import SMALL, random_tensors
from sim.engines.attention.drawn import into_pages
from sim.golden.attention.exact import attention_float64
from tests.support.attention.tensors import BOARD, CONFIG, OPTIONS, changed, floats


def test_floats_are_quantized_per_tensor():
    tensors = floats() | {"per_channel": np.asarray(0)}
    inputs = ADAPTER.job(tensors, CONFIG).inputs
    assert inputs.q_scale == pytest.approx(np.abs(tensors["q"]).max() / 127)
    assert (
        np.abs(inputs.q * inputs.q_scale[:, None, None] - tensors["q"]).max()
        <= inputs.q_scale[0] / 2 * 1.0001
    )
    assert inputs.real is not None


def test_zeros_quantize_to_zeros():
    for output in ("int8", "int16", "bfloat16"):
        config = changed(CONFIG, output=output)
        job = ADAPTER.job(floats() | {"v": np.zeros((1, 7, 32))}, config)
        assert not job.inputs.v.any()
        assert not ADAPTER.golden(job, config)["o"].any()
        assert set(ADAPTER.errors(job, config, ADAPTER.golden(job, config)).values()) == {0.0}


def test_int8_goes_through_untouched():
    rng = np.random.default_rng(1)
    q, k, v = (rng.integers(-128, 128, (2, 5, 32)).astype(np.int8) for _ in range(3))
    scales = {f"{name}_scale": np.float64(0.02) for name in "qkv"}
    inputs = ADAPTER.job({"q": q, "k": k, "v": v} | scales, CONFIG).inputs
    assert (inputs.q == q).all()
    assert (inputs.v == v).all()
    assert inputs.real is None


def test_default_formats_use_the_range_without_saturating():
    for output, low, high in (("int16", 2**13, 2**15 - 1), ("int8", 126, 128)):
        config = changed(CONFIG, output=output)
        job = ADAPTER.job(floats(), config)
        assert low <= np.abs(ADAPTER.golden(job, config)["o"].astype(int)).max() < high


@pytest.mark.parametrize(
    ("changes", "jobs"),
    [
        ({}, 1),
        ({"q_scale": np.array([0.01, 0.01, 0.01, 0.01])}, 1),
        ({"softmax_scale": np.array([0.1, 0.1, 0.2, 0.2])}, 2),
        ({"softmax_scale": np.array([0.1, 0.2, 0.2, 0.2])}, 3),
        ({"v_scale": np.array([0.1, 0.2])}, 2),
        ({"output_fraction": np.array([3, 4, 5, 6])}, 4),
        ({"query_lengths": np.array([2, 2, 5]), "key_lengths": np.array([1, 7, 12])}, 3),
        ({"bitmap": np.arange(12).reshape(4, 3, 1) % 2 > 0}, 4),
    ],
    ids=str,
)
def test_heads_of_equal_settings_go_together(changes, jobs):
    """Every head of every token is in exactly one job, and what a job says of its heads holds for each."""
    tensors = floats(heads=4, kv_heads=2, queries=9, keys=20)
    if "bitmap" in changes:
        changes = {"bitmap": np.repeat(changes["bitmap"], 2, axis=2)}
    job = ADAPTER.job(tensors | changes | {"pack": np.asarray(1)}, CONFIG)
    assert len(job.pieces) == jobs
    covered = np.zeros((4, 9), int)
    before = None
    for piece in job.pieces:
        covered[piece.place] += 1
        share = piece.share
        same = before is not None and before.sequence == share.sequence
        assert share.shape.reuse_kv == (same and before.kv_heads.stop - 1 == share.kv_heads.start)
        for head in range(*share.heads.indices(4)):
            kv_head = head // 2
            assert piece.share.kv_heads.start <= kv_head < piece.share.kv_heads.stop
            factor = job.inputs.softmax_scale[head] * job.inputs.q_scale[head] * job.inputs.k_scale[kv_head]
            assert piece.factor == pytest.approx(factor)
            assert piece.value_step == job.inputs.v_scale[kv_head]
        before = share
    assert (covered == 1).all()


def test_rows_are_packed_where_that_saves_passes():
    def packed(heads, kv_heads, queries, **modes):
        job = ADAPTER.job(floats(heads=heads, kv_heads=kv_heads, queries=queries, keys=64) | modes, CONFIG)
        return job.pieces[0].share.shape.pack

    assert packed(4, 1, 1) == 4
    assert packed(8, 1, 1) == 4
    assert packed(2, 2, 1) == 1
    assert packed(4, 1, 4) == 1
    assert packed(4, 1, 64, causal=np.asarray(1)) == 4
    # Four heads and a query meet 9 keys, two times for each; one head and four queries 12, seven times.
    assert packed(7, 1, 64, causal=np.asarray(1), window=np.asarray(9)) == 4
    assert packed(4, 1, 1, pack=np.asarray(2)) == 2
    coarse = {"bitmap": np.ones((8, 4), bool), "bitmap_queries": np.asarray(8)}
    assert packed(4, 1, 64, **coarse) == 4


SHAPES = [(1, 1), (1, 4), (2, 2), (4, 1)]


@pytest.mark.parametrize(("streams", "ports"), SHAPES)
def test_every_key_lies_where_the_engine_looks(streams, ports):
    config = changed(CONFIG, streams=streams, ports_per_stream=ports)
    lengths = {"query_lengths": np.array([2, 3]), "key_lengths": np.array([70, 41])}
    job = ADAPTER.job(floats(heads=2, kv_heads=2, keys=111, size=32, value_size=16) | lengths, config)
    launch = ADAPTER.launch(job, config, BOARD)
    data = {buffer.argument: buffer.data for buffer in launch.buffers}
    sides = {"k": ("k_offset", job.inputs.k), "v": ("v_offset", job.inputs.v)}
    starts = [0, 70]
    for n, keys in enumerate((70, 41)):
        for side, (field, tensor) in sides.items():
            size = tensor.shape[2]
            offset = 0
            if n:
                at = FIELDS[field][0]
                offset = int.from_bytes(data["jobs"][at : at + 8].tobytes(), "little")
            rows = math.ceil(keys / (16 * streams)) * 16 // ports
            for head in range(2):
                for key in range(keys):
                    row = key // streams
                    port = data[f"{side}{key % streams * ports + row % ports}"]
                    at = offset + (head * rows + row // ports) * size
                    assert (port[at : at + size].view(np.int8) == tensor[head, starts[n] + key]).all()


@pytest.mark.parametrize(("streams", "ports"), SHAPES)
def test_every_key_of_a_page_lies_where_the_table_says(streams, ports):
    """Two sequences that share their first page."""
    config = changed(CONFIG, streams=streams, ports_per_stream=ports, paged=True)
    size = 16 * streams
    table = np.array([[3, 1, 0, 4, 5], [3, 2, -1, -1, -1]])
    lengths = {"query_lengths": np.array([2, 3]), "key_lengths": np.array([4 * size + 1, 2 * size])}
    tensors = floats(heads=2, kv_heads=2, keys=6 * size, size=32, value_size=16) | lengths
    job = ADAPTER.job(tensors | {"block_table": table, "page_keys": np.asarray(size)}, config)
    launch = ADAPTER.launch(job, config, BOARD)
    data = {buffer.argument: buffer.data for buffer in launch.buffers}
    assert launch.scalars["flags"] == PAGED
    assert launch.scalars["page_keys"] == size
    links = next(buffer for buffer in launch.buffers if buffer.argument == "jobs").links
    assert links == ((FIELDS["pages"][0], "pages"),)

    def field(name, count=8):
        at = FIELDS[name][0]
        return int.from_bytes(data["jobs"][at : at + count].tobytes(), "little")

    assert field("k_offset") == field("v_offset") == 0
    for row, keys, first in zip(table, lengths["key_lengths"], (0, field("pages")), strict=True):
        assert first % 32 == 0
        for n, (side, tensor) in enumerate((("k", job.inputs.k), ("v", job.inputs.v))):
            width = tensor.shape[2]
            for head in range(2):
                for key in range(keys):
                    page, place = divmod(key, size)
                    at = first + 8 * page + 4 * n
                    entry = int.from_bytes(data["pages"][at : at + 4].tobytes(), "little")
                    index = place // streams
                    port = data[f"{side}{key % streams * ports + index % ports}"]
                    at = 16 * entry + (head * 16 // ports + index // ports) * width
                    found = port[at : at + width].view(np.int8)
                    assert (found == tensor[head, row[page] * size + place]).all()


def test_results_are_those_without_pages():
    config = changed(CONFIG, paged=True)
    lengths = {"query_lengths": np.array([2, 3]), "key_lengths": np.array([70, 41])}
    plain = floats(heads=4, kv_heads=2, keys=111) | lengths | {"causal": np.asarray(True)}
    paged = into_pages(plain, 32, seed=1)
    assert paged["k"].shape[1] == 7 * 32  # two pages are nobody's
    jobs = [ADAPTER.job(tensors, config) for tensors in (plain, paged)]
    assert np.array_equal(*(ADAPTER.golden(job, config)["o"] for job in jobs))
    assert np.array_equal(jobs[0].exact, jobs[1].exact)
    assert np.array_equal(jobs[0].exact_on_given(), jobs[1].exact_on_given())


def test_descriptors_say_what_the_jobs_are():
    tensors = floats(heads=4, kv_heads=2, queries=9, keys=20) | {
        "softmax_scale": np.array([0.1, 0.1, 0.1, 0.2]),
        "causal": np.asarray(True),
        "window": np.asarray(5),
        "logit_cap": np.asarray(20.0),
        "alibi_slopes": np.array([0.5, 0.25, 0.125, 0.0625]),
        "bitmap": np.ones((3, 2), bool),
        "pack": np.asarray(1),
    }
    config = changed(OPTIONS, ports_per_stream=1)
    job = ADAPTER.job(tensors, config)
    launch = ADAPTER.launch(job, config, BOARD)
    buffers = {buffer.argument: buffer for buffer in launch.buffers}
    assert launch.scalars["job_count"] == 2 == len(job.pieces) - 1
    assert launch.scalars["flags"] == CAUSAL + WINDOWED + SPARSE
    assert (launch.scalars["window"], launch.scalars["heads"]) == (5, 2)
    jobs = buffers["jobs"]
    assert jobs.size_bytes == 2 * DESCRIPTOR_BYTES
    raw = [
        {
            name: int.from_bytes(jobs.data[n * 256 + at : n * 256 + at + size].tobytes(), "little")
            for name, (at, size) in FIELDS.items()
        }
        for n in range(2)
    ]
    assert [fields["flags"] for fields in raw] == [7, 7 + REUSE_KV]
    assert [fields["heads"] for fields in raw] == [1, 1]
    assert [fields["q_offset"] for fields in raw] == [2 * 9 * 32, 3 * 9 * 32]
    assert [fields["o_offset"] for fields in raw] == [2 * 9 * 64, 3 * 9 * 64]
    assert [fields["slopes"] for fields in raw] == [8, 12]
    assert [fields["bitmap"] for fields in raw] == [96, 192]
    assert [fields["k_offset"] for fields in raw] == [32 * 32] * 2
    assert raw[0]["score_multiplier"] != 2 * raw[1]["score_multiplier"]
    assert raw[0]["cap_multiplier"] == launch.scalars["cap_multiplier"] == job.pieces[0].integers.cap
    names = {(offset // 256, argument) for offset, argument in jobs.links}
    assert names == {(n, name) for n in range(2) for name in ("bitmap", "slopes")}
    assert {offset % 256 for offset, _ in jobs.links} == {FIELDS[name][0] for _, name in jobs.links}
    assert buffers["slopes"].data.view("<i4").tolist() == list(
        job.pieces[0].integers.slopes + job.pieces[1].integers.slopes + job.pieces[2].integers.slopes
    )
    assert launch.nulls == ("pages",)


def test_a_launch_gives_every_argument_once():
    for config, tensors in ((CONFIG, floats()), (changed(OPTIONS, streams=2), floats())):
        job = ADAPTER.job(tensors, config)
        launch = ADAPTER.launch(job, config, BOARD)
        call = [argument.name for argument in AttentionEngine().arguments(config, BOARD).call]
        given = [*launch.scalars, *launch.nulls, *(buffer.argument for buffer in launch.buffers)]
        assert sorted(given) == sorted(call)
        assert launch.nulls == ("bitmap", "slopes", "pages", "jobs")


@pytest.mark.parametrize("output", ["int8", "int16", "bfloat16"])
def test_output_bytes_become_o(output):
    config = changed(CONFIG, output=output)
    tensors = floats(queries=9, keys=20, value_size=16)
    tensors |= {"query_lengths": np.array([4, 5]), "key_lengths": np.array([9, 11])}
    job = ADAPTER.job(tensors, config)
    golden = ADAPTER.golden(job, config)["o"]
    pieces = [golden[:, :4], golden[:, 4:]]
    raw = b""
    for piece in pieces:
        raw += bytes(-len(raw) % 64) + np.ascontiguousarray(piece).tobytes()
    buffer = np.frombuffer(raw, np.uint8)
    assert (ADAPTER.outputs(job, config, {"o0": buffer})["o"] == golden).all()
    results = ADAPTER.results(job, config, {"o": golden})
    values = bfloat16_values(golden) if output == "bfloat16" else golden
    # One number, or one for each head and channel where channels were made equally large.
    assert results["o_scale"].shape == (() if output == "bfloat16" else (2, 16))
    assert np.allclose(results["o"], values * np.broadcast_to(results["o_scale"], (2, 16))[:, None])
    errors = ADAPTER.errors(job, config, {"o": golden})
    assert errors["relative_rms_error_int8_inputs"] < {"int8": 1e-2, "int16": 2e-4, "bfloat16": 3e-3}[output]
    assert errors["relative_rms_error_given_inputs"] < 5e-2


@pytest.mark.parametrize("output", ["int8", "int16", "bfloat16"])
def test_heads_of_any_size_get_zeros_behind_them_and_lose_them_again(output, tmp_path):
    rng = np.random.default_rng(5)
    config = changed(SMALL, output=output)
    tensors = {name: rng.normal(size=(2, 9, 23 if name != "v" else 40)) for name in "qkv"}
    job = ADAPTER.job(tensors, config)
    assert (job.inputs.q.shape, job.inputs.v.shape) == ((2, 9, 32), (2, 9, 48))
    assert not job.inputs.k[..., 23:].any()
    integers = ADAPTER.golden(job, config)
    assert not integers["o"][..., 40:].any()
    results = ADAPTER.results(job, config, integers)
    assert results["o_int"].shape == results["o"].shape == (2, 9, 40)
    ADAPTER.write_results(tmp_path / "out.npz", results, integers)
    written = np.load(tmp_path / "out.npz")
    assert np.array_equal(written["golden_int"], written["o_int"])
    exact = attention_float64(tensors["q"], tensors["k"], tensors["v"], softmax_scale=23**-0.5)
    assert np.abs(results["o"] - exact).max() <= 0.05 * np.abs(exact).max()
    prediction = AttentionEngine().predict(ADAPTER.workload(job, config), config, BOARD)
    assert prediction.useful_macs == 2 * 9 * 9 * (23 + 40)
    # A row is padded to as many units of 16 bytes at each of the two ports: three int8 units become four.
    assert prediction.write_bytes_total == 2 * 9 * {"int8": 64, "int16": 96, "bfloat16": 96}[output]


def test_scales_of_heads_come_back_with_the_results():
    job = ADAPTER.job(floats(heads=2, kv_heads=2) | {"v_scale": np.array([0.02, 0.05])}, CONFIG)
    golden = ADAPTER.golden(job, CONFIG)
    results = ADAPTER.results(job, CONFIG, golden)
    assert results["o_scale"].shape == (2,)
    assert np.allclose(results["o"], golden["o"] * results["o_scale"][:, None, None])


@pytest.mark.parametrize("seed", range(12))
def test_golden_results_are_near_attention_by_its_definition(seed):
    """The masks and scales of the user's tensors, applied one query at a time."""
    rng = np.random.default_rng(seed)
    config = changed(SMALL, logit_cap=False, alibi=False)
    tensors = random_tensors(rng, config)
    tensors.pop("output_fraction", None)
    job = ADAPTER.job(tensors, config)
    o = ADAPTER.results(job, config, ADAPTER.golden(job, config))["o"]
    inputs = job.inputs
    exact = np.zeros(o.shape)
    for n, tokens in enumerate(inputs.sequences):
        bitmap = inputs.bitmaps[n]
        for head in range(inputs.heads):
            kv_head = head // inputs.group
            mask = Mask(
                causal=bool(tensors.get("causal", False)),
                window=int(tensors.get("window", 0)),
                bitmap=None if bitmap is None else bitmap[head % len(bitmap)],
                tile_queries=int(tensors.get("bitmap_queries", 1)),
                tile_keys=int(tensors.get("bitmap_keys", 1)),
            )
            exact[head, tokens.queries] = attention_float64(
                (inputs.q[head, tokens.queries] * inputs.q_scale[head])[None],
                (inputs.k[kv_head, tokens.keys] * inputs.k_scale[kv_head])[None],
                (inputs.v[kv_head, tokens.keys, : o.shape[2]] * inputs.v_scale[kv_head])[None],
                softmax_scale=float(inputs.softmax_scale[head]),
                mask=mask,
            )[0]
    exact *= inputs.channels[:, None, : o.shape[2]]
    assert np.abs(o - exact).max() <= 2e-3 * max(np.abs(exact).max(), 1e-9)


def test_predictions_follow_the_formulas():
    config = changed(CONFIG, cached_keys=0)
    job = ADAPTER.job(floats(heads=2, kv_heads=1, queries=5, keys=7) | {"pack": np.asarray(1)}, config)
    prediction = AttentionEngine().predict(ADAPTER.workload(job, config), config, BOARD)
    assert prediction.useful_macs == 2 * 5 * 7 * 2 * 32
    assert prediction.mac_slots_per_cycle == 4 * 2 * 32
    assert prediction.compulsory_bytes == 2 * 5 * 32 * 3 + 2 * 7 * 32
    assert prediction.read_bytes_total == 2 * 5 * 32 + 2 * 2 * 7 * 2 * 32
    assert prediction.write_bytes_total == 2 * 5 * 32 * 2
    assert prediction.bound_cycles >= prediction.useful_macs / prediction.mac_slots_per_cycle
    cached = AttentionEngine().predict(ADAPTER.workload(job, CONFIG), CONFIG, BOARD)
    assert cached.moved_bytes == cached.compulsory_bytes


@pytest.mark.parametrize("seed", range(12))
def test_useful_and_compulsory_count_what_is_seen(seed):
    """Each pair and each key by looking at it."""
    rng = np.random.default_rng(100 + seed)
    tensors = random_tensors(rng, SMALL)
    job = ADAPTER.job(tensors, SMALL)
    prediction = AttentionEngine().predict(ADAPTER.workload(job, SMALL), SMALL, BOARD)
    inputs = job.inputs
    pairs, seen = 0, set()
    for n, tokens in enumerate(inputs.sequences):
        diagonal = tokens.key_count - tokens.query_count
        bitmap = inputs.bitmaps[n]
        for head in range(inputs.heads):
            for query in range(tokens.query_count):
                for key in range(tokens.key_count):
                    if inputs.causal and key > query + diagonal:
                        continue
                    if inputs.window and key <= query + diagonal - inputs.window:
                        continue
                    if bitmap is not None:
                        block = query // inputs.bitmap_queries, key // inputs.bitmap_keys
                        if not bitmap[head % len(bitmap)][block]:
                            continue
                    pairs += 1
                    seen.add((n, head // inputs.group, key))
    sizes = inputs.q.shape[2] + inputs.v.shape[2]
    results = inputs.heads * inputs.q.shape[1] * inputs.v.shape[2] * 2
    assert prediction.useful_macs == pairs * sizes
    assert prediction.compulsory_bytes == inputs.q.size + results + len(seen) * sizes


def test_cases_have_names_of_their_own():
    cases = list(ADAPTER.cases())
    assert len({case.name for case in cases}) == len(cases)
    random = [case for case in cases if case.name.startswith("random")]
    assert len(random) == 140
    assert len([case for case in random if not case.soak]) == 3
