"""Buckets of both tables read, written and erased over their ports, against tables of bytes."""

import random

import pytest

from hw.lib.place import InlinePlacer
from hw.oram.config import BUCKET_BYTES, OramConfig
from hw.oram.core.layouts import HBM_BEAT_BYTES
from hw.oram.core.position.lookahead import TABLES
from hw.oram.movers.hbm.line_writer import LineWriter
from hw.oram.movers.tables.buckets import Buckets
from tests.hw.oram.movers.tables.ports import (
    BusyWatch,
    Table,
    base_of,
    check,
    erase,
    memories_of,
    raw,
    run,
    written_bytes,
)
from tests.support.gateware.streams import STALLS, grid
from tests.support.oram.workloads import SMALLEST

CONFIG = OramConfig(**(SMALLEST | {"settle_cycles": 4096}), position_ports=4)
UNIT = Buckets(CONFIG, InlinePlacer())
BITS = 8 * HBM_BEAT_BYTES


def tables_of(memories):
    ports = CONFIG.position_ports // TABLES
    return [Table(memories, first=n * ports, ports=ports, line_bytes=BUCKET_BYTES) for n in range(TABLES)]


def word(line, beat, data, strobe):
    at = CONFIG.bucket_bits
    return line | beat << at | data << at + 2 | strobe << at + 2 + BITS


@pytest.mark.parametrize(("stall", "away", "seed"), grid((0.0, 0.7), STALLS))
def test_read_and_write(stall, away, seed):
    rng = random.Random(f"{stall} {away} {seed}")
    memories, background = memories_of(UNIT, stall=stall / 2, latency=(1, 40), overtaking=True)
    half, expected, written, puts, gets = CONFIG.buckets // 2, [], {}, [], []
    for n, table in enumerate(tables_of(memories)):
        asked = [rng.randrange(half, 2 * half) for _ in range(24)]
        writes = []
        for _ in range(24):
            line, beat, data = rng.randrange(half), rng.randrange(4), rng.getrandbits(BITS)
            strobe = rng.getrandbits(HBM_BEAT_BYTES)
            writes.append(word(line, beat, data, strobe))
            table.write(written, line, HBM_BEAT_BYTES * beat, data, strobe)
        expected.append([table.content(line, BUCKET_BYTES) for line in asked])
        puts += [(UNIT.request[n], asked, stall), (raw(UNIT.write[n]), writes, stall)]
        gets.append((raw(UNIT.bucket[n]), len(asked), away))
    watch = BusyWatch(UNIT, UNIT.write, lambda _: 1)
    assert run(UNIT, puts, gets, background=[*background, watch.watch], seed=seed) == expected
    assert written_bytes(memories) == written
    watch.check(memories)


def test_erased():
    """Every bucket becomes zeros."""
    written = {}
    memories, background = memories_of(UNIT, stall=0.3, latency=(1, 40))
    for table in tables_of(memories):
        for line in range(CONFIG.buckets):
            table.write(written, line, 0, 0, (1 << BUCKET_BYTES) - 1)
    run(UNIT, [], [], background=background, then=erase)
    assert written_bytes(memories) == written


#: Cycles from a write to the bus; and the deadline.
WAY, DEADLINE = LineWriter.LATENCY, 80
SHORT = Buckets(OramConfig(**(SMALLEST | {"settle_cycles": DEADLINE}), position_ports=2), InlinePlacer())


@pytest.mark.parametrize(("latency", "late"), [(DEADLINE - WAY - 1, 0), (DEADLINE - WAY, 1)])
def test_late(latency, late):
    then = check(late=late, error=0)
    for table in range(TABLES):
        _, background = memories_of(SHORT, latency=(latency, latency))
        puts = [(raw(SHORT.write[table]), [word(3, 1, 5, 1)], 0)]
        run(SHORT, puts, [], background=background, then=then)


@pytest.mark.parametrize("table", range(TABLES))
@pytest.mark.parametrize("way", ["read", "write"])
def test_error(table, way):
    at = base_of(table) + 3 * BUCKET_BYTES + 40
    _, background = memories_of(SHORT, faulty=frozenset([at]))
    for lines, wrong in (([2, 4], 0), ([2, 3, 4], 1)):
        puts, gets = [(SHORT.request[table], lines, 0)], [(raw(SHORT.bucket[table]), len(lines), 0)]
        if way == "write":
            puts, gets = [(raw(SHORT.write[table]), [word(line, 1, 5, 1) for line in lines], 0)], []
        run(SHORT, puts, gets, background=background, then=check(error=wrong, late=0))
