"""Readers and writers of blocks against memories of any pace, and against their specified latencies."""

import itertools
import random

import pytest
from amaranth.hdl import Cat

from hw.oram.movers.blocks.reader import BlockReader
from hw.oram.movers.blocks.writer import BlockWriter
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import seeds, set_all, simulate

#: Beats of a block, address of the first: always within a burst; sometimes across one's end; longer than one.
SHAPES = {"page": (4, 0x1_0000), "odd": (5, 0x1_0140), "long": (18, 0x40)}
BLOCKS = 6
INDEX_BITS = 8
BEAT = 64


def bursts_of(beats, base, index):
    """Cut a block at multiples of 16 beats."""
    first = base // BEAT + index * beats
    cuts = [first, *(n for n in range(first + 1, first + beats) if n % 16 == 0), first + beats]
    return [(a * BEAT, b - a) for a, b in itertools.pairwise(cuts)]


def rising(starts, latency, taken):
    """Return the cycle of each burst's first offer: a latency after its block, or behind the previous
    burst.
    """
    offered = []
    for x, start in enumerate(starts):
        offered.append(max(start + latency, taken[x - 1] + 1 if x else 0))
    return offered


@pytest.mark.parametrize("stall", [0.0, 0.7])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_reader(shape, stall, seed):
    beats, base = SHAPES[shape]
    dut = BlockReader(index_bits=INDEX_BITS, beats=beats, blocks=BLOCKS)
    memory = AxiMemory(dut.axi, stall=stall, seed=seed)
    rng = random.Random(seed)
    indices = [rng.randrange(1 << INDEX_BITS) for _ in range(16)]
    words, there, asked, offered = [], [], [], []

    async def bench(ctx):
        held, passing, before = 0, 0, 0
        tick = ctx.tick().sample(
            Cat(dut.arrived, dut.o.valid, dut.axi.arvalid, dut.axi.arready, dut.error), dut.o.payload
        )
        ctx.set(dut.base, base)
        t = 0
        while len(words) < beats * len(indices):
            ask = len(asked) < len(indices) and held < BLOCKS and rng.random() < 0.4
            # A block that has arrived is read as a whole, as the admission control does: from two cycles
            # later on.
            if not passing and len(there) * beats > len(words) and there[len(words) // beats] <= t - 2:
                passing = beats * (rng.random() < 0.5)
            driven = [(dut.i.valid, ask), (dut.o.ready, passing > 0)]
            if ask:
                driven.append((dut.i.payload, indices[len(asked)]))
                asked.append(t)
                held += 1
            set_all(ctx, driven)
            _, _, flags, word = await tick
            whole, valid, arvalid, arready, error = (flags >> n & 1 for n in range(5))
            assert not error
            if whole:
                there.append(t)
            if arvalid and not before:
                offered.append(t)
            before = arvalid and not arready
            if passing:
                assert valid, "a gap in a block that is there"
                words.append(word)
                passing -= 1
                held -= passing == 0
            t += 1

    simulate(dut, bench, background=memory.testbenches())
    expected = [burst for index in indices for burst in bursts_of(beats, base, index)]
    assert memory.reads == expected
    starts = [
        cycle for cycle, index in zip(asked, indices, strict=True) for _ in bursts_of(beats, base, index)
    ]
    assert offered == rising(starts, dut.ADDRESS_LATENCY, memory.cycles["ar"])
    assert there == [cycle + dut.ARRIVED_LATENCY for cycle in memory.cycles["r"][beats - 1 :: beats]]
    data = b"".join(word.to_bytes(BEAT, "little") for word in words)
    assert data == b"".join(memory.content(base + index * beats * BEAT, beats * BEAT) for index in indices)


@pytest.mark.parametrize("stall", [0.0, 0.7])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", seeds(1, 4))
def test_writer(shape, stall, seed):
    beats, base = SHAPES[shape]
    dut = BlockWriter(index_bits=INDEX_BITS, beats=beats, blocks=BLOCKS, outstanding=2 * BLOCKS)
    memory = AxiMemory(dut.axi, stall=stall, seed=seed, address_after_data=seed == 1)
    rng = random.Random(seed)
    indices = rng.sample(range(1 << INDEX_BITS), 16)
    content = {index: rng.randbytes(beats * BEAT) for index in indices}
    queue, announced, whole, left, written, offered = [], 0, [], [], [], []

    async def bench(ctx):
        nonlocal announced
        wait, before, t, sent = 0, 0, 0, 0
        tick = ctx.tick().sample(Cat(dut.left, dut.written, dut.axi.awvalid, dut.axi.awready, dut.error))
        ctx.set(dut.base, base)
        while len(written) < len(indices):
            room = announced - len(left) < BLOCKS and announced - len(written) < 2 * BLOCKS
            announce = announced < len(indices) and room and not queue and rng.random() < 0.5
            beat = bool(queue) and wait == 0 and rng.random() < 0.8
            driven = [(dut.i.valid, announce), (dut.beat.valid, beat)]
            wait -= wait > 0
            if announce:
                driven.append((dut.i.payload, indices[announced]))
                data = content[indices[announced]]
                queue.extend(data[n : n + BEAT] for n in range(0, len(data), BEAT))
                announced += 1
                wait = 8
            if beat:
                driven.append((dut.beat.payload, int.from_bytes(queue.pop(0), "little")))
                sent += 1
                if sent % beats == 0:
                    whole.append(t)
            set_all(ctx, driven)
            _, _, flags = await tick
            gone, done, awvalid, awready, error = (flags >> n & 1 for n in range(5))
            assert not error
            left.extend([t] * gone)
            written.extend([t] * done)
            if awvalid and not before:
                offered.append(t)
            before = awvalid and not awready
            t += 1

    simulate(dut, bench, background=memory.testbenches())
    bursts = [bursts_of(beats, base, index) for index in indices]
    assert memory.writes == [burst for each in bursts for burst in each]
    starts = [cycle for cycle, each in zip(whole, bursts, strict=True) for _ in each]
    assert offered == rising(starts, dut.ADDRESS_LATENCY, memory.cycles["aw"])
    assert left == [cycle + dut.LEFT_LATENCY for cycle in memory.cycles["w"][beats - 1 :: beats]]
    last, ends = 0, []
    for each in bursts:
        last += len(each)
        ends.append(memory.cycles["b"][last - 1])
    assert written == [cycle + dut.WRITTEN_LATENCY for cycle in ends]
    for index, data in content.items():
        assert memory.content(base + index * beats * BEAT, beats * BEAT) == data
