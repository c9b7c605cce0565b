# amaranth: UnusedElaboratable=no
"""The matrix unit on its scratchpad: layers equal the golden model byte for byte, in the cycles it says."""

import random
from dataclasses import replace

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from hw.lib.place import InlinePlacer
from hw.network.commands import MatrixCommand
from hw.network.compile.compile import compile_network
from hw.network.graph.network import Table
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.timing import (
    COMMAND_CYCLES,
    HELD_TABLE_CYCLES,
    NEW_TABLE_CYCLES,
    steps_of_blocks,
    sweep_cycles,
)
from hw.network.matrix.unit import MatrixUnit
from hw.network.matrix.unit_command import unit_command, unit_entries, unit_weights
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from hw.network.scratchpad.shape import GranuleShape
from hw.network.tables.layouts import table_words
from sim.golden.program import execute
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import Side, exchange_within, put, seeds, set_all, simulate
from tests.support.networks.layers import drawn_convolution

SHAPE = GranuleShape(banks=4, rows=64, memory="block")
CONFIG = MatrixConfig(columns=32, ports=4, port_bits=128, tables=8)
GRANULES = SHAPE.words * SHAPE.granules
BASES = [0x1000, 0x40_0000, 0x80_0040, 0xC0_0010]


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
    size = CONFIG.port_bits // 8
    for beats in passes:
        firsts.append(words)
        for line in beats.reshape(-1, CONFIG.ports, size):
            for port, memory in enumerate(memories):
                address = BASES[port] + words * size
                memory.bytes.update(zip(range(address, address + size), line[port].tolist(), strict=True))
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
        assert entry["words"]["words"] == CONFIG.lines * len(beats)
        execute(command, lowered, wanted)
    # All tables, one after the other in the store.
    tables = [lowered.tables[command.table].tobytes() for command, lowered in work if command.table >= 0]
    stored = [*dict.fromkeys(tables)]
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
        for row, word in enumerate(word for table in stored for word in table_words(table)):
            set_all(ctx, [(unit.tables.enable, 1), (unit.tables.row, row), (unit.tables.data, word)])
            await ctx.tick()
        ctx.set(unit.tables.enable, 0)
        for (command, lowered), own in zip(work, taps, strict=True):
            number = stored.index(lowered.tables[command.table].tobytes()) if command.table >= 0 else -1
            payload = unit_command(replace(command, table=number), own, SHAPE, CONFIG)
            ctx.set(unit.command.valid, 1)
            ctx.set(unit.command.payload, payload)
            waited = taken = busy = 0
            while not ctx.get(unit.command.ready):
                waited += 1
                await ctx.tick()
            await ctx.tick()
            ctx.set(unit.command.valid, 0)
            while not ctx.get(unit.done):
                taken, busy = taken + 1, busy + ctx.get(unit.busy)
                assert taken < 6000
                await ctx.tick()
            cycles.append((waited, taken, busy))
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
    """A step a cycle, but for sweeps shorter than a packet.  A table is copied once for several commands."""
    rng = random.Random(seed)
    mapped = drawn_convolution(rng)
    while not any(isinstance(operator, Table) for operator in mapped.operators):
        mapped = drawn_convolution(rng)
    networks = [*(drawn_convolution(rng) for _ in range(3)), mapped, mapped]
    after, wanted, cycles, work = run(networks, stall=0, seed=seed)
    assert (after == wanted).all()
    held = None
    for (waited, taken, busy), (command, lowered) in zip(cycles, work, strict=True):
        table = lowered.tables[command.table].tobytes() if command.table >= 0 else None
        assert waited == (0 if table is None else HELD_TABLE_CYCLES if table == held else NEW_TABLE_CYCLES)
        held = table or held
        assert busy == sum(steps_of_blocks(command)) * command.taps * command.column_tiles
        assert 0 <= sweep_cycles(command, CONFIG) + COMMAND_CYCLES - taken <= 16
