# amaranth: UnusedElaboratable=no
"""The weight stream: every beat in program order, whatever memory and array do."""

import random

import pytest

from hw.lib.place import InlinePlacer
from hw.network.matrix.weight_stream import WeightStream
from tests.support.gateware.axi_memory import AxiMemory, untouched
from tests.support.gateware.streams import STALLS, Side, built, exchange_within, seeds, simulate

PLACER = InlinePlacer()

PORTS, WIDTH = 3, 64
BYTES = WIDTH // 8
BASES = [0x1000, 0x20_0040, 0x7_0008]


def drawn_passes(rng, lines):
    return [
        {
            "first": rng.randrange(500),
            "words": lines * rng.choice([1, 3, 16, 40]),
            "passes": rng.choice([1, 1, 2, 3]),
        }
        for _ in range(6)
    ]


def beats_of(entry, lines):
    """Return the beats of an entry, from the bytes that memory holds: line by line, port by port."""
    beats = []
    for _ in range(entry["passes"]):
        for word in range(entry["first"], entry["first"] + entry["words"], lines):
            stored = bytes(
                untouched(base + each * BYTES + n)
                for each in range(word, word + lines)
                for base in BASES
                for n in range(BYTES)
            )
            beats.append(int.from_bytes(stored, "little"))
    return beats


def run(entries, *, lines, stall, memory_stall, latency, seed):
    dut = built(WeightStream, PLACER, ports=PORTS, width=WIDTH, lines=lines)
    memories = [
        AxiMemory(port, stall=memory_stall, latency=latency, seed=seed + n) for n, port in enumerate(dut.axi)
    ]
    wanted = [beat for entry in entries for beat in beats_of(entry, lines)]
    sides = {
        "entries": Side(dut.i, items=entries, stall=stall),
        "beats": Side(dut.o, count=len(wanted), stall=stall),
    }

    async def bench(ctx):
        for port, base in zip(dut.bases, BASES, strict=True):
            ctx.set(port, base)
        await exchange_within(ctx, sides, seed=seed)

    simulate(dut, bench, background=[each for memory in memories for each in memory.testbenches()])
    return sides["beats"], wanted


@pytest.mark.sample(2)
@pytest.mark.parametrize("lines", [1, 2, 4])
@pytest.mark.parametrize("stall", STALLS)
@pytest.mark.parametrize("seed", seeds(1, 8))
def test_beats_in_program_order(lines, stall, seed):
    entries = drawn_passes(random.Random(seed), lines)
    found, wanted = run(entries, lines=lines, stall=stall, memory_stall=stall / 2, latency=(1, 12), seed=seed)
    assert found.received == wanted


@pytest.mark.parametrize("lines", [1, 2, 4])
def test_a_line_a_cycle_across_passes_and_entries(lines):
    entries = [{"first": 8 * n, "words": 40, "passes": 2} for n in range(4)]
    found, wanted = run(entries, lines=lines, stall=0, memory_stall=0, latency=(5, 5), seed=0)
    assert found.received == wanted
    assert found.cycles[-1] - found.cycles[0] == lines * (len(wanted) - 1)
