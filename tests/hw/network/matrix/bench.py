# amaranth: UnusedElaboratable=no
"""The matrix unit on a scratchpad, and runs of layers on it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from hw.lib.place import InlinePlacer
from hw.network.commands import MatrixCommand
from hw.network.compile.compile import compile_network
from hw.network.compile.lower import Lowered
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.unit import MatrixUnit
from hw.network.matrix.unit_command import unit_command, unit_entries, unit_weights
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from hw.network.scratchpad.shape import GranuleShape
from hw.network.tables.layouts import table_words
from sim.golden.program import execute
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import Side, exchange_within, put, set_all, simulate

#: Granules that layers use: the first ones of the scratchpad.
GRANULES = 1024


class UnitBench(wiring.Component):
    """The unit on a scratchpad, beside another reader and writer."""

    def __init__(self, shape: GranuleShape, config: MatrixConfig) -> None:
        self.shape, self.config = shape, config
        self.unit = MatrixUnit(shape, config, InlinePlacer())
        self.scratchpad = GranuleScratchpad(shape, InlinePlacer(), readers=4, writers=2)
        super().__init__({})

    def elaborate(self, platform):
        m = Module()
        m.submodules.scratchpad = self.scratchpad
        m.submodules.unit = self.unit
        for n in range(3):
            connect(m, self.unit.read[n], self.scratchpad.read[n])
        connect(m, self.unit.write, self.scratchpad.write[0])
        return m


@dataclass(frozen=True, kw_only=True)
class Work:
    """A command of a layer."""

    command: MatrixCommand
    lowered: Lowered

    @property
    def taps(self):
        """Its rows of the tap table."""
        return self.lowered.taps[self.command.first_tap :][: self.command.taps]

    @property
    def table(self) -> bytes | None:
        """Its table."""
        return self.lowered.tables[self.command.table].tobytes() if self.command.table >= 0 else None


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Cycles of a command."""

    waited: int  #: Until it is taken.
    cycles: int  #: From there until it is done.
    busy: int  #: Those of them with a step of the array.


@dataclass(frozen=True, kw_only=True)
class Run:
    """The scratchpad after a run, and as the golden model leaves it; each command and its cycles."""

    after: np.ndarray
    wanted: np.ndarray
    commands: list[tuple[Work, Taken]]


def bases_of(config):
    """Return an address of the weights in each port's memory: whole words of the widest port."""
    return [0x1000 + n * 0x40_0040 for n in range(config.ports)]


def lay_out(config, memories, passes):
    """Put packets into the ports' memories; return the first word of each pass."""
    firsts, words = [], 0
    size = config.port_bits // 8
    for beats in passes:
        firsts.append(words)
        for line in beats.reshape(-1, config.ports, size):
            for base, memory, part in zip(bases_of(config), memories, line.tolist(), strict=True):
                address = base + words * size
                memory.bytes.update(zip(range(address, address + size), part, strict=True))
            words += 1
    return firsts


def work_of(networks, columns):
    """Compile layers; return their commands in order."""
    work = []
    for network in networks:
        lowered = compile_network(network, scratchpad_bytes=16 * GRANULES, columns=columns).lowered
        work += [Work(command=each, lowered=lowered) for step in lowered.commands for each in step]
    assert all(isinstance(each.command, MatrixCommand) for each in work)
    return work


async def execute_work(ctx, dut, work) -> list[Taken]:
    """Write all tables, and execute commands one after the other."""
    unit = dut.unit
    tables = [*dict.fromkeys(each.table for each in work if each.table is not None)]
    for row, word in enumerate(word for table in tables for word in table_words(table)):
        set_all(ctx, [(unit.tables.enable, 1), (unit.tables.row, row), (unit.tables.data, word)])
        await ctx.tick()
    ctx.set(unit.tables.enable, 0)
    found = []
    for each in work:
        number = -1 if each.table is None else tables.index(each.table)
        command = replace(each.command, table=number)
        ctx.set(unit.command.payload, unit_command(command, each.taps, dut.shape, dut.config))
        ctx.set(unit.command.valid, 1)
        waited = cycles = busy = 0
        while not ctx.get(unit.command.ready):
            waited += 1
            await ctx.tick()
        await ctx.tick()
        ctx.set(unit.command.valid, 0)
        while not ctx.get(unit.done):
            cycles, busy = cycles + 1, busy + ctx.get(unit.busy)
            assert cycles < 6000
            await ctx.tick()
        found.append(Taken(waited=waited, cycles=cycles, busy=busy))
        await ctx.tick()
    return found


def run(dut: UnitBench, networks, *, stall, seed) -> Run:
    """Execute layers one after the other."""
    unit, config = dut.unit, dut.config
    rng = np.random.default_rng(seed)
    wanted = rng.integers(-128, 128, (GRANULES, 16), dtype=np.int8)
    numbers = [int.from_bytes(granule.tobytes(), "little") for granule in wanted]
    memories = [AxiMemory(port, stall=stall, seed=seed) for port in unit.axi]
    work = work_of(networks, config.columns)
    passes = [each.lowered.passes[each.command.weights] for each in work]
    firsts = lay_out(config, memories, passes)
    entries = [entry for each in work for entry in unit_entries(each.command, each.taps, dut.shape)]
    weights = [
        unit_weights(each.command, config, first=first) for each, first in zip(work, firsts, strict=True)
    ]
    for each, beats, entry in zip(work, passes, weights, strict=True):
        assert entry["words"]["words"] == config.lines * len(beats)
        execute(each.command, each.lowered, wanted)
    words, taken = [], []

    async def ahead(ctx):
        sides = {"entries": Side(unit.entry, items=entries), "weights": Side(unit.weights, items=weights)}
        await exchange_within(ctx, sides, seed=seed)

    async def bench(ctx):
        set_all(ctx, [*zip(unit.bases, bases_of(config), strict=True)])
        first, port = dut.scratchpad.write[1], dut.scratchpad.read[3]
        writes = [{"address": at, "enable": 15, "data": numbers[at : at + 4]} for at in range(0, GRANULES, 4)]
        await put(ctx, first.write, writes)
        while not ctx.get(first.idle):
            await ctx.tick()
        taken.extend(await execute_work(ctx, dut, work))
        asked = [{"address": at, "enable": 15} for at in range(0, GRANULES, 4)]
        sides = {"asked": Side(port.request, items=asked), "answered": Side(port.response, count=len(asked))}
        await exchange_within(ctx, sides, seed=seed)
        words.extend(sides["answered"].received)

    background = [each for memory in memories for each in memory.testbenches()]
    simulate(dut, bench, ahead, background=background)
    after = b"".join(number.to_bytes(16, "little") for word in words for number in word["data"])
    return Run(
        after=np.frombuffer(after, np.int8).reshape(GRANULES, 16),
        wanted=wanted,
        commands=[*zip(work, taken, strict=True)],
    )
