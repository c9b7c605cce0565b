# amaranth: UnusedElaboratable=no
"""Lines read over ports with random delays, against a table."""

import random

import pytest

from hw.errors import InputError
from hw.oram.movers.hbm.line_reader import LineReader
from hw.oram.movers.hbm.lines import LineRead, Lines
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import STALLS, Side, exchange, grid

#: A bucket; a record cut into blocks of 512 bytes, with its head, and the head alone.
BUCKET = (LineRead(name="bucket", length=128, word_bytes=128),)
RECORD = (
    LineRead(name="record", length=320, word_bytes=64, head_bytes=32),
    LineRead(name="header", length=32, word_bytes=32),
)


def base_of(port):
    return 0x1_0000_0000 * port + 0x3000


def lines_of(port_bytes, line_bytes, *, ports=4, line_bits=9):
    return Lines(ports=ports, port_bytes=port_bytes, line_bytes=line_bytes, line_bits=line_bits)


def bench(lines, reads, *, outstanding=16, depth=3, **model):
    unit = LineReader(lines, reads, outstanding=outstanding, depth=depth)
    memories = [AxiMemory(unit.axi[p], seed=p, **model) for p in range(lines.ports)]

    async def place(ctx):
        for p in range(lines.ports):
            ctx.set(unit.base[p], base_of(p))

    background = [bench for memory in memories for bench in memory.testbenches()]
    return unit, memories, [place, *background]


def words_of(memories, lines, line, length, word_bytes):
    port = line % lines.ports
    content = memories[port].content(base_of(port) + line // lines.ports * lines.line_bytes, length)
    return [int.from_bytes(content[at : at + word_bytes], "little") for at in range(0, length, word_bytes)]


@pytest.mark.parametrize(
    ("port_bytes", "reads", "stall", "away", "seed"), grid((16, 32, 64), (BUCKET, RECORD), (0.0, 0.7), STALLS)
)
def test_words_in_order_of_requests(port_bytes, reads, stall, away, seed):
    rng = random.Random(f"{port_bytes} {stall} {away} {seed}")
    lines = lines_of(port_bytes, max(read.length for read in reads))
    model = {"stall": stall / 2, "latency": (1, 40), "overtaking": True}
    unit, memories, background = bench(lines, reads, **model)
    sides, expected = {}, {}
    for read in reads:
        chosen = [rng.randrange(1 << 9) for _ in range(24)]
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


def test_rate_and_latency():
    """A record and a header every four cycles over ports with a latency of 100; then one alone."""
    lines = lines_of(32, 256, ports=8)
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
        "record_request": Side(unit.record_request, items=[3]),
        "record": Side(unit.record, count=4),
        "record_head": Side(unit.record_head, count=1),
    }
    exchange(unit, sides, background=background)
    beats = memories[3].cycles["r"]
    assert sides["record_head"].cycles == [beats[0] + LineReader.DATA_LATENCY]
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
    ],
)
def test_refused(change, named):
    def make():
        read = LineRead(**({"name": "bucket", "length": 128, "word_bytes": 128} | change))
        LineReader(lines_of(32, 128), (read,), outstanding=8)

    with pytest.raises(InputError, match=named):
        make()
