"""Places of the commands' rows in RAMs, and the rows that each command reads."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any, Generic, TypeVar

from hw.network.commands import AttentionCommand, Command, MatrixCommand, TapTile, VectorCommand, VectorKind
from hw.network.program.program import NetworkProgram
from hw.network.program.records import EXPONENTIAL_ROWS, SLOTS, TABLE_ROWS, TableNumber
from hw.network.vector.fields import Places

_Command = TypeVar("_Command", MatrixCommand, VectorCommand, AttentionCommand)
_Tapped = TypeVar("_Tapped", MatrixCommand, VectorCommand)


def commands_of(program: NetworkProgram, kind: type[_Command]) -> list[_Command]:
    """Return a program's commands of a core."""
    return [step.command for step in program.steps if isinstance(step.command, kind)]


def channel_counts(program: NetworkProgram, *, lanes: int) -> dict[tuple[int, int], int]:
    """Return the rows of channels of each LayerNorm, by its index and the bits of its results."""
    norms = [each for each in commands_of(program, VectorCommand) if each.kind is VectorKind.NORM]
    keys = dict.fromkeys((each.norm, each.bits) for each in norms)
    return {(norm, bits): -(-len(program.norms[norm].gains) * bits // (8 * lanes)) for norm, bits in keys}


class Blocks(Generic[_Tapped]):
    """Places of the commands' tap rows in a RAM: equal ranges share theirs."""

    def __init__(self, program: NetworkProgram, commands: Iterable[_Tapped]) -> None:
        self._taps = program.taps
        self._first: dict[tuple[Any, ...], int] = {}
        self._commands: list[_Tapped] = []
        self.rows = 0
        for command in commands:
            key = self._key(command)
            if key not in self._first:
                self._first[key] = self.rows
                self._commands.append(command)
                self.rows += command.taps

    def place(self, command: _Tapped) -> int:
        """Return the first row of a command."""
        return self._first[self._key(command)]

    def _key(self, command: _Tapped) -> tuple[Any, ...]:
        shifts = command.shifts if isinstance(command, MatrixCommand) else ()
        return command.first_tap, command.taps, shifts

    def own(self, command: _Tapped) -> tuple[TapTile, ...]:
        """Return the tap rows of a command."""
        return self._taps[command.first_tap :][: command.taps]

    def __iter__(self) -> Iterator[_Tapped]:
        """Iterate over the first command of each range, in order of the rows."""
        return iter(self._commands)


class Scales:
    """Places of the vector commands' scales: equal ones share theirs."""

    def __init__(self, commands: Iterable[VectorCommand]) -> None:
        self._first: dict[tuple[float, ...], int] = {}
        self.values: list[float] = []
        for command in commands:
            if command.scales and command.scales not in self._first:
                self._first[command.scales] = len(self.values)
                self.values += command.scales

    @property
    def rows(self) -> int:
        """Rows of the RAM."""
        return len(self.values)

    def place(self, command: VectorCommand) -> int:
        """Return the first row of a command."""
        return self._first.get(command.scales, 0)


class RowPlaces:
    """The rows of all commands of a program; ``lanes``: of the vector unit."""

    def __init__(self, program: NetworkProgram, *, lanes: int) -> None:
        vector = commands_of(program, VectorCommand)
        self.lanes = lanes
        self.taps = Blocks(program, commands_of(program, MatrixCommand))
        self.windows = Blocks(program, vector)
        self.scales = Scales(vector)
        self.counts = channel_counts(program, lanes=lanes)
        #: First row of channels of each LayerNorm, a word each.
        self.channels = dict(
            zip(self.counts, itertools.accumulate(self.counts.values(), initial=0), strict=False)
        )

    @property
    def channel_firsts(self) -> list[int]:
        """First row of each record of channels; results of int16 use half of the lanes."""
        return [
            self.lanes * (row + n) + at
            for (norm, bits), row in self.channels.items()
            for n in range(self.counts[norm, bits])
            for at in range(0, self.lanes * 8 // bits, SLOTS)
        ]

    def of(self, command: VectorCommand) -> Places:
        """Return the places of a vector command's rows."""
        softmax, index = command.kind is VectorKind.SOFTMAX, max(0, command.table)
        return Places(
            tap=self.windows.place(command),
            scale=self.scales.place(command),
            table=0 if softmax else index,
            exponential=index if softmax else 0,
            channel=self.channels.get((command.norm, command.bits), 0),
        )

    def read(self, command: Command) -> dict[TableNumber, range]:
        """Return the rows of each RAM that a command reads."""
        if isinstance(command, AttentionCommand):
            return {}
        table = range(TABLE_ROWS * command.table, TABLE_ROWS * (command.table + 1))
        if isinstance(command, MatrixCommand):
            first = self.taps.place(command)
            tables = {TableNumber.TABLES: table} if command.table >= 0 else {}
            return {TableNumber.TAPS: range(first, first + command.taps), **tables}
        places = self.of(command)
        found = {TableNumber.VECTOR_TAPS: range(places.tap, places.tap + command.taps)}
        if command.scales:
            found[TableNumber.SCALES] = range(places.scale, places.scale + len(command.scales))
        if command.kind is VectorKind.TABLE:
            found[TableNumber.TABLES] = table
        if command.kind is VectorKind.SOFTMAX:
            first = EXPONENTIAL_ROWS * command.table
            found[TableNumber.EXPONENTIALS] = range(first, first + EXPONENTIAL_ROWS)
        if command.kind is VectorKind.NORM:
            first, rows = places.channel, self.counts[command.norm, command.bits]
            found[TableNumber.CHANNELS] = range(self.lanes * first, self.lanes * (first + rows))
        return found
