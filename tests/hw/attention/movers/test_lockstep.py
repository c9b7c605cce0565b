# amaranth: UnusedElaboratable=no
"""Readers that go in lockstep: rounds of a part of each, in order, and as fast as the slowest."""

import random

import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.core.command import PART_LATENCY
from hw.attention.movers.lockstep import Lockstep
from hw.attention.movers.part_reader import PartReader
from tests.hw.attention.movers.test_part_reader import fetches, in_passes
from tests.hw.attention.plain import decoding
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import built, put, seeds, simulate
from tests.support.proofs.mutants import mutant


class Gang(wiring.Component):
    """Readers, and what makes one source of them."""

    def __init__(self, config, part_latency, lockstep_type=Lockstep):
        self.config, self.lockstep = config, lockstep_type(config, part_latency=part_latency)
        self.readers = [PartReader(config) for _ in range(config.decode_streams)]
        first = self.readers[0]
        super().__init__(
            {
                "fetch": In(first.fetch.signature.flip()).array(len(self.readers)),
                "axi": Out(first.axi.signature).array(len(self.readers)),
                "enable": In(1, init=1),
                "o": Out(self.lockstep.o.signature),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.lockstep = lockstep = self.lockstep
        connect(m, lockstep.o, flipped(self.o))
        m.d.comb += lockstep.enable.eq(self.enable)
        for n, reader in enumerate(self.readers):
            m.submodules[f"reader_{n}"] = reader
            connect(m, flipped(self.fetch[n]), reader.fetch)
            connect(m, reader.axi, flipped(self.axi[n]))
            m.d.comb += [
                lockstep.arrived[n].eq(reader.arrived),
                lockstep.part[n].eq(reader.part),
                reader.take.eq(lockstep.take[n]),
                reader.last.eq(lockstep.last[n]),
                reader.keep.eq(lockstep.keep[n]),
            ]
        return m


def run(config, *, part_latency=PART_LATENCY, stall=0.0, stall_take=0.0, seed=0, latency=(1, 40), times=1):
    rng = random.Random(seed)
    gang = built(Gang, config, part_latency)
    memories = [
        AxiMemory(port, stall=stall * rng.random(), latency=latency, seed=seed + n)
        for n, port in enumerate(gang.axi)
    ]
    asked, places = fetches(rng, config, 8, 30)
    takes, turns = [], in_passes(rng, places, times=times)
    shifted = [
        [item | {"address": item["address"] + (n << 40)} for item in asked] for n in range(len(memories))
    ]

    def sender(n):
        async def send(ctx):
            await put(ctx, gang.fetch[n], shifted[n], stall=stall, seed=seed + n)

        return send

    async def take(ctx):
        rng, cycle, due = random.Random(seed), 0, {}
        while len(takes) < len(turns) or due:
            if cycle in due:
                address = due.pop(cycle)
                for n, memory in enumerate(memories):
                    got = bytes(ctx.get(gang.o.parts[n][lane]) & 0xFF for lane in range(config.lanes))
                    assert got == memory.content(address + (n << 40), config.lanes)
            wanted = ctx.get(gang.o.valid) and rng.random() >= stall_take
            for reader in gang.readers:
                assert not ctx.get(reader.take) or ctx.get(reader.available)
            ctx.set(gang.o.take, wanted)
            if wanted:
                due[cycle + part_latency], last, keep = turns[len(takes)]
                ctx.set(gang.o.last, last)
                ctx.set(gang.o.keep, keep)
                takes.append(cycle)
            await ctx.tick()
            cycle += 1
        for _ in range(30):
            await ctx.tick()
            assert not ctx.get(gang.o.valid)

    simulate(
        gang,
        take,
        *(sender(n) for n in range(len(memories))),
        background=[bench for memory in memories for bench in memory.testbenches()],
    )
    return memories, takes


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", seeds(1, 8))
@pytest.mark.parametrize(("streams", "ports"), [(2, 1), (4, 2)])
@pytest.mark.parametrize(("stall", "stall_take"), [(0.0, 0.0), (0.6, 0.0), (0.3, 0.4), (0.0, 0.8)])
def test_rounds_of_all(stall, stall_take, streams, ports, seed):
    config, odd = decoding(streams=streams, ports_per_stream=ports), (seed + ports) % 2
    part_latency = PART_LATENCY + 3 * odd
    run(config, part_latency=part_latency, stall=stall, stall_take=stall_take, seed=seed, times=1 + odd)


def test_a_round_a_cycle():
    """Memories that answer at different times: from the last one's first part on, no cycle is lost."""
    config = decoding(streams=4, ports_per_stream=2)
    memories, takes = run(config, latency=(15, 15))
    beats = memories[0].cycles["r"]
    latency = PartReader.DATA_LATENCY - 1 + Lockstep.latency(config)
    assert [take - beat for take, beat in zip(takes, beats, strict=True)] == [latency] * len(takes)


def rounds_of_kept_pass(lockstep_type, *, behind):
    """Return what the readers of one kept pass of 6 parts, and of so many behind it, say of their rounds: all
    parts are there before the first is taken, and then one is taken whenever there is one.
    """
    config, parts = decoding(streams=2, ports_per_stream=1), 6
    gang = Gang(config, PART_LATENCY, lockstep_type)
    memories = [AxiMemory(port, latency=(1, 3), seed=n) for n, port in enumerate(gang.axi)]
    turns = [(n == parts - 1, keep) for keep in (True, False) for n in range(parts)]
    turns += [(True, False)] * behind
    size = config.part_bits // 8
    takes = []

    async def take(ctx):
        for port in gang.fetch:
            await put(ctx, port, [{"address": 4096, "length": (parts + behind) * size // 16}])
        for cycle in range(200):
            wanted = cycle >= 60 and ctx.get(gang.o.valid)
            ctx.set(gang.o.take, wanted)
            if wanted:
                last, keep = turns[len(takes)]
                ctx.set(gang.o.last, last)
                ctx.set(gang.o.keep, keep)
                takes.append(cycle)
            await ctx.tick()

    simulate(gang, take, background=[bench for memory in memories for bench in memory.testbenches()])
    return takes, len(turns)


@pytest.mark.parametrize("behind", [0, 1, 2, 5])
def test_what_is_kept_comes_again_with_little_behind_it(behind):
    """Also where its first part is taken in the very cycle in which the pass comes again."""
    takes, count = rounds_of_kept_pass(Lockstep, behind=behind)
    assert len(takes) == count
    # Nothing waits but, with nothing behind it, the first one that comes again.
    assert takes[-1] - takes[0] == count - 1 + (behind == 0)


def test_what_is_not_said_to_come_again_is_missed():
    silent = mutant(Lockstep, "self.o.valid.eq(again | (rounds != 1))", "self.o.valid.eq(rounds != 1)")
    takes, count = rounds_of_kept_pass(silent, behind=1)
    assert len(takes) < count
