# amaranth: UnusedElaboratable=no
"""The matrix unit on its scratchpad: layers equal the golden model byte for byte, in the cycles it says."""

import random

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from hw.lib.place import InlinePlacer
from hw.network.commands import MatrixCommand
from hw.network.compile.compile import compile_network
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.timing import COMMAND_CYCLES, steps_of_blocks, sweep_cycles
from hw.network.matrix.unit import MatrixUnit
from hw.network.matrix.unit_command import unit_command, unit_entries, unit_weights
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from hw.network.scratchpad.shape import GranuleShape
from sim.golden.program import execute
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import Side, exchange_within, put, seeds, simulate
from tests.support.networks.layers import drawn_convolution

SHAPE = GranuleShape(banks=4, rows=64, memory="block")
CONFIG = MatrixConfig(columns=32, ports=2)
GRANULES = SHAPE.words * SHAPE.granules
BASES = [0x1000, 0x40_0000]


class Bench(wiring.Component):
    """The unit on a scratchpad, beside another reader and writer."""

    def __init__(self):
        self.unit = MatrixUnit(SHAPE, CONFIG, InlinePlacer())
        self.scratchpad = GranuleScratchpad(SHAPE, InlinePlacer(), readers=4, writers=2)
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.scratchpad = self.scratchpad
        m.submodules.unit = self.unit
        for n in range(3):
            connect(m, self.unit.read[n], self.scratchpad.read[n])
        connect(m, self.unit.write, self.scratchpad.write[0])
        return m


BENCH = Bench()


def lay_out(memories, passes):
    """Put packets into the ports' memories; return the first word of each pass."""
    firsts, words = [], 0
    size = CONFIG.packet_bits // 8 // CONFIG.ports
    for beats in passes:
        firsts.append(words)
        for beat in beats:
            for port, memory in enumerate(memories):
                part = beat[port * size : (port + 1) * size].tolist()
                address = BASES[port] + words * size
                memory.bytes.update(zip(range(address, address + size), part, strict=True))
            words += 1
    return firsts


def run(networks, *, stall, seed):
    """Run layers one after the other; return the scratchpad as it is, and as the golden model leaves it."""
    dut, unit = BENCH, BENCH.unit
    rng = np.random.default_rng(seed)
    wanted = rng.integers(-128, 128, (GRANULES, 16), dtype=np.int8)
    numbers = [int.from_bytes(granule.tobytes(), "little") for granule in wanted]
    memories = [AxiMemory(port, stall=stall, seed=seed) for port in unit.axi]
    work, passes = [], []
    for network in networks:
        lowered = compile_network(network, scratchpad_bytes=SHAPE.bytes, columns=CONFIG.columns).lowered
        for command in [command for step in lowered.commands for command in step]:
            assert isinstance(command, MatrixCommand)
            work.append((command, lowered))
            passes.append(lowered.passes[command.weights])
    firsts = lay_out(memories, passes)
    taps = [lowered.taps[command.first_tap :][: command.taps] for command, lowered in work]
    entries = [
        entry
        for (command, _), own in zip(work, taps, strict=True)
        for entry in unit_entries(command, own, SHAPE)
    ]
    weights = [
        unit_weights(command, CONFIG, first=first) for (command, _), first in zip(work, firsts, strict=True)
    ]
    for (command, lowered), beats, entry in zip(work, passes, weights, strict=True):
        assert entry["words"]["words"] == len(beats)
        execute(command, lowered, wanted)
    found, cycles = [], []

    async def ahead(ctx):
        sides = {"entries": Side(unit.entry, items=entries), "weights": Side(unit.weights, items=weights)}
        await exchange_within(ctx, sides, seed=seed)

    async def bench(ctx):
        for port, base in zip(unit.bases, BASES, strict=True):
            ctx.set(port, base)
        first = dut.scratchpad.write[1]
        writes = [{"address": at, "enable": 15, "data": numbers[at : at + 4]} for at in range(0, GRANULES, 4)]
        await put(ctx, first.write, writes)
        while not ctx.get(first.idle):
            await ctx.tick()
        for (command, lowered), own in zip(work, taps, strict=True):
            table = lowered.tables[command.table].tolist() if command.table >= 0 else []
            for index, result in enumerate(table):
                ctx.set(unit.table, {"valid": 1, "index": index, "result": result})
                await ctx.tick()
            ctx.set(unit.table, {"valid": 0, "index": 0, "result": 0})
            await put(ctx, unit.command, [unit_command(command, own, SHAPE, CONFIG)])
            taken = busy = 0
            while not ctx.get(unit.done):
                taken, busy = taken + 1, busy + ctx.get(unit.busy)
                assert taken < 6000
                await ctx.tick()
            cycles.append((taken, busy))
            await ctx.tick()
        port = dut.scratchpad.read[3]
        asked = [{"address": at, "enable": 15} for at in range(0, GRANULES, 4)]
        sides = {"asked": Side(port.request, items=asked), "answered": Side(port.response, count=len(asked))}
        await exchange_within(ctx, sides, seed=seed)
        found.extend(sides["answered"].received)

    background = [each for memory in memories for each in memory.testbenches()]
    simulate(dut, bench, ahead, background=background)
    after = [number.to_bytes(16, "little") for word in found for number in word["data"]]
    return np.frombuffer(b"".join(after), np.int8).reshape(GRANULES, 16), wanted, cycles, work


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_layers_equal_the_golden_model(seed):
    rng = random.Random(seed)
    networks = [drawn_convolution(rng) for _ in range(3)]
    after, wanted, _, _ = run(networks, stall=0.5, seed=seed)
    assert (after == wanted).all()


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_cycles_are_those_of_the_formula(seed):
    """A step a cycle from the first to the last, but for sweeps shorter than a packet."""
    rng = random.Random(seed)
    networks = [drawn_convolution(rng) for _ in range(4)]
    after, wanted, cycles, work = run(networks, stall=0, seed=seed)
    assert (after == wanted).all()
    for (taken, busy), (command, _) in zip(cycles, work, strict=True):
        assert busy == sum(steps_of_blocks(command)) * command.taps * command.column_tiles
        assert 0 <= sweep_cycles(command, CONFIG) + COMMAND_CYCLES - taken <= 16
