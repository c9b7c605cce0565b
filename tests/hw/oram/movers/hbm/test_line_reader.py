# amaranth: UnusedElaboratable=no
"""Lines read over ports with random delays, against a table."""

import random

import pytest

from hw.errors import InputError
from hw.oram.movers.hbm import line_reader
from hw.oram.movers.hbm.line_reader import LineReader
from hw.oram.movers.hbm.lines import LineRead, Lines
from hw.oram.movers.hbm.read_port import LineReadPort
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import STALLS, Side, built, exchange, grid
from tests.support.proofs.mutants import mutant

#: A bucket; a record cut into blocks of 512 bytes, with its head, and the head alone.
BUCKET = (LineRead(name="bucket", length=128, word_bytes=128),)
RECORD = (
    LineRead(name="record", length=320, word_bytes=64, head_bytes=32),
    LineRead(name="header", length=32, word_bytes=32),
)


def base_of(port):
    return 0x1_0000_0000 * port + 0x3000


def lines_of(port_bytes, line_bytes, *, ports=4, line_bits=9, swapped=False):
    return Lines(
        ports=ports, port_bytes=port_bytes, line_bytes=line_bytes, line_bits=line_bits, swapped=swapped
    )


def bench(lines, reads, *, outstanding=16, depth=3, **model):
    unit = built(LineReader, lines, reads, outstanding=outstanding, depth=depth)
    memories = [AxiMemory(unit.axi[p], seed=p, **model) for p in range(lines.ports)]

    async def place(ctx):
        for p in range(lines.ports):
            ctx.set(unit.base[p], base_of(p))

    background = [bench for memory in memories for bench in memory.testbenches()]
    return unit, memories, [place, *background]


def words_of(memories, lines, line, length, word_bytes):
    port, place = line % lines.ports, line // lines.ports
    content = memories[port].content(base_of(port) + place * lines.line_bytes, lines.line_bytes)
    if lines.swapped and place % 2:
        content = bytes(content[at ^ 32] for at in range(lines.line_bytes))
    return [int.from_bytes(content[at : at + word_bytes], "little") for at in range(0, length, word_bytes)]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("port_bytes", "reads", "stall", "away", "seed"), grid((16, 32, 64), (BUCKET, RECORD), (0.0, 0.7), STALLS)
)
def test_words_in_order_of_requests(port_bytes, reads, stall, away, seed):
    rng = random.Random(f"{port_bytes} {stall} {away} {seed}")
    read_words(rng, lines_of(port_bytes, max(read.length for read in reads)), reads, stall, away, seed)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("depth", "stall", "away", "seed"), grid((1, 3, 32), (0.0, 0.7), STALLS))
def test_swapped_lines(depth, stall, away, seed):
    """Even and odd lines in any order, as many under way as a port has room for."""
    rng = random.Random(f"{depth} {stall} {away} {seed}")
    lines = lines_of(32, 320, ports=2, swapped=True)
    read_words(rng, lines, RECORD, stall, away, seed, depth=depth, count=80)


#: Seeded bugs of swapped lines.
BUGS = {
    "the bit of a line before": ("with m.If(mine & first):", "with m.If(mine & last):"),
    "the bit changes within a line": ("with m.If(Mux(mine, last, first)):", "with m.If(mine | first):"),
    "no bit changes": ("newest.addr.eq(newest.addr + 1)", "newest.addr.eq(newest.addr)"),
    "too few bits": ("1 << (self._depth - 1).bit_length()", "1 << self._depth.bit_length() - 2"),
    "reads begin at the second beat": ("first[0].eq(0)", "first[0].eq(first[0])"),
    "beats of a word the wrong way": ("number[0] == n", "number[0] != n"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("bug", BUGS)
def test_bugs_are_found(bug, monkeypatch):
    monkeypatch.setattr(line_reader, "LineReadPort", mutant(LineReadPort, *BUGS[bug]))
    with pytest.raises(AssertionError):
        test_swapped_lines(8, 0.0, 0.0, 0)


def read_words(rng, lines, reads, stall, away, seed, *, depth=3, count=24):
    """Read ``count`` random lines of each kind, and compare all words."""
    model = {"stall": stall / 2, "latency": (1, 40), "overtaking": True}
    unit, memories, background = bench(lines, reads, depth=depth, **model)
    sides, expected = {}, {}
    for read in reads:
        chosen = [rng.randrange(1 << 9) for _ in range(count)]
        sides[f"{read.name}_request"] = Side(getattr(unit, f"{read.name}_request"), items=chosen)
        streams = [(read.name, read.length, read.word_bytes)]
        if read.head_bytes:
            streams.append((f"{read.name}_head", read.head_bytes, read.head_bytes))
        for name, length, word in streams:
            expected[name] = [w for line in chosen for w in words_of(memories, lines, line, length, word)]
            sides[name] = Side(getattr(unit, name), count=len(expected[name]), stall=away)
    exchange(unit, sides, seed=seed, background=background)
    for name, words in expected.items():
        assert sides[name].received == words, name
    assert all(cycle >= 0 for memory in memories for cycle in memory.cycles["r"])


@pytest.mark.sample(1)
@pytest.mark.parametrize(("swapped", "line"), [(False, 3), (True, 3), (True, 11)])
def test_rate_and_latency(swapped, line):
    """A record and a header every four cycles over ports with a latency of 100; then one alone.

    The head of a swapped odd line comes with its second beat.
    """
    lines = lines_of(32, 256, ports=8, swapped=swapped)
    reads = (
        LineRead(name="record", length=256, word_bytes=64, head_bytes=32),
        LineRead(name="header", length=32, word_bytes=32),
    )
    unit, memories, background = bench(lines, reads, outstanding=128, depth=32, latency=(100, 100))
    rng = random.Random(1)
    count = 100
    records, headers = ([rng.randrange(1 << 9) for _ in range(count)] for _ in range(2))
    sides = {
        "record_request": Side(unit.record_request, items=records),
        "header_request": Side(unit.header_request, items=headers),
        "record": Side(unit.record, count=4 * count),
        "record_head": Side(unit.record_head, count=count),
        "header": Side(unit.header, count=count),
    }
    exchange(unit, sides, background=background)
    assert sides["record"].cycles[-1] < 4 * count + 300
    assert sides["header"].cycles[-1] < 4 * count
    first = min(memory.cycles["ar"][0] for memory in memories)
    assert first == LineReader.ADDRESS_LATENCY

    unit, memories, background = bench(lines, reads, outstanding=128, depth=16, latency=(10, 10))
    sides = {
        "record_request": Side(unit.record_request, items=[line]),
        "record": Side(unit.record, count=4),
        "record_head": Side(unit.record_head, count=1),
    }
    exchange(unit, sides, background=background)
    beats = memories[3].cycles["r"]
    assert sides["record_head"].cycles == [beats[line == 11] + LineReader.DATA_LATENCY]
    assert sides["record"].cycles[0] == beats[1] + LineReader.DATA_LATENCY


def test_a_kind_that_nobody_takes_stops_only_itself():
    lines = lines_of(32, 320)
    unit, memories, background = bench(lines, RECORD)
    rng = random.Random(2)
    records, headers = ([rng.randrange(1 << 9) for _ in range(60)] for _ in range(2))
    sides = {
        "record_request": Side(unit.record_request, items=records[:4]),
        "header_request": Side(unit.header_request, items=headers),
        "header": Side(unit.header, count=60),
    }
    exchange(unit, sides, background=background)
    assert sides["header"].received == [
        w for line in headers for w in words_of(memories, lines, line, 32, 32)
    ]


def test_bad_answer_is_told():
    lines = lines_of(32, 128)
    unit, _, background = bench(lines, BUCKET, faulty=frozenset([base_of(1) + 128 + 40]))
    seen = []

    async def watch(ctx):
        while True:
            seen.append(ctx.get(unit.error))
            await ctx.tick()

    for line, wrong in ((1, 0), (5, 1)):
        sides = {
            "bucket_request": Side(unit.bucket_request, items=[line]),
            "bucket": Side(unit.bucket, count=1),
        }
        exchange(unit, sides, background=[*background, watch])
        assert seen[-1] == wrong


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"length": 100}, "length"),
        ({"word_bytes": 48}, "word_bytes"),
        ({"length": 512}, "length"),
        ({"word_bytes": 16}, "word_bytes"),
        ({"swapped": True}, "word_bytes"),
        ({"swapped": True, "word_bytes": 64, "head_bytes": 64}, "head_bytes"),
        ({"swapped": True, "port_bytes": 64}, "port_bytes"),
    ],
)
def test_refused(change, named):
    shape = {name: change.pop(name) for name in ("swapped", "port_bytes") if name in change}

    def make():
        read = LineRead(**({"name": "bucket", "length": 128, "word_bytes": 128} | change))
        lines = Lines(**({"ports": 4, "port_bytes": 32, "line_bytes": 128, "line_bits": 9} | shape))
        LineReader(lines, (read,), outstanding=8)

    with pytest.raises(InputError, match=named):
        make()
