# amaranth: UnusedElaboratable=no
"""The matrix unit on a scratchpad, and runs of layers on it."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

import numpy as np
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from hw.lib.place import InlinePlacer
from hw.network.commands import Core, Follow, MatrixCommand
from hw.network.compile.compile import compile_network
from hw.network.compile.lower import Lowered
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.unit import MatrixUnit
from hw.network.matrix.unit_command import unit_command, unit_entries, unit_weights
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from hw.network.scratchpad.shape import GranuleShape
from hw.network.tables.layouts import GROUP_WORDS, table_words
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
        m.d.comb += self.unit.counts[Core.MATRIX].eq(self.unit.written)
        return m


@dataclass(frozen=True, kw_only=True)
class Work:
    """A command of a layer."""

    command: MatrixCommand
    lowered: Lowered
    follow: Follow | None = None

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
    """Cycles of a command, from the first command's arrival on."""

    came: int  #: It is at the unit.
    taken: int
    done: int
    busy: int  #: Steps of the array from its arrival until it is done.

    @property
    def cycles(self) -> int:
        """Cycles from its taking until it is done."""
        return self.done - self.taken - 1


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


def work_of(networks, columns, *, change, spare):
    """Compile layers; return their commands in order.

    ``change``: makes another command of each, and layers have places of their own, the last ``spare``
    granules of which it may use.
    """
    work = []
    granules = GRANULES // len(networks) if change else GRANULES
    for n, network in enumerate(networks):
        own = granules - spare
        lowered = compile_network(network, scratchpad_bytes=16 * own, columns=columns).lowered
        commands = [each for step in lowered.commands for each in step]
        if change:
            commands = [moved(change(each, own), n * granules) for each in commands]
        work += [Work(command=each, lowered=lowered) for each in commands]
    return work


def moved(command, granules):
    """Return a matrix command on places ``granules`` further."""
    assert isinstance(command, MatrixCommand)
    tensors = {name: getattr(command, name) for name in ("source", "target", "residual")}
    found = {name: each and replace(each, base=each.base + granules) for name, each in tensors.items()}
    return replace(command, **found)


async def execute_work(ctx, dut, work, *, overlap) -> list[Taken]:
    """Write all tables, and execute commands: each when it is taken, or when the one before is done."""
    unit = dut.unit
    tables = [*dict.fromkeys(each.table for each in work if each.table is not None)]
    words = [word for table in tables for word in table_words(table)]
    for row in range(len(words) // GROUP_WORDS):
        group = words[row * GROUP_WORDS :][:GROUP_WORDS]
        set_all(ctx, [(unit.tables.enable, 1), (unit.tables.row, row), (unit.tables.data, group)])
        await ctx.tick()
    ctx.set(unit.tables.enable, 0)
    waiting, came, taken, done, busy = deque(work), [], [], [], [0]
    while len(done) < len(work):
        if waiting and len(came) == len(taken) and (overlap or len(done) == len(taken)):
            each = waiting.popleft()
            number = -1 if each.table is None else tables.index(each.table)
            command = replace(each.command, table=number)
            payload = unit_command(command, each.taps, dut.shape, dut.config, follow=each.follow)
            ctx.set(unit.command.payload, payload)
            ctx.set(unit.command.valid, 1)
            came.append(len(busy))
        if ctx.get(unit.command.valid) and ctx.get(unit.command.ready):
            taken.append(len(busy))
        if ctx.get(unit.done):
            done.append(len(busy))
        busy.append(busy[-1] + ctx.get(unit.busy))
        assert len(busy) < 6000 * len(work)
        await ctx.tick()
        ctx.set(unit.command.valid, len(came) > len(taken))
    return [
        Taken(came=start, taken=take, done=end, busy=busy[end] - busy[start])
        for start, take, end in zip(came, taken, done, strict=True)
    ]


def run(dut: UnitBench, networks, *, stall, seed, change=None, spare=0) -> Run:
    """Execute layers, one after the other, or overlapping ones with a change; see `work_of`."""
    work = work_of(networks, dut.config.columns, change=change, spare=spare)
    return run_work(dut, work, stall=stall, seed=seed, overlap=bool(change))


def run_work(dut: UnitBench, work, *, stall, seed, overlap) -> Run:
    """Execute commands; see `execute_work`."""
    unit, config = dut.unit, dut.config
    rng = np.random.default_rng(seed)
    wanted = rng.integers(-128, 128, (GRANULES, 16), dtype=np.int8)
    numbers = [int.from_bytes(granule.tobytes(), "little") for granule in wanted]
    memories = [AxiMemory(port, stall=stall, seed=seed) for port in unit.axi]
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
        taken.extend(await execute_work(ctx, dut, work, overlap=overlap))
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
