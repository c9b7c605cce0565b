"""The check: any two accesses to a word, one of them a write, are ordered in every execution."""

from __future__ import annotations

from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from hw.network.check.clocks import Clocks, Column, OrderError, Rows, TaskClocks, clocks_of
from hw.network.commands import Core
from hw.network.config import NetworkConfig
from hw.network.program.accesses import Reads
from hw.network.program.program import NetworkProgram, Transfer
from hw.network.program.tasks import Task, Tasks, tasks_of

Places = NDArray[np.int64]

_LATE = np.iinfo(np.int32).max


def check(program: NetworkProgram, config: NetworkConfig) -> None:
    """Raise `OrderError` unless every execution that a program's waits allow ends, with the same bytes.

    It trusts the commands and the waits, and no one who made them.
    """
    check_tasks(tasks_of(program, config))


def check_tasks(tasks: Tasks) -> None:
    """Raise `OrderError` unless all accesses to a word, one of them a write, are ordered."""
    sweep = _Sweep(tasks, clocks_of(tasks))
    sweep.run()


class _Sweep:
    """Goes through all events in one order; each must surely follow all before it that it conflicts with.

    For each granule it holds the last access of each kind, as the count that a clock must have reached.
    """

    def __init__(self, tasks: Tasks, clocks: Clocks) -> None:
        self._tasks, self._clocks = tasks, clocks
        size = tasks.granules

        def last() -> Rows:
            return np.zeros(size, np.int32)

        #: Writes of cores and of transfers, by the column of a clock.
        self._written = {Column.WRITTEN + core: last() for core in Core} | {int(Column.READS): last()}
        #: Reads, by the column of a clock: of a command with results by the result that needs it.
        self._read = {Column.WRITTEN + core: last() for core in Core} | {int(Column.WRITES): last()}
        self._read |= {Column.FINISHED + core: last() for core in Core}
        #: Of the memory, by words.
        self._memory = {
            column: np.zeros(tasks.memory_words, np.int32) for column in (Column.READS, Column.WRITES)
        }
        self._own = np.full(size, _LATE, np.int32)  # the first write of one command

    def run(self) -> None:
        """Go through all events."""
        for kind, number in self._clocks.order:
            if kind == "task":
                self._task(self._tasks.tasks[number], self._clocks.tasks[number])
            elif kind == "reads":
                self._transfer_in(number, self._tasks.reads[number], self._clocks.reads[number])
            else:
                self._transfer_out(number, self._tasks.writes[number], self._clocks.writes[number])

    def _task(self, task: Task, clocks: TaskClocks) -> None:
        core, found = task.core, task.accesses
        for reads in found.reads:
            if reads.gated and clocks.requests is not None:
                self._compare(task.name, reads.granules, clocks.requests, self._written)
            else:
                self._compare(task.name, self._once(reads.granules), clocks.start[None], self._written)
        column = Column.WRITTEN + core
        # Words of a core are written in order, each after the reads that it needs.
        written = {each: last for each, last in self._written.items() if each != column}
        read = {each: last for each, last in self._read.items() if each != column}
        self._compare(task.name, found.writes, clocks.writes, written)
        self._compare(task.name, found.writes, clocks.writes, read)
        self._within(task)
        for reads in found.reads:
            self._note_reads(task, clocks, reads)
        places, rows = _flat(found.writes)
        np.maximum.at(self._written[column], places, (clocks.first_write + 1 + rows).astype(np.int32))

    def _within(self, task: Task) -> None:
        """Require that a command reads no granule that it may have written before."""
        places, rows = _flat(task.accesses.writes)
        np.minimum.at(self._own, places, rows.astype(np.int32))
        for reads in task.accesses.reads:
            read, requests = _flat(reads.granules)
            wrong = read[self._own[read] < reads.before[requests]]
            if len(wrong):
                self._refuse(task.name, int(wrong[0]))
        self._own[places] = _LATE

    def _note_reads(self, task: Task, clocks: TaskClocks, reads: Reads) -> None:
        if len(task.accesses.writes):
            places, rows = _flat(reads.granules)
            last = (clocks.first_write + 1 + reads.before[rows]).astype(np.int32)
            np.maximum.at(self._read[Column.WRITTEN + task.core], places, last)
        else:
            places, _ = _flat(self._once(reads.granules))
            self._read[Column.FINISHED + task.core][places] = clocks.number + 1

    def _transfer_in(self, number: int, transfer: Transfer, start: Rows) -> None:
        places, words = _places(transfer)
        name = f"reads {number}"
        # Transfers of a direction are done in order.
        written = {column: last for column, last in self._written.items() if column != Column.READS}
        self._compare(name, places, start[None], written)
        self._compare(name, places, start[None], self._read)
        self._compare_memory(name, words, start, Column.WRITES)
        self._written[Column.READS][places[:, 0]] = number + 1
        self._memory[Column.READS][words] = number + 1

    def _transfer_out(self, number: int, transfer: Transfer, start: Rows) -> None:
        places, words = _places(transfer)
        name = f"writes {number}"
        self._compare(name, places, start[None], self._written)
        self._compare_memory(name, words, start, Column.READS)
        self._read[Column.WRITES][places[:, 0]] = number + 1
        self._memory[Column.WRITES][words] = number + 1

    def _once(self, granules: Places) -> Places:
        """Return each granule once."""
        met = np.zeros(self._tasks.granules, np.bool_)
        met[granules[granules >= 0]] = True
        return np.flatnonzero(met)[:, None]

    def _compare(self, name: str, granules: Places, clocks: Rows, last: dict[int, Rows]) -> None:
        """Require that accesses, a clock each or one for all, follow the last ones."""
        places, rows = _flat(granules)
        one = len(clocks) == 1
        for column, counts in last.items():
            known = clocks[0, column] if one else clocks[rows, column]
            late = counts[places] > known
            if late.any():
                self._refuse(name, int(places[np.argmax(late)]), column, int(counts[places][np.argmax(late)]))

    def _compare_memory(self, name: str, words: Places, start: Rows, column: Column) -> None:
        if (self._memory[column][words] > start[column]).any():
            raise OrderError(
                f"{name} and transfers in the other direction share words of the memory in no order"
            )

    def _refuse(self, name: str, granule: int, column: int | None = None, count: int = 0) -> NoReturn:
        other = "itself" if column is None else self._named(column, count)
        raise OrderError(f"{name} and {other} access granule {granule} of the scratchpad in no order")

    def _named(self, column: int, count: int) -> str:
        """Return the name of the access that a count of a clock ends with."""
        if column >= Column.READS:
            return f"{Column(column).name.lower()} {count - 1}"
        core = column % len(Core)
        own = [
            (task, each)
            for task, each in zip(self._tasks.tasks, self._clocks.tasks, strict=True)
            if task.core == core
        ]
        if column < Column.WRITTEN:
            return own[count - 1][0].name
        return next(task.name for task, each in reversed(own) if each.first_write < count)


def _flat(granules: Places) -> tuple[Places, Places]:
    """Return all granules, and the row of each."""
    rows, columns = np.nonzero(granules >= 0)
    return granules[rows, columns], rows


def _places(transfer: Transfer) -> tuple[Places, Places]:
    """Return the granules of a transfer, a row each, and its words of the memory."""
    first, count = 4 * transfer.address, 4 * transfer.words
    return np.arange(first, first + count)[:, None], transfer.memory
