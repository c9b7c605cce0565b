"""Which events surely precede each event of a program, by its waits alone.

A clock is a row of counts (`Column`): the events that surely come before.  A wait is for the first so many
events of a list in order, so the clocks of all waits of an event, joined by their maximum, are exact.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.errors import LoomworkError
from hw.network.commands import Core
from hw.network.program.program import Transfer
from hw.network.program.tasks import Task, Tasks

Rows = NDArray[np.int32]

#: Bits of the counters of written words, which gates compare.
COUNTER_BITS = 20


class OrderError(LoomworkError):
    """A program whose result may depend on its timing, or that may wait for itself."""


class Column(enum.IntEnum):
    """The counts of a clock; the first two begin a count of each core."""

    FINISHED = 0  #: Commands whose reads and writes are all done.
    WRITTEN = len(Core)  #: Words written.
    READS = 2 * len(Core)  #: Transfers from memory that are complete.
    WRITES = 2 * len(Core) + 1  #: Transfers to memory that are complete.


_COLUMNS = 2 * len(Core) + 2


@dataclass(frozen=True, kw_only=True, eq=False)
class TaskClocks:
    """The clocks of a command's events."""

    number: int  #: Of the command in its core's list.
    first_write: int  #: Number of its first word in the words of its core.
    start: Rows  #: Of its start, and of its reads that are not gated: one row.
    requests: Rows | None  #: Of each gated read, if the command follows another core.
    writes: Rows  #: Of each word written.


@dataclass(frozen=True, kw_only=True, eq=False)
class Clocks:
    """The clocks of a program; ``order``: one order in which all events may happen one by one."""

    tasks: tuple[TaskClocks, ...]
    reads: tuple[Rows, ...]  #: Of the start of each transfer.
    writes: tuple[Rows, ...]
    order: tuple[tuple[str, int], ...]  #: ``"task"``, ``"reads"`` or ``"writes"``, and its number.


class _Play:
    """Plays a program command by command, transfers as late as they are waited for."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        totals = [
            sum(len(each.accesses.writes) for each in tasks.tasks if each.core == core) for core in Core
        ]
        #: Clocks of all words written by each core, and how many are known.
        self._written = [np.zeros((total, _COLUMNS), np.int32) for total in totals]
        self._words = [0 for _ in Core]
        self._started = [np.zeros(_COLUMNS, np.int32) for _ in Core]
        self._finished: list[list[Rows]] = [[] for _ in Core]
        self._starts: dict[str, list[Rows]] = {"reads": [], "writes": []}
        self._completed: dict[str, list[Rows]] = {"reads": [], "writes": []}
        self._moving: set[str] = set()
        self._order: list[tuple[str, int]] = []

    def run(self) -> Clocks:
        """Return all clocks."""
        found = []
        for number, task in enumerate(self._tasks.tasks):
            start = self._waits(task.name, task.waits, task.wait_reads, task.wait_writes)
            found.append(self._task(task, np.maximum(start, self._started[task.core])))
            self._order.append(("task", number))
        for direction in ("reads", "writes"):
            self._move(direction, len(getattr(self._tasks, direction)), "the end")
        return Clocks(
            tasks=tuple(found),
            reads=tuple(self._starts["reads"]),
            writes=tuple(self._starts["writes"]),
            order=tuple(self._order),
        )

    def _waits(self, name: str, counts: Sequence[int], reads: int, writes: int) -> Rows:
        """Return the clock of waits."""
        found = np.zeros(_COLUMNS, np.int32)
        for core, count in zip(Core, counts, strict=True):
            if count > len(self._finished[core]):
                raise OrderError(f"{name} waits for a command of the {core.name.lower()} core after it")
            if count:
                found = np.maximum(found, self._finished[core][count - 1])
        for direction, count in (("reads", reads), ("writes", writes)):
            self._move(direction, count, name)
            if count:
                found = np.maximum(found, self._completed[direction][count - 1])
        return found

    def _move(self, direction: str, count: int, name: str) -> None:
        """Complete the first transfers of a direction."""
        listed: tuple[Transfer, ...] = getattr(self._tasks, direction)
        done, starts = self._completed[direction], self._starts[direction]
        if count > len(listed):
            raise OrderError(f"{name} waits for more {direction} than there are")
        while len(done) < count:
            if direction in self._moving:
                raise OrderError(f"{name} waits for transfers that wait for each other")
            number, transfer = len(done), listed[len(done)]
            self._moving.add(direction)
            others = (0, transfer.others) if direction == "reads" else (transfer.others, 0)
            start = self._waits(f"{direction} {number}, which {name} waits for,", transfer.starts, *others)
            self._moving.remove(direction)
            if done:
                start = np.maximum(start, starts[-1])
            end = np.maximum(start, done[-1]) if done else start.copy()
            end[Column[direction.upper()]] = number + 1
            starts.append(start)
            done.append(end)
            self._order.append((direction, number))

    def _task(self, task: Task, start: Rows) -> TaskClocks:
        core, count = task.core, len(task.accesses.writes)
        first = self._words[core]
        self._started[core] = start
        base = np.maximum(start, self._written[core][first - 1]) if first else start
        rows = self._written[core][first : first + count]
        rows[:] = base
        requests = self._gated(task, start)
        if requests is not None:
            # A write comes after the reads that its word needs, and so after their gates.
            last = np.full(count, -1)
            for reads in task.accesses.reads:
                if reads.gated and count:
                    np.maximum.at(last, reads.before, np.arange(len(reads.before)))
            last = np.maximum.accumulate(last)
            rows[last >= 0] = np.maximum(base, requests[last[last >= 0]])
        rows[:, Column.WRITTEN + core] = first + 1 + np.arange(count)
        self._words[core] += count
        number = len(self._finished[core])
        end = start.copy()
        for more in (rows[-1:], requests[-1:] if requests is not None else (), self._finished[core][-1:]):
            for row in more:
                end = np.maximum(end, row)
        end[Column.FINISHED + core] = number + 1
        end[Column.WRITTEN + core] = first + count
        self._finished[core].append(end)
        return TaskClocks(number=number, first_write=first, start=start, requests=requests, writes=rows)

    def _gated(self, task: Task, start: Rows) -> Rows | None:
        """Return the clocks of gated reads."""
        words = gates(task)
        if words is None or task.follow is None or not len(words):
            return None
        core = task.follow.core
        if words[-1] >= self._words[core]:
            raise OrderError(f"{task.name} follows words of the {core.name.lower()} core after it")
        found = np.tile(start, (len(words), 1))
        held = words >= 0
        found[held] = np.maximum(start, self._written[core][words[held]])
        return found


def gates(task: Task) -> NDArray[np.int64] | None:
    """Return the word that each gated read follows, or those before it do; negative without one."""
    follow = task.follow
    counts = [len(each.before) for each in task.accesses.reads if each.gated]
    if follow is None or not counts:
        return None
    tile, read = np.divmod(np.arange(follow.tiles * follow.per_tile), follow.per_tile)
    words = follow.first + tile * follow.tile_step + read * follow.step
    request = np.minimum(np.arange(max(counts)), len(words) - 1)
    return np.asarray(np.maximum.accumulate(words)[request])


def clocks_of(tasks: Tasks) -> Clocks:
    """Return the clocks of a program.

    Raises `OrderError` unless its commands can run one by one in their order.  Waits only ever become true:
    then no execution stops.
    """
    clocks = _Play(tasks).run()
    _check_counters(tasks, clocks)
    return clocks


def _check_counters(tasks: Tasks, clocks: Clocks) -> None:
    """Require that gates compare counts that are near enough, for counters wrap."""
    far = 1 << COUNTER_BITS - 1
    for task, own in zip(tasks.tasks, clocks.tasks, strict=True):
        words = gates(task)
        if words is None or task.follow is None:
            continue
        core = task.follow.core
        least = int(own.start[Column.WRITTEN + core])
        later = (
            each.first_write
            for other, each in zip(tasks.tasks, clocks.tasks, strict=True)
            if other.core == core and each.start[Column.FINISHED + task.core] > own.number
        )
        total = sum(len(each.accesses.writes) for each in tasks.tasks if each.core == core)
        most = next(later, total)
        if words[-1] + 1 - least >= far or most - (words[0] + 1) >= far:
            raise OrderError(f"{task.name} follows words that are too far away for its counters")
