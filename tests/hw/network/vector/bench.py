# amaranth: UnusedElaboratable=no
"""Programs of commands for the vector unit, and its runs."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from hw.lib.place import InlinePlacer
from hw.network.commands import VectorCommand, VectorKind
from hw.network.compile.lower import Lowered
from hw.network.scratchpad.shape import GranuleShape
from hw.network.tables.layouts import table_words
from hw.network.vector.config import VectorConfig
from hw.network.vector.fields import Places, scale_row, tap_row, vector_fields
from hw.network.vector.unit import VectorUnit
from hw.network.vector.wide_fields import channel_slots
from sim.golden import program as golden
from tests.hw.network.vector.memory import NaiveScratchpad
from tests.support.gateware.streams import hash_seed, put, set_all, simulate

#: Words of 4 granules.
SHAPE = GranuleShape(banks=4, rows=64, memory="block")
GRANULES = SHAPE.words * SHAPE.granules


@functools.cache
def unit_of(lanes: int) -> VectorUnit:
    """Return a unit with small tables, the same one each time: its simulator is compiled once."""
    config = VectorConfig(shape=SHAPE, lanes=lanes, taps=128, tables=4, pixels=32, channels=128)
    return VectorUnit(config, InlinePlacer())


@dataclass(frozen=True, kw_only=True)
class Program:
    """Commands and all that they refer to."""

    commands: list[VectorCommand]
    lowered: Lowered

    def expected(self, memory: np.ndarray) -> np.ndarray:
        """Return the scratchpad's granules after all commands."""
        memory, kept = memory.copy(), {}
        for command in self.commands:
            golden.execute(command, self.lowered, memory, kept)
        return memory


@dataclass
class Run:
    """The result of a program in gates."""

    memory: np.ndarray
    cycles: list[int]  #: Of each command, from its acceptance to its end.
    busy: int = 0
    waits_read: int = 0
    waits_write: int = 0


def channel_rows(unit: VectorUnit, program: Program) -> dict[int, list[dict]]:
    """Return the rows of channels of each LayerNorm, by its index."""
    return {
        command.norm: channel_slots(unit.config, program.lowered.norms[command.norm], bits=command.bits)
        for command in program.commands
        if command.kind is VectorKind.NORM
    }


def blocks(rows) -> list[list]:
    """Return the rows that a RAM takes at once."""
    found = [*rows]
    return [found[first : first + 8] for first in range(0, len(found), 8)]


async def load_tables(ctx, unit, program):
    """Write the rows of all tables that the commands use, those of all tables at once."""
    lowered, config = program.lowered, unit.config
    kinds = {command.kind for command in program.commands}
    scales = [scale for command in program.commands for scale in command.scales]
    tables = lowered.tables if VectorKind.TABLE in kinds else ()
    exponentials = lowered.exponentials if VectorKind.SOFTMAX in kinds else ()
    ports = [
        (unit.taps, [tap_row(config, tile) for tile in lowered.taps]),
        (unit.scales, [scale_row(scale) for scale in scales]),
        (unit.tables, blocks(word for table in tables for word in table_words(table.tobytes()))),
        (unit.exponentials, [int(each) for table in exponentials for each in table]),
        (unit.channels, blocks(slot for slots in channel_rows(unit, program).values() for slot in slots)),
    ]
    for at in range(max(len(rows) for _, rows in ports)):
        pins = []
        for port, rows in ports:
            pins.append((port.enable, at < len(rows)))
            if at < len(rows):
                pins += [(port.row, at), (port.data, rows[at])]
        set_all(ctx, pins)
        await ctx.tick()
    set_all(ctx, [(port.enable, 0) for port, _ in ports])


def fields_of(unit: VectorUnit, program: Program) -> list[dict]:
    """Return the commands for the gates, with the rows of `load_tables`."""
    found, first_scale = [], 0
    channels, firsts = 0, {}
    for norm, slots in channel_rows(unit, program).items():
        firsts[norm] = channels
        channels += len(slots) // unit.config.lanes
    for command in program.commands:
        softmax = command.kind is VectorKind.SOFTMAX
        places = Places(
            tap=command.first_tap,
            scale=first_scale,
            table=0 if softmax else max(0, command.table),
            exponential=command.table if softmax else 0,
            channel=firsts.get(command.norm, 0),
        )
        first_scale += len(command.scales)
        found.append(vector_fields(unit.config, command, places))
    return found


async def execute(ctx, unit, program) -> list[int]:
    """Run all commands; return the cycles of each, from its acceptance to its end."""
    await load_tables(ctx, unit, program)
    cycles = []
    for fields in fields_of(unit, program):
        await put(ctx, unit.command, [fields])
        tick, count, done = ctx.tick().sample(unit.done), 0, False
        while not done:
            _, _, done = await tick
            count += 1
        cycles.append(count)
    return cycles


def run(
    unit: VectorUnit,
    program: Program,
    memory: np.ndarray,
    *,
    latency: int = 12,
    stall: float = 0.0,
    read_stall: float | None = None,
    write_stall: float | None = None,
    seed: int = 0,
) -> Run:
    """Run a program on a naive scratchpad."""
    stalls = stall if read_stall is None else read_stall, stall if write_stall is None else write_stall
    pad = NaiveScratchpad(memory, latency=latency, stalls=stalls, seed=hash_seed(seed, "scratchpad"))
    result = Run(memory=pad.granules, cycles=[])

    async def main(ctx):
        result.cycles += await execute(ctx, unit, program)

    async def count(ctx):
        tick = ctx.tick().sample(unit.busy, unit.waits_read, unit.waits_write)
        while True:
            _, _, busy, waits_read, waits_write = await tick
            result.busy += busy
            result.waits_read += waits_read
            result.waits_write += waits_write

    simulate(unit, main, background=[pad.serve(unit), count], limit=200_000)
    return result
