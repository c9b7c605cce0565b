"""The position map against its specification: every hazard of operations that share keys and buckets."""

import itertools
import random

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code, Status
from hw.oram.core.position import lookahead, position, table
from hw.oram.core.position.log import BucketLog
from hw.oram.core.position.lookahead import Lookahead
from hw.oram.core.position.position import Position
from hw.oram.core.position.recent import RecentBuckets
from hw.oram.core.position.stamps import Stamps, number_bits
from hw.oram.core.position.sweep import Sweep
from sim.golden.oram.image import bucket_images
from tests.hw.oram.core.position.plain import Hbm, golden, ones, touched
from tests.support.gateware.streams import get, put, rule_checker, simulate
from tests.support.proofs.mutants import mutant

#: Maximum cycles of a write beyond ``settle_cycles``, from the beat on; the path takes some of them.
LATE = 8


def small(**changes):
    return OramConfig(**({"log_n": 8, "position_cycles": 16, "settle_cycles": 16} | changes))


def permuted_keys(config, rng, count, buckets):
    """Draw permuted keys in a few buckets of each table, many of them with equal tags."""
    width = config.bucket_bits
    above = [rng.getrandbits(config.key_bits - 2 * width) for _ in range(count)]
    keys = set()
    while len(keys) < count:
        low = rng.randrange(buckets) | rng.randrange(buckets) << width
        keys.add(rng.choice(above) << 2 * width | low)
    return sorted(keys)


def query(config, rng, number, code, permuted, *, rejected=False):
    return {
        "command": {
            "operation": number & ones(config.operation_bits),
            "code": int(code),
            "key": permuted ^ ones(config.key_bits),
            "rejected": rejected,
            "malformed": code > Code.LOAD,
        },
        "permuted": permuted,
        "draw": [rng.getrandbits(128) for _ in range(config.draws)],
    }


async def flush(ctx, dut, config):
    """Send all changes to HBM."""
    ctx.set(dut.flush, 1)
    await ctx.tick()
    ctx.set(dut.flush, 0)
    await ctx.tick()
    while ctx.get(dut.flushing):
        await ctx.tick()
    await ctx.tick().repeat(Sweep.cycles(config))


def run(config, *launches, stall=0.0, query_stall=0.0, seed=0, read=None, rules=False):
    """Clear the map before each launch; return the last one's operations and cycles, live keys, HBM."""
    dut = Position(config)
    hbm = Hbm(
        dut,
        config,
        read_cycles=config.position_cycles if read is None else read,
        write_cycles=config.position.write_cycles + LATE,
        stall=stall / 3,
        seed=seed,
    )
    answers, cycles, live = [], [], []

    async def send(ctx):
        for launch, queries in enumerate(launches):
            hbm.erase()
            ctx.set(dut.clear, 1)
            await ctx.tick()
            ctx.set(dut.clear, 0)
            while ctx.get(dut.clearing):
                await ctx.tick()
            for _ in range(hbm.write_cycles + 1):
                await ctx.tick()
            await put(ctx, dut.query, queries, stall=query_stall, seed=seed)
            while len(answers) <= launch:
                await ctx.tick()
            await flush(ctx, dut, config)
            live.append(ctx.get(dut.live))

    async def receive(ctx):
        for queries in launches:
            cycles.clear()
            answers.append(await get(ctx, dut.operation, len(queries), stall=stall, seed=seed, cycles=cycles))

    checkers = [rule_checker(dut.operation, "operation")]
    if rules:
        for n in range(2):
            checkers += [
                rule_checker(dut.request[n], f"request {n}"),
                rule_checker(dut.write[n], f"write {n}"),
            ]
    simulate(dut, send, receive, background=[hbm.serve, *checkers])
    hbm.settle()
    return answers[-1], cycles, live[-1], hbm


def hold(config, *launches, **how):
    """Compare the last launch with the model: every operation, then every bucket in memory."""
    operations, cycles, live, hbm = run(config, *launches, **how)
    model, wanted = golden(config, launches[-1])
    for at, (found, operation) in enumerate(zip(operations, wanted, strict=True)):
        assert touched(config, found) == operation, f"operation {at}"
    assert live == len(model.position)
    for n in range(2):
        images, cares = bucket_images(model, n, range(config.buckets))
        found = np.frombuffer(b"".join(hbm.content[n]), np.uint8).reshape(images.shape)
        wrong = np.flatnonzero(((found != images) & cares).any(axis=1))
        assert not len(wrong), f"buckets {wrong} of table {n}"
    return wanted, cycles, hbm


def mixed(config, rng, count, keys):
    """Draw operations, half of them on the previous key or on the first."""
    queries, last = [], keys[0]
    for number in range(count):
        last = rng.choice(keys) if rng.random() < 0.5 else rng.choice([last, keys[0]])
        code = rng.choices(list(Code), weights=(1, 4, 6, 5, 1))[0]
        rejected = rng.random() < 0.03
        if rng.random() < 0.03:
            code = 6
        queries.append(query(config, rng, number, code, last, rejected=rejected))
    return queries


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("changes", "stall"),
    [
        ({}, 0.9),
        ({"pad": "always", "items_per_label": 32}, 0.3),
        ({"touch": "both", "log_n": 9, "alpha": 0.5}, 0.0),
        ({"touch": "both", "pad": "always", "key_bits": 32, "bin_split": 1}, 0.7),
        ({"alpha": 0.0, "pad": "always", "interval_cycles": 7}, 0.3),
    ],
)
def test_every_operation_as_specified(changes, stall):
    config = small(**changes)
    rng = random.Random(f"{changes}")
    keys = permuted_keys(config, rng, 70, 2)
    queries = [query(config, rng, number, Code.PUT, key) for number, key in enumerate(keys)]
    queries += mixed(config, rng, 150, keys)
    wanted, _, _ = hold(config, queries, stall=stall, query_stall=stall / 3, seed=3, rules=True)
    assert {operation["status"] for operation in wanted} >= set(Status)


@pytest.mark.sample(1)
@pytest.mark.parametrize(("read_cycles", "query_stall"), [(16, 0.0), (0, 0.9)])
def test_few_keys_whatever_the_hbm_shows(read_cycles, query_stall):
    """Two buckets a table, so that almost every operation needs an unsettled write."""
    config = small()
    rng = random.Random(f"few {read_cycles}")
    keys = permuted_keys(config, rng, 5, 2)
    queries = mixed(config, rng, 200, keys)
    hold(config, queries, read=read_cycles, query_stall=query_stall)


@pytest.mark.soak
def test_cleared_again():
    config = small()
    rng = random.Random(23)
    keys = permuted_keys(config, rng, 9, 2)
    hold(config, mixed(config, rng, 40, keys), mixed(config, rng, 40, keys))


@pytest.mark.soak
def test_full_at_n_keys():
    """N keys fit into the buckets; the next is refused until one is removed."""
    config = small()
    rng = random.Random(5)
    keys = [above << 8 | above for above in range(config.keys)]
    rng.shuffle(keys)
    more = keys[0] | 1 << 40
    codes = [*((Code.LOAD, key) for key in keys), (Code.PUT, more), (Code.PUT, keys[3]), (Code.LOAD, more)]
    codes += [(Code.DELETE, keys[7]), (Code.PUT, more), (Code.LOAD, keys[7]), (Code.GET, keys[7])]
    wanted, _, _ = hold(config, [query(config, rng, n, *operation) for n, operation in enumerate(codes)])
    assert [operation["status"] for operation in wanted[config.keys :]] == [
        Status.FULL, Status.HIT, Status.FULL, Status.HIT, Status.INSERTED, Status.FULL, Status.MISS,
    ]  # fmt: skip
    loaded = [operation["page"] for operation in wanted if operation["code"] == Code.LOAD]
    assert loaded == [[n % config.host_pages] for n in range(len(loaded))]


@pytest.mark.sample(1)
@pytest.mark.parametrize("read_cycles", [0, 16])
def test_four_cycles_an_operation(read_cycles):
    """Inserted, looked up and removed in turn: the same key, keys of the same buckets, and random ones."""
    config = small(inflight=128, touch_cycles=352)
    rng = random.Random(11)
    keys = permuted_keys(config, rng, 3, 1)
    codes = [Code.PUT, Code.GET, Code.DELETE] * 20
    queries = [query(config, rng, n, code, keys[0]) for n, code in enumerate(codes)]
    queries += [query(config, rng, n, code, keys[n // 2 % 3]) for n, code in enumerate(codes)]
    queries += [query(config, rng, n, code, rng.getrandbits(64)) for n, code in enumerate(codes)]
    _, cycles, _ = hold(config, queries, read=read_cycles, seed=1)
    assert {later - earlier for earlier, later in itertools.pairwise(cycles[20:])} == {4}


def test_a_bucket_is_read_and_written_once_while_the_log_has_it():
    """Keys used three times, as far apart as the log's borders, among others; HBM is as slow as may be."""
    config = small(log_n=10, inflight=8)
    rng, sizes = random.Random(29), config.position
    distances = [1, 2, *(limit + more for limit in (sizes.write_back, sizes.log) for more in (-1, 0, 1))]
    count = 2 * max(distances) + 4 * len(distances)
    others = [number % 40 + 20 | (number % 40 + 20) << config.bucket_bits for number in range(count)]
    keys = [other | rng.getrandbits(40) << 2 * config.bucket_bits for other in others]
    for bucket, distance in enumerate(distances):
        begin = next(
            n for n in range(count - 2 * distance) if all(others[n + k * distance] >= 20 for k in range(3))
        )
        for n in range(begin, begin + 3 * distance, distance):
            others[n], keys[n] = bucket, bucket | bucket << config.bucket_bits
    once = 19  # leaves, and is still in the log at the end
    keys[count - (sizes.write_back + sizes.log) // 2] = once | once << config.bucket_bits
    queries = [query(config, rng, number, Code.PUT, key) for number, key in enumerate(keys)]
    _, _, hbm = hold(config, queries, read=config.position.read_cycles)
    assert [piece for _, piece in hbm.written if piece[1] == once] == [(0, once, 0)]
    for bucket, distance in enumerate(distances):
        asked = [of for _, (of, number) in hbm.asked if number == bucket]
        times = 3 if distance >= sizes.log else 1
        assert sorted(asked) == [0] * times + [1] * times, distance
        written = [piece for _, piece in hbm.written if piece[1] == bucket]
        assert written == [(0, bucket, 0)] * (3 if distance > sizes.write_back else 1), distance


def test_the_age_of_an_entry_whose_bucket_stays_in_the_log():
    """Keys of one bucket, used again as late as their stamps' borders; others keep the bucket in the log."""
    config = small(inflight=4)
    rng = random.Random(31)
    window, returns = config.window, 1 << number_bits(config)
    ages = [1, 2, window - 1, window, window + 1, returns, returns + 1, returns + window]
    keys = permuted_keys(config, rng, len(ages) + 2, 1)
    queries = [(Code.PUT, key) for key in keys]
    uses = {}
    for key, age in zip(keys[2:], ages, strict=True):
        first = next(n for n in itertools.count(len(keys)) if not {n, n + age} & {*uses})
        uses |= {first: key, first + age: key}
    queries += [(Code.GET, uses.get(n, keys[n % 2])) for n in range(len(keys), max(uses) + 1)]
    wanted, _, _ = hold(config, [query(config, rng, n, *operation) for n, operation in enumerate(queries)])
    seen = [wanted[number]["age"] for number in sorted(uses)]
    assert {1, 2, window - 1, window} <= {*seen}
    assert seen[-3:] == [0, 0, 0]


#: Seeded bugs: a class, its text, and the module that makes it.
BUGS = {
    "asks in vain": (Lookahead, "found & ~recent.found", "found", position),
    "older places match": (RecentBuckets, "valid & ~match", "valid", lookahead),
    "old marks stay": (BucketLog, "self.keep | takes | leaves", "self.keep | leaves", table),
    "marks do not go on": (BucketLog, "over | self.changed", "self.changed", table),
    "leaves again": (BucketLog, "self.keep | takes | leaves", "self.keep | takes", table),
}


def test_numbers_that_return_are_found(monkeypatch):
    """Without the check an old stamp is taken for a new one."""
    monkeypatch.setattr(table, "Stamps", mutant(Stamps, "back(number) <= most", "back(number) <= 7"))
    with pytest.raises(AssertionError):
        test_the_age_of_an_entry_whose_bucket_stays_in_the_log()


@pytest.mark.sample(2)
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_of_the_log_are_found(bug, monkeypatch):
    original, old, new, module = BUGS[bug]
    monkeypatch.setattr(module, original.__name__, mutant(original, old, new))
    with pytest.raises(AssertionError):
        test_a_bucket_is_read_and_written_once_while_the_log_has_it()
