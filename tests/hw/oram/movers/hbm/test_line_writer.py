"""Beats written into lines over ports with random delays, against a table of bytes."""

import random

import pytest

from hw.oram.movers.hbm import line_writer, write_port
from hw.oram.movers.hbm.eraser import Eraser
from hw.oram.movers.hbm.line_writer import LineWriter
from hw.oram.movers.hbm.lines import Lines
from hw.oram.movers.hbm.write_port import LineWritePort
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import STALLS, grid, put, simulate
from tests.support.proofs.mutants import mutant


def base_of(port):
    return 0x1_0000_0000 * port + 0x3000


def lines_of(port_bytes, line_bytes, *, ports=4, swapped=False):
    return Lines(ports=ports, port_bytes=port_bytes, line_bytes=line_bytes, line_bits=9, swapped=swapped)


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
        port, place = line % lines.ports, line // lines.ports
        at = beat["beat"] ^ 1 if lines.swapped and place % 2 else beat["beat"]
        first = base_of(port) + place * lines.line_bytes + at * size
        for lane in range(size):
            if beat["strobe"] >> lane & 1:
                bytes_of[port][first + lane] = beat["data"] >> 8 * lane & 0xFF
    return bytes_of


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("shape", "stall", "away", "seed"),
    grid(((16, False), (32, True), (64, False), (32, False)), (0.0, 0.7), STALLS),
)
def test_bytes_are_written(shape, stall, away, seed):
    rng = random.Random(f"{shape} {stall} {away} {seed}")
    port_bytes, swapped = shape
    lines = lines_of(port_bytes, 320, swapped=swapped)
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


#: Bytes of a beat and of a line, lines behind a port, the first beat of an empty one, and whether odd ones
#: are swapped. The slices have whole bursts, bursts with a short one at the end, or a beat alone.
SLICES = [
    (32, 128, 12, 0, False),
    (32, 256, 13, 1, True),
    (32, 320, 5, 1, False),
    (32, 64, 7, 5, True),
    (16, 64, 3, 0xA5 << 40, False),
    (64, 64, 1, 3, False),
]


def erased(lines):
    """Return the bytes of each port after the erasure, by address."""
    even = lines.head.to_bytes(lines.line_bytes, "little")
    odd = bytes(even[at ^ 32] for at in range(lines.line_bytes)) if lines.swapped else even
    rows = b"".join((even, odd)[place % 2] for place in range(lines.slice_lines))
    return [dict(enumerate(rows, base_of(port))) for port in range(lines.ports)]


def erase_between_writes(shape, stall):
    """Write beats before, during and after an erasure; return the memories."""
    port_bytes, line_bytes, count, head, swapped = shape
    lines = Lines(
        ports=2,
        port_bytes=port_bytes,
        line_bytes=line_bytes,
        line_bits=6,
        slice_lines=count,
        head=head,
        swapped=swapped,
    )
    rng = random.Random(f"{shape} {stall}")
    depth = 4 if stall else 70  # in LUT RAM, or in block RAM
    unit, memories, background = bench(lines, depth=depth, stall=stall, latency=(30, 40))
    expected = erased(lines)

    def beats(number):
        return [one | {"line": one["line"] % (2 * count)} for one in random_beats(rng, lines, number)]

    async def write(ctx):
        await put(ctx, unit.i, beats(20))
        assert not ctx.get(unit.erased)
        ctx.set(unit.erase, 1)
        await put(ctx, unit.i, beats(30 + 2 * lines.slice_beats), stall=stall)

    async def watch(ctx):
        cycles = 0
        while not ctx.get(unit.erased):
            await ctx.tick()
            cycles += 1
            assert cycles < 5 * lines.slice_beats + 250, "whatever is written"
        assert [memory.bytes for memory in memories] == expected
        assert not any(memory.under_way for memory in memories)
        await ctx.tick().repeat(300)
        assert [memory.bytes for memory in memories] == expected, "later beats are dropped"
        ctx.set(unit.erase, 0)
        await ctx.tick().repeat(4)
        assert not ctx.get(unit.erased)
        await put(ctx, unit.i, [{"line": 1, "beat": 0, "data": 9, "strobe": 1}])
        await answered(ctx, unit)
        assert memories[1].bytes[base_of(1)] == 9
        assert not ctx.get(unit.late)
        assert not ctx.get(unit.error)

    simulate(unit, write, watch, background=background)
    return lines, memories


@pytest.mark.sample(2)
@pytest.mark.parametrize("shape", SLICES)
@pytest.mark.parametrize("stall", [0.0, 0.7])
def test_slices_are_erased(shape, stall):
    lines, memories = erase_between_writes(shape, stall)
    if not stall:  # a beat a cycle
        for memory in memories:
            beats = [n for n, (_, count) in enumerate(memory.writes) for _ in range(count)]
            long = [
                cycle for cycle, n in zip(memory.cycles["w"], beats, strict=True) if memory.writes[n][1] > 1
            ]
            if lines.slice_beats % 16 != 1 and lines.slice_beats > 1:
                assert long == [*range(long[0], long[0] + lines.slice_beats)]


#: Seeded bugs.
BUGS = {
    "a beat too few": (Eraser, "final.eq(out.beat == beats - 2)", "final.eq(out.beat == beats - 3)"),
    "an answer too few": (Eraser, "unanswered.eq(bursts)", "unanswered.eq(bursts - 1)"),
    "a wrong head": (Eraser, "at_last = place == line_beats - 1", "at_last = place == line_beats - 2"),
    "no line is odd": (Eraser, "odd.eq(odd ^ (swapped & at_last))", "odd.eq(0)"),
    "odd lines have no head": (Eraser, "odd & (at_first | at_last)", "odd & at_last"),
    "even lines have no head": (Eraser, "odd & (at_first | at_last)", "odd & at_first"),
    "answers of earlier beats count": (LineWritePort, "eraser.idle.eq(times.empty)", "eraser.idle.eq(1)"),
    "beats are not dropped": (LineWritePort, "times.i.ready & ~drops", "times.i.ready"),
    "bytes are not zeros": (LineWritePort, "[zeros.eq(0), strobe.eq(-1)]", "strobe.eq(-1)"),
    "bytes are not written": (LineWritePort, "[zeros.eq(0), strobe.eq(-1)]", "zeros.eq(0)"),
    "a port is not erased": (LineWriter, "port.erase.eq(erase)", "port.erase.eq(erase & (p != 1))"),
    "a port is not awaited": (
        LineWriter,
        "port.erased for port in ports).all()",
        "port.erased for port in ports).any()",
    ),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_found(bug, monkeypatch):
    original, old, new = BUGS[bug]
    changed = mutant(original, old, new)
    if original is Eraser:
        monkeypatch.setattr(write_port, "Eraser", changed)
    elif original is LineWritePort:
        monkeypatch.setattr(line_writer, "LineWritePort", changed)
    else:
        monkeypatch.setitem(globals(), "LineWriter", changed)
    with pytest.raises(AssertionError):
        erase_between_writes(SLICES[1], 0.7)


def test_an_error_while_it_erases():
    lines = Lines(ports=1, port_bytes=32, line_bytes=128, line_bits=3)
    for address, wrong in ((base_of(0) + 1024, 0), (base_of(0) + 1023, 1)):
        unit, _, background = bench(lines, faulty=frozenset([address]))

        async def drive(ctx, unit=unit, wrong=wrong):
            ctx.set(unit.erase, 1)
            while not ctx.get(unit.erased):
                await ctx.tick()
            assert ctx.get(unit.error) == wrong

        simulate(unit, drive, background=background)
