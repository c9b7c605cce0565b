"""Beats written into lines over ports with random delays, against a table of bytes."""

import random

import pytest

from hw.oram.movers.hbm.line_cutter import LineCutter
from hw.oram.movers.hbm.line_writer import LineWriter
from hw.oram.movers.hbm.lines import Lines
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import STALLS, Side, exchange, grid, put, simulate


def base_of(port):
    return 0x1_0000_0000 * port + 0x3000


def lines_of(port_bytes, line_bytes, ports=4):
    return Lines(ports=ports, port_bytes=port_bytes, line_bytes=line_bytes, line_bits=9)


def bench(lines, *, deadline=4000, depth=4, **model):
    unit = LineWriter(lines, deadline=deadline, depth=depth)
    memories = [AxiMemory(unit.axi[p], seed=p, **model) for p in range(lines.ports)]

    async def place(ctx):
        for p in range(lines.ports):
            ctx.set(unit.base[p], base_of(p))

    return unit, memories, [place, *(bench for memory in memories for bench in memory.testbenches())]


async def answered(ctx, unit):
    await ctx.tick()
    while ctx.get(unit.busy):
        await ctx.tick()


def random_beats(rng, lines, count):
    size = lines.port_bytes
    return [
        {
            "line": rng.randrange(16),
            "beat": rng.randrange(lines.beats),
            "data": rng.getrandbits(8 * size),
            "strobe": rng.getrandbits(size),
        }
        for _ in range(count)
    ]


def written(lines, beats):
    """Return the bytes of each port after the beats, by address."""
    bytes_of = [{} for _ in range(lines.ports)]
    for beat in beats:
        line, size = beat["line"], lines.port_bytes
        port = line % lines.ports
        first = base_of(port) + line // lines.ports * lines.line_bytes + beat["beat"] * size
        for lane in range(size):
            if beat["strobe"] >> lane & 1:
                bytes_of[port][first + lane] = beat["data"] >> 8 * lane & 0xFF
    return bytes_of


@pytest.mark.parametrize(("port_bytes", "stall", "away", "seed"), grid((16, 32, 64), (0.0, 0.7), STALLS))
def test_bytes_are_written(port_bytes, stall, away, seed):
    rng = random.Random(f"{port_bytes} {stall} {away} {seed}")
    lines = lines_of(port_bytes, 320)
    beats = random_beats(rng, lines, 60)
    unit, memories, background = bench(
        lines, stall=away, latency=(1, 40), address_after_data=bool(port_bytes == 32)
    )

    async def drive(ctx):
        await put(ctx, unit.i, beats, stall=stall, seed=seed)
        await answered(ctx, unit)
        assert sum(len(memory.cycles["b"]) for memory in memories) == len(beats)
        assert not ctx.get(unit.late)
        assert not ctx.get(unit.error)

    simulate(unit, drive, background=background)
    assert [memory.bytes for memory in memories] == written(lines, beats)


def test_the_end_of_the_last_line():
    """Lines a little longer than a power of two: the last ends beyond another one."""
    lines = Lines(ports=4, port_bytes=32, line_bytes=1088, line_bits=5)
    beats = [{"line": line, "beat": 33, "data": line + 1, "strobe": 3} for line in range(32)]
    unit, memories, background = bench(lines)

    async def drive(ctx):
        await put(ctx, unit.i, beats)
        await answered(ctx, unit)

    simulate(unit, drive, background=background)
    assert [memory.bytes for memory in memories] == written(lines, beats)


def test_rate_and_latency():
    """One beat a cycle; one port alone too."""
    lines = lines_of(32, 256, ports=2)
    for ports in (2, 1):
        beats = [{"line": n % ports, "beat": n % 8, "data": n, "strobe": 1} for n in range(120)]
        unit, memories, background = bench(lines, depth=32, latency=(20, 20))

        async def drive(ctx, unit=unit, beats=beats):
            await put(ctx, unit.i, beats)
            await answered(ctx, unit)

        simulate(unit, drive, background=background)
        cycles = memories[0].cycles["aw"]
        assert cycles == memories[0].cycles["w"]
        assert cycles == [LineWriter.LATENCY + ports * n for n in range(120 // ports)]


@pytest.mark.parametrize(("latency", "late"), [(40, 0), (41, 1)])
def test_age_of_the_oldest_unanswered(latency, late):
    """From ``i`` to the response: the writer's own cycles, then the memory's."""
    lines = lines_of(32, 128)
    deadline = LineWriter.LATENCY + 41
    unit, _memories, background = bench(lines, deadline=deadline, depth=16, latency=(latency, latency))
    rng = random.Random(3)

    async def drive(ctx):
        for _ in range(30):
            await put(ctx, unit.i, random_beats(rng, lines, 1))
            await ctx.tick().repeat(rng.randint(1, 8))
        await answered(ctx, unit)
        await ctx.tick().repeat(2 * lines.ports)
        assert ctx.get(unit.late) == late

    simulate(unit, drive, background=background)


def test_no_response_at_all_is_late():
    lines = lines_of(32, 128)
    unit = LineWriter(lines, deadline=60)

    async def drive(ctx):
        await put(ctx, unit.i, random_beats(random.Random(4), lines, 1))
        for cycle in range(80):
            assert ctx.get(unit.late) == 0 or cycle >= 59
            await ctx.tick()
        assert ctx.get(unit.late) == 1
        assert ctx.get(unit.busy) == 1

    simulate(unit, drive)


def test_bad_answer_is_told():
    lines = lines_of(32, 128)
    unit, _, background = bench(lines, faulty=frozenset([base_of(1) + 32]))

    async def drive(ctx):
        for line, wrong in ((0, 0), (1, 1)):
            await put(ctx, unit.i, [{"line": line, "beat": 1, "data": 0, "strobe": 1}])
            await answered(ctx, unit)
            await ctx.tick()
            assert ctx.get(unit.error) == wrong

    simulate(unit, drive, background=background)


@pytest.mark.parametrize(("port_bytes", "stall", "away", "seed"), grid((16, 32, 64), (0.0, 0.7), STALLS))
def test_lines_are_cut(port_bytes, stall, away, seed):
    rng = random.Random(f"{port_bytes} {stall} {away} {seed}")
    lines = lines_of(port_bytes, 128)
    unit = LineCutter(lines)
    whole, beats, cycles = [], [], []
    for _ in range(24):
        strobe = 0
        while not strobe:
            for at in rng.choices(range(128), k=rng.choice([1, 2, 3, 40])):
                strobe |= 1 << at
        line = {"line": rng.randrange(1 << 9), "data": rng.getrandbits(1024), "strobe": strobe}
        whole.append(line)
        for beat in range(lines.beats):
            if mask := strobe >> port_bytes * beat & (1 << port_bytes) - 1:
                data = line["data"] >> 8 * port_bytes * beat & (1 << 8 * port_bytes) - 1
                beats.append({"line": line["line"], "beat": beat, "data": data, "strobe": mask})
                cycles.append(LineCutter.LATENCY + len(beats) + len(whole) - 2)
    sides = {
        "i": Side(unit.i, items=whole, stall=stall),
        "o": Side(unit.o, count=len(beats), stall=away),
    }
    exchange(unit, sides, seed=seed)
    assert sides["o"].received == beats
    assert stall or away or sides["o"].cycles == cycles
