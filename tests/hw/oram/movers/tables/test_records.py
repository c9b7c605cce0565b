"""Records read whole and by their header, written and erased, against a table of bytes."""

import random

import pytest

from hw.lib.fifo import SHALLOW_DEPTH, Fifo
from hw.lib.place import InlinePlacer
from hw.oram.config import OramConfig
from hw.oram.movers.erase import record_lines
from hw.oram.movers.hbm.line_writer import LineWriter
from hw.oram.movers.tables.records import Records
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
from tests.support.gateware.streams import STALLS, bits_of, grid, put, simulate
from tests.support.oram.workloads import SMALLEST

CONFIG = OramConfig(**(SMALLEST | {"settle_cycles": 4096}), record_ports=4)
UNIT = Records(CONFIG, InlinePlacer())
SIZE, HEADER = CONFIG.record_bytes, 32
VERSION_MASK = (1 << 48) - 1


def table_of(memories, config=CONFIG):
    return Table(memories, ports=config.record_ports, line_bytes=config.record_bytes, swapped=True)


def words(value, count, size):
    return [value >> 8 * size * n & (1 << 8 * size) - 1 for n in range(count)]


def draw_writes(rng, unit, table, written, lines, config=CONFIG):
    """Draw beats to write, and record their effect."""
    writes = []
    for _ in range(40):
        line, beat = rng.choice(lines), rng.randrange(config.record_bytes // HEADER)
        data, strobe = rng.getrandbits(8 * HEADER), rng.getrandbits(HEADER) & rng.choice([-1, 0xF0, 1])
        table.write(written, line, HEADER * beat, data, strobe)
        writes.append(
            bits_of(unit.write.payload, {"line": line, "beat": beat, "data": data, "strobe": strobe})
        )
    return writes


@pytest.mark.parametrize(("stall", "away", "seed"), grid((0.0, 0.7), STALLS))
def test_read_and_write(stall, away, seed):
    """Lines being read are not written; only a page's record returns its version."""
    rng = random.Random(f"{stall} {away} {seed}")
    memories, background = memories_of(UNIT, stall=stall / 2, latency=(1, 40), overtaking=True)
    table, written = table_of(memories), {}
    lines = rng.sample(range(CONFIG.records), CONFIG.records)
    half, border = CONFIG.records // 2, [CONFIG.host_pages - 1, CONFIG.host_pages]
    lines = [line for line in lines if line not in border] + border
    writes = draw_writes(rng, UNIT, table, written, lines[:half])
    touched, fresh = ([rng.choice(lines[half:]) for _ in range(14)] for _ in range(2))
    touched += border
    read = [word for line in touched for word in words(table.content(line, SIZE), SIZE // 64, 64)]
    versions = [
        line | (table.content(line, 8) & VERSION_MASK) << 48 for line in touched if line < CONFIG.host_pages
    ]
    assert 0 < len(versions) < len(touched)
    headers = [table.content(line, HEADER) for line in fresh]
    watch = BusyWatch(UNIT, [UNIT.write], lambda _: 1)
    found = run(
        UNIT,
        [
            (raw(UNIT.touch), touched, stall),
            (raw(UNIT.fresh), fresh, stall),
            (raw(UNIT.write), writes, stall),
        ],
        [
            (UNIT.record, len(read), away),
            (raw(UNIT.version), len(versions), stall / 2),
            (UNIT.header, len(headers), away),
        ],
        background=[*background, watch.watch],
        seed=seed,
    )
    assert found == [read, versions, headers]
    assert written_bytes(memories) == written
    watch.check(memories)


def test_erased():
    """Every record, and the rest of the slices: version 1, and zeros."""
    lines = range(CONFIG.record_ports * record_lines(CONFIG))
    assert len(lines) > CONFIG.records
    written = {}
    memories, background = memories_of(UNIT, stall=0.3, latency=(1, 40))
    for line in lines:
        table_of(memories).write(written, line, 0, 1, (1 << SIZE) - 1)
    run(UNIT, [], [], background=background, then=erase)
    assert written_bytes(memories) == written


@pytest.mark.parametrize("inflight", [4, 128])
def test_there(inflight):
    """From the third cycle after each pulse on, records and headers are taken without a gap."""
    config = OramConfig(**(SMALLEST | {"inflight": inflight}), record_ports=4)
    unit = Records(config, InlinePlacer())
    memories, background = memories_of(unit, stall=0.2, latency=(1, 40), overtaking=True)
    rng, count = random.Random(inflight), 24
    asked = [[rng.randrange(config.records) for _ in range(count)] for _ in range(2)]
    table = table_of(memories, config)

    async def take(ctx, there, stream, length, taken):
        due, cycle, left = [], 0, 0
        tick = ctx.tick().sample(there, stream.valid, stream.payload)
        while len(taken) < count * length:
            if not left and due and due[0] <= cycle:
                left = length
                due.pop(0)
            ctx.set(stream.ready, left > 0)
            _, _, pulse, valid, word = await tick
            if left:
                assert valid
                taken.append(word)
                left -= 1
            if pulse:
                due.append(cycle + 3)
            cycle += 1
        ctx.set(stream.ready, 0)
        await ctx.tick()
        assert not ctx.get(stream.valid)

    records, headers = [], []

    async def ask(ctx):
        await put(ctx, raw(unit.touch), asked[0], stall=0.7)

    async def ask_fresh(ctx):
        await put(ctx, raw(unit.fresh), asked[1], stall=0.7, seed=1)

    async def take_records(ctx):
        ctx.set(unit.version.ready, 1)
        await take(ctx, unit.record_arrived, unit.record, config.record_beats, records)

    async def take_headers(ctx):
        await take(ctx, unit.header_arrived, unit.header, 1, headers)

    simulate(unit, ask, ask_fresh, take_records, take_headers, background=background)
    size = config.record_bytes
    assert records == [word for line in asked[0] for word in words(table.content(line, size), size // 64, 64)]
    assert headers == [table.content(line, HEADER) for line in asked[1]]


def test_versions_follow_each_other():
    """Pages' versions that have arrived have no gap between them, however many bins are touched."""
    config = OramConfig(**(SMALLEST | {"inflight": 128}), record_ports=4)
    unit = Records(config, InlinePlacer())
    _, background = memories_of(unit)
    touched = [line for page in range(16) for line in (config.records - 1 - page, page)]
    gaps, found = [], []

    async def take(ctx):
        await put(ctx, raw(unit.touch), touched)
        for _ in range(100):
            await ctx.tick()
        while len(found) < 16:  # one every second cycle
            ready = not ctx.get(unit.version.ready)
            ctx.set(unit.version.ready, ready)
            _, _, valid, page = await ctx.tick().sample(unit.version.valid, unit.version.payload.page)
            gaps.append(not valid)
            if ready:
                found.append(page)

    simulate(unit, take, background=background)
    assert config.host_pages <= config.records - 16
    assert found == list(range(16))
    assert not any(gaps)


#: From a write to the bus; and the deadline.
DEADLINE = 80
SHORT_CONFIG = OramConfig(**(SMALLEST | {"settle_cycles": DEADLINE}), record_ports=2)
assert SHORT_CONFIG.record_sizes.write_beats > SHALLOW_DEPTH
WAY = LineWriter.LATENCY + Fifo.DEEP_LATENCY - Fifo.LATENCY
SHORT = Records(SHORT_CONFIG, InlinePlacer())
FIRST = bits_of(SHORT.write.payload, {"line": 5, "beat": 1, "data": 3, "strobe": 1})


@pytest.mark.parametrize(("latency", "late"), [(DEADLINE - WAY - 1, 0), (DEADLINE - WAY, 1)])
def test_late(latency, late):
    _, background = memories_of(SHORT, latency=(latency, latency))
    puts = [(raw(SHORT.write), [FIRST], 0)]
    run(SHORT, puts, [], background=background, then=check(late=late, error=0))


@pytest.mark.parametrize("name", ["touch", "fresh", "write"])
def test_error(name):
    at = base_of(1) + 2 * SHORT_CONFIG.record_bytes + (32 if name == "write" else 0)
    _, background = memories_of(SHORT, faulty=frozenset([at]))
    got = {"touch": [(SHORT.record, SHORT_CONFIG.record_beats, 0)], "fresh": [(SHORT.header, 1, 0)]}.get(
        name, []
    )
    for line, wrong in ((4, 0), (5, 1)):
        item = FIRST - 5 + line if name == "write" else line
        puts = [(raw(getattr(SHORT, name)), [item], 0)]
        run(SHORT, puts, got, background=background, then=check(error=wrong, late=0))
