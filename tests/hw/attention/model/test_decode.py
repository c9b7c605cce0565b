"""Jobs that decode: which ones do, in which order, what they read, and how long that takes."""

import dataclasses

import numpy as np
import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core.drain import Drain
from hw.attention.core.timing import CoreTiming
from hw.attention.driver.division import divide
from hw.attention.driver.shapes import JobShape
from hw.attention.driver.workload import AttentionWorkload
from hw.attention.model.launch import launch_cycles
from hw.attention.model.phase import PhaseTiming
from hw.attention.model.traffic import traffic
from hw.board import load_board
from tests.support.attention.cycles import core_cycles, pass_shapes
from tests.support.boards import of_fixed_latency

BOARD = load_board("u55c")
#: Sixteen cells, each of which has a port of keys and one of values.
FULL = AttentionConfig(
    rows=16,
    tile_keys=32,
    streams=2,
    ports_per_stream=8,
    result_ports=4,
    port_bits=512,
    merge_lanes=4,
    cached_keys=8192,
    paged=True,
    decode=True,
)
SMALL = AttentionConfig(
    rows=4,
    lanes=32,
    folds=2,
    tile_keys=16,
    streams=2,
    ports_per_stream=2,
    port_bits=256,
    merge_lanes=2,
    cached_keys=64,
    decode=True,
)


def shares(config=FULL, **launch):
    sizes = {"heads": 8, "query_size": 64, "value_size": 64}
    return divide(AttentionWorkload(**sizes | launch), config)


def kinds(**launch):
    """Return of each job in order whether it decodes, and its packed heads."""
    return [(share.shape.decode, share.shape.pack) for share in shares(**launch)]


@pytest.mark.parametrize(
    ("launch", "wanted"),
    [
        ({"queries": (1,), "keys": (8192,)}, [(True, 1)]),
        ({"queries": (2,), "keys": (8192,), "causal": True}, [(True, 1)]),
        ({"queries": (512,), "keys": (8192,)}, [(False, 1)]),
        # Two heads that share keys are two rows.
        ({"queries": (1,), "keys": (8192,), "kv_heads": 4}, [(True, 2)]),
        # Eight are four passes that decode; sixteen are the rows of one that does not.
        ({"queries": (1,), "keys": (8192,), "kv_heads": 1}, [(True, 2)]),
        ({"queries": (1,), "keys": (8192,), "heads": 16, "kv_heads": 1}, [(False, 16)]),
        # The combination of a pass takes as long as the multiplications of one of 260 keys.
        ({"queries": (1,), "keys": (250,)}, [(False, 1)]),
        ({"queries": (1,), "keys": (270,)}, [(True, 1)]),
        ({"queries": (1,), "keys": (8192,), "causal": True, "window": 250}, [(False, 1)]),
        # What the user says of packed heads holds for both.
        ({"queries": (1,), "keys": (8192,), "kv_heads": 1, "pack": 1}, [(True, 1)]),
        ({"queries": (1,), "keys": (8192,), "kv_heads": 1, "pack": 3}, [(False, 3)]),
        # Neither bitmaps nor pages.
        ({"queries": (1,), "keys": (8192,), "page_keys": 1024}, [(False, 1)]),
        ({"queries": (1,), "keys": (8192,), "bitmaps": ((("1" * 128,),),)}, [(False, 1)]),
    ],
)
def test_which_jobs_decode(launch, wanted):
    assert kinds(**launch) == wanted


def test_no_job_decodes_without_gates_for_it():
    config = dataclasses.replace(FULL, decode=False)
    assert not any(share.shape.decode for share in shares(config, queries=(1,), keys=(8192,)))


@pytest.mark.sample(5)
@pytest.mark.parametrize("seed", range(30))
def test_what_decodes_takes_fewer_cycles(seed):
    """By the estimate it does; by the prediction it does not take more."""
    rng = np.random.default_rng(seed)
    group = int(rng.choice([1, 2, 4, 8]))
    (share,) = shares(
        heads=4 * group,
        kv_heads=4,
        queries=(int(rng.choice([1, 2, 5, 20])),),
        keys=(int(np.exp(rng.uniform(5, 9))),),
        causal=bool(rng.random() < 0.5),
        value_size=int(rng.choice([64, 128])),
    )
    own = share.shape
    packs = range(1, group + 1)
    others = [dataclasses.replace(own, pack=pack, decode=not own.decode) for pack in packs]
    allowed = [job for job in others if not job.decode or job.pack <= 2]
    least = min(sum(launch_cycles(FULL, BOARD, [job])) for job in allowed)
    assert sum(launch_cycles(FULL, BOARD, [own])) <= 1.02 * least


def test_jobs_of_a_kind_follow_one_another_behind_the_first():
    """Five sequences, and heads of two settings: what is in the caches is of use within a kind only."""
    lengths = {"queries": (1, 64, 1, 64, 1), "keys": (4096, 64, 4096, 64, 4096)}
    found = shares(**lengths, heads=4, kv_heads=1, settings=(0, 0, 1, 1))
    assert [(share.sequence, share.heads.start) for share in found] == [
        *((n, head) for n in (0, 2, 4) for head in (0, 2)),
        *((n, head) for n in (1, 3) for head in (0, 2)),
    ]
    assert [share.shape.decode for share in found] == [True] * 6 + [False] * 4
    assert [share.shape.reuse_kv for share in found] == [False] * 6 + [False, True] * 2
    turned = {"queries": lengths["queries"][1:], "keys": lengths["keys"][1:]}
    assert [share.sequence for share in shares(**turned, heads=4)] == [0, 2, 1, 3]


def test_heads_that_share_keys_may_differ():
    """Twelve heads of a group fill the rows of a pass; the four others, of other settings, decode."""
    found = shares(queries=(1,), keys=(8192,), heads=32, kv_heads=2, settings=2 * (*(12 * (0,)), *(4 * (1,))))
    places = [(share.heads.start, share.shape.decode, share.shape.reuse_kv) for share in found]
    assert places == [(0, False, False), (16, False, False), (12, True, False), (28, True, False)]


def rows_met(job, config):
    """List of every pass the rows of K that its queries meet, by looking at each; of none the first."""
    found = []
    for first in range(0, job.queries, 2 // job.pack):
        met = []
        for query in range(first, min(first + 2 // job.pack, job.queries)):
            position = query + job.keys - job.queries
            begin = max(0, position - job.window + 1) if job.window else 0
            end = position + 1 if job.causal else job.keys
            met += [key // 4 for key in range(begin, end)]
        found.append(range(min(met, default=0), max(met, default=0) + 1))
    return found * (job.heads // job.kv_group) * -(-job.kv_group // job.pack)


def random_job(rng):
    keys = int(rng.choice([rng.integers(1, 9), rng.integers(1, 300)]))
    group = int(rng.integers(1, 4))
    return JobShape(
        queries=int(rng.integers(1, 10)),
        keys=keys,
        heads=group * int(rng.integers(1, 3)),
        kv_group=group,
        pack=int(rng.integers(1, min(group, 2) + 1)),
        query_size=16 * int(rng.integers(1, 5)),
        value_size=16 * int(rng.integers(1, 5)),
        causal=bool(rng.random() < 0.5),
        window=int(rng.choice([0, rng.integers(1, 60)])),
        decode=True,
    )


@pytest.mark.parametrize("seed", range(40))
def test_every_pass_reads_its_rows_of_all_ports(seed):
    rng = np.random.default_rng(seed)
    job = random_job(rng)
    rows = rows_met(job, SMALL)
    passes = list(job.passes(SMALL))
    assert [this.shape.keys for this in passes] == [(len(met),) for met in rows]
    for this, met in zip(passes, rows, strict=True):
        (tiles,) = this.tiles
        firsts = (16 * tiles.numbers + tiles.leads).tolist()
        given = [
            row
            for first, count in zip(firsts, tiles.keys, strict=True)
            for row in range(first, first + count)
        ]
        assert given == list(met)
        assert set(tiles.numbers.tolist()) == {row // 16 for row in met}
        assert 1 <= this.shape.rows <= 2
    assert sum(this.shape.rows for this in passes) == job.heads * job.queries
    moved = traffic(SMALL, [job])
    # Rows in memory have whole parts of 32 elements.
    parts = [-(-size // 32) for size in (job.query_size, job.value_size)]
    # Passes of one query of each head take what the first one of their K/V head has read, if there is room.
    keeps = job.queries <= 2 // job.pack and -(-job.keys // 4) <= 256 // max(parts)
    read = [met for this, met in zip(passes, rows, strict=True) if this.opens_head or not keeps]
    assert [this.again for this in passes] == [keeps and not this.opens_head for this in passes]
    assert [this.keep for this in passes[:-1]] == [this.again for this in passes[1:]]
    assert [moved.key_bytes, moved.value_bytes] == [4 * 32 * sum(map(len, read)) * each for each in parts]
    assert moved.query_bytes == job.heads * job.queries * 32 * parts[0]


def test_jobs_between_those_that_decode_read_whole_parts_once():
    job = JobShape(queries=9, keys=60, heads=2, query_size=48, value_size=16)
    decode = dataclasses.replace(job, queries=1, decode=True)
    for jobs in ([job], [decode, job], [job, decode]):
        moved = traffic(SMALL, jobs)
        assert moved.key_bytes == 2 * 60 * 64 * len(jobs)
        assert moved.value_bytes == 2 * 60 * 32 * len(jobs)


def decoded(config, **job):
    return core_cycles(config, pass_shapes(config, decode=True, **job), decode=True)


def test_one_pass_by_arithmetic():
    """Queries; keys; last key to its logit; last tile to its sums, which are joined; division; results."""
    timing, phase = CoreTiming(FULL), PhaseTiming(FULL, decode=True)
    steps = 8 * 16
    # Two rounds over eight cells, and three cycles of shifts; then lanes, and from these to results.
    tail = 2 * 8 + 3 + steps + timing.drained - timing.normalize - FULL.merge_steps + 2
    wanted = 1 + 256 + timing.ready + phase.behind + 32 + timing.final + tail + 4 + Drain.LATENCY
    assert decoded(FULL, queries=1, keys=4096) == wanted


def test_passes_of_many_keys_follow_without_a_gap():
    few, many = (decoded(FULL, queries=1, keys=8192, heads=heads) for heads in (2, 10))
    assert many - few == 8 * 512


def test_passes_of_few_keys_wait_for_the_combination():
    """Lanes of one pass follow those of another, but for two cycles between a pass's sums and its lanes."""
    few, many = (decoded(FULL, queries=1, keys=512, heads=heads) for heads in (8, 16))
    assert many - few == 8 * (8 * 16 + 2)


def test_memory_sets_the_pace():
    job = JobShape(queries=1, keys=8192, heads=12, query_size=64, value_size=64, decode=True)
    cycles = sum(launch_cycles(FULL, BOARD, [job]))
    realistic = BOARD.memory.realistic_bytes_per_second / (BOARD.clock_mhz * 1e6)
    assert 0.95 < traffic(FULL, [job]).moved_bytes / realistic / cycles < 1


def test_a_change_of_mode_is_a_launch():
    prefill = JobShape(queries=64, keys=256, heads=2, query_size=64, value_size=64)
    decode = JobShape(queries=1, keys=2048, heads=3, query_size=64, value_size=64, decode=True)
    for board in (BOARD, of_fixed_latency(BOARD)):
        apart = [sum(launch_cycles(FULL, board, [job])) for job in (prefill, decode)]
        together = sum(launch_cycles(FULL, board, [prefill, decode]))
        # Of the second run refreshes come at other times, where there are any.
        assert (together == sum(apart)) == (board != BOARD)
        assert abs(together - sum(apart)) < BOARD.cycles(BOARD.memory.timing.refresh_ns)
        assert sum(launch_cycles(FULL, board, [decode, decode])) < 2 * apart[1]
