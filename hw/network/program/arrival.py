"""The order of an image's records, and those that a launch loads before its first command.

Records of a program of barriers come table by table, and all before the first command.  Others come in the
order of the commands that need them first, rows of RAMs before the commands that read them.  A launch begins
with those up to the command that waits for the last of the first transfers.  The others arrive behind the
requests of these transfers.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hw.network.commands import Core
from hw.network.program.barriers import is_barriers
from hw.network.program.program import NO_COUNTS, NetworkProgram, Transfer
from hw.network.program.records import BLOCK_RAMS, EXPONENTIAL_ROWS, FIRST_RAM, SLOTS, TABLE_ROWS, TableNumber
from hw.network.program.row_places import RowPlaces

#: Tables with a record of each command of a core.
_CORE_TABLES = {
    TableNumber.FEED: Core.MATRIX,
    TableNumber.DRAIN: Core.MATRIX,
    TableNumber.WEIGHTS: Core.MATRIX,
    TableNumber.WALKS: Core.VECTOR,
    TableNumber.LOOPS: Core.VECTOR,
    TableNumber.ATTENTION: Core.ATTENTION,
}


@dataclass(frozen=True, kw_only=True)
class Record:
    """A record of an image, without its bits."""

    table: TableNumber
    number: int  #: In its table.
    step: int  #: The first command that needs it.
    rows: int = 1  #: Cycles that its rows take.


@dataclass(frozen=True, kw_only=True)
class ImageOrder:
    """The records of an image, the header first."""

    records: tuple[Record, ...]
    opening: int  #: Records before the first command.


def image_order(program: NetworkProgram, *, lanes: int) -> ImageOrder:
    """Return the order of a program's records; ``lanes``: of the vector unit."""
    records = [*_plain(program), *_ram_records(program, RowPlaces(program, lanes=lanes))]
    header = Record(table=TableNumber.HEADER, number=0, step=0)
    records.sort(key=lambda each: each.table)
    if is_barriers(program):
        return ImageOrder(records=(header, *records), opening=1 + len(records))
    last = _last_of_opening(program)
    # Rows of RAMs first, and last the record with which the sequencer offers the command.
    records.sort(key=lambda each: (each.step, each.table < FIRST_RAM, each.table == TableNumber.STEPS))
    opening = 1 + sum(each.step <= last for each in records)
    return ImageOrder(records=(header, *records), opening=opening)


def _last_of_opening(program: NetworkProgram) -> int:
    """Return the step that waits for the last of the first transfers, which wait for nothing."""
    first = list(
        itertools.takewhile(lambda each: each.starts == NO_COUNTS and not each.others, program.reads)
    )
    waits = (n for n, step in enumerate(program.steps) if step.wait_reads >= len(first))
    return next(waits, len(program.steps) - 1)


def _plain(program: NetworkProgram) -> list[Record]:
    """Return the records of commands and of transfers."""
    own = [[n for n, step in enumerate(program.steps) if step.core is core] for core in Core]
    needed = {
        TableNumber.STEPS: list(range(len(program.steps))),
        TableNumber.READS: _started(program.reads, own),
        TableNumber.WRITES: _started(program.writes, own),
        **{table: own[core] for table, core in _CORE_TABLES.items()},
    }
    return [
        Record(table=table, number=number, step=step)
        for table, steps in needed.items()
        for number, step in enumerate(steps)
    ]


def _started(transfers: Sequence[Transfer], own: list[list[int]]) -> list[int]:
    """Return for each transfer the last command that it waits for."""
    awaited = (
        max((step for core, count in enumerate(each.starts) for step in own[core][:count][-1:]), default=0)
        for each in transfers
    )
    return list(itertools.accumulate(awaited, max))


def _ram_records(program: NetworkProgram, places: RowPlaces) -> list[Record]:
    """Return the records of RAMs, each needed by the first command that reads one of its rows."""
    rows = {
        TableNumber.CHANNELS: places.lanes * sum(places.counts.values()),
        TableNumber.TAPS: places.taps.rows,
        TableNumber.VECTOR_TAPS: places.windows.rows,
        TableNumber.SCALES: places.scales.rows,
        TableNumber.TABLES: TABLE_ROWS * len(program.tables),
        TableNumber.EXPONENTIALS: EXPONENTIAL_ROWS * len(program.exponentials),
    }
    needed = {table: np.full(count, len(program.steps)) for table, count in rows.items()}
    for number, step in reversed(list(enumerate(program.steps))):
        for table, read in places.read(step.command).items():
            needed[table][read.start : read.stop] = number
    firsts = {table: list(range(0, count, SLOTS)) for table, count in rows.items()}
    firsts[TableNumber.CHANNELS] = places.channel_firsts
    return [
        Record(
            table=table,
            number=number,
            step=int(needed[table][first : first + SLOTS].min()),
            rows=1 if table in BLOCK_RAMS else min(SLOTS, rows[table] - first),
        )
        for table, found in firsts.items()
        for number, first in enumerate(found)
    ]
