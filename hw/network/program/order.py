"""Replaces the barriers of a program by the waits that its accesses need.

A command waits for the last command of each core, and the last transfer, that it conflicts with: one of both
writes a granule that the other one accesses.  Where it reads results in the order in which they are written,
it follows them word by word.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hw.network.commands import Core, Follow
from hw.network.config import NetworkConfig
from hw.network.program.accesses import Accesses
from hw.network.program.follows import follow_of
from hw.network.program.program import Counts, NetworkProgram, Transfer
from hw.network.program.tasks import Task, Tasks, tasks_of, with_waits

Numbers = NDArray[np.int64]

#: Cores that have word gates.
FOLLOWERS = (Core.MATRIX, Core.VECTOR)


def order(
    program: NetworkProgram, config: NetworkConfig, *, follows: Collection[Core] = FOLLOWERS
) -> NetworkProgram:
    """Return a program of barriers with the waits that it needs on a kernel.

    ``follows``: cores whose commands may follow others word by word.
    """
    return with_waits(program, order_tasks(tasks_of(program, config), follows=follows))


def order_tasks(tasks: Tasks, *, follows: Collection[Core] = tuple(Core)) -> Tasks:
    """Return tasks with the waits that they need; those they have only say where transfers stand."""
    return _Order(tasks, follows=follows).run()


class _Order:
    """Goes through all events in one order, and remembers the last accesses to each granule."""

    def __init__(self, tasks: Tasks, *, follows: Collection[Core]) -> None:
        self._given, self._follows = tasks, follows
        self._tasks = list(tasks.tasks)
        self._moved = {"reads": list(tasks.reads), "writes": list(tasks.writes)}

        def none(size: int = tasks.granules) -> Numbers:
            return np.zeros(size, np.int64)

        # Of each granule, counted from 1: the last word of each core, and its last command that reads it.
        self._written, self._read = [none() for _ in Core], [none() for _ in Core]
        # Of each granule: the last transfer that writes it, and the last one that reads it.
        self._filled, self._drained = none(), none()
        self._silent = [none() for _ in Core]  # the last command without results that reads it
        # Of each word of the memory, likewise for both directions.
        self._loaded, self._stored = none(tasks.memory_words), none(tasks.memory_words)
        self._firsts: list[list[int]] = [
            [0] for _ in Core
        ]  # first word of each command of a core, and the end
        self._positions: list[list[int]] = [[] for _ in Core]  # of each command, in program order
        self._reduction = _Reduction()

    def run(self) -> Tasks:
        """Derive all waits."""
        for kind, number in _sequence(self._given):
            if kind == "tasks":
                self._task(number)
            else:
                self._transfer(kind, number)
        return replace(
            self._given,
            tasks=tuple(self._tasks),
            reads=tuple(self._moved["reads"]),
            writes=tuple(self._moved["writes"]),
        )

    def _task(self, number: int) -> None:
        task = self._tasks[number]
        core, found = task.core, task.accesses
        written = _once(found.writes)
        both = np.concatenate([_once(*(each.granules for each in found.reads)), written])
        follow, words = self._follow(task)
        # Words of a core are written in order, and a command's reads come before its last result.
        readers = [self._silent[each] if each == core else self._read[each] for each in Core]
        for each in Core:
            if each != core:
                words[each] = max(words[each], _most(self._written[each], written))
        waits = [max(self._owner(each, words[each]), _most(readers[each], written)) for each in Core]
        self._tasks[number] = replace(
            task,
            waits=self._reduction.task(core, waits),
            wait_reads=_most(self._filled, both),
            wait_writes=_most(self._drained, written),
            follow=follow,
        )
        self._note(core, found)

    def _follow(self, task: Task) -> tuple[Follow | None, list[int]]:
        """Return the gate of a command, and the words of each core that it needs before it starts."""
        gated = [each.granules for each in task.accesses.reads if each.gated]
        others = _once(*(each.granules for each in task.accesses.reads if not each.gated))
        words = [_most(self._written[core], others) for core in Core]
        needed = [np.zeros(len(gated[0]) if gated else 0, np.int64) for _ in Core]
        for granules in gated:
            for core in Core:
                counts = np.where(granules >= 0, self._written[core][granules], 0)
                needed[core] = np.maximum(needed[core], counts.max(axis=1))
        most = [int(each.max(initial=0)) for each in needed]
        # The one that is written last in program order.
        latest = max(Core, key=lambda core: self._position(core, most[core]))
        follow = None
        if task.core in self._follows and most[latest]:
            counted = needed[latest] - 1  # `FREE` where it needs none
            total = self._firsts[latest][-1]
            follow = follow_of(latest, counted, task.accesses.grid, written=total)
        for core in Core:
            if follow is None or core != latest:
                words[core] = max(words[core], most[core])
        return follow, words

    def _transfer(self, direction: str, number: int) -> None:
        transfer = self._moved[direction][number]
        places = np.arange(4 * transfer.address, 4 * (transfer.address + transfer.words))
        words = transfer.memory
        starts = [self._owner(core, _most(self._written[core], places)) for core in Core]
        if direction == "reads":
            starts = [max(starts[core], _most(self._read[core], places)) for core in Core]
            others = max(_most(self._drained, places), _most(self._stored, words))
            self._filled[places] = self._loaded[words] = number + 1
        else:
            others = max(_most(self._filled, places), _most(self._loaded, words))
            self._drained[places] = self._stored[words] = number + 1
        self._moved[direction][number] = replace(transfer, starts=tuple(starts), others=others)

    def _note(self, core: int, found: Accesses) -> None:
        """Note the accesses of a command."""
        firsts = self._firsts[core]
        reads = _once(*(each.granules for each in found.reads))
        self._read[core][reads] = len(firsts)
        if not len(found.writes):
            self._silent[core][reads] = len(firsts)
        for column in range(found.writes.shape[1]):
            places = found.writes[:, column]
            (rows,) = np.nonzero(places >= 0)
            np.maximum.at(self._written[core], places[rows], firsts[-1] + 1 + rows)
        firsts.append(firsts[-1] + len(found.writes))
        self._positions[core].append(sum(map(len, self._positions)))

    def _owner(self, core: int, words: int) -> int:
        """Return the commands of a core up to the one that writes the last of so many words."""
        return bisect.bisect_left(self._firsts[core], words) if words else 0

    def _position(self, core: int, words: int) -> int:
        """Return the place in program order of the command that writes a word; -1 without one."""
        return self._positions[core][self._owner(core, words) - 1] if words else -1


class _Reduction:
    """Drops waits that follow from others: those of the core's command before, or of an awaited command."""

    def __init__(self) -> None:
        self._started = [np.zeros(len(Core), np.int64) for _ in Core]
        self._finished: list[list[Numbers]] = [[np.zeros(len(Core), np.int64)] for _ in Core]

    def task(self, core: int, waits: list[int]) -> Counts:
        """Return the waits of the next command of a core, without those that follow."""
        left = list(waits)
        for each in Core:
            known = self._known(
                core, [0 if other == each else count for other, count in zip(Core, left, strict=True)]
            )
            if known[each] >= left[each]:
                left[each] = 0
        started = self._known(core, waits)
        own, number = self._finished[core], len(self._finished[core])
        ended = np.maximum(started, own[-1])
        ended[core] = number
        self._started[core] = started
        own.append(ended)
        return tuple(left)

    def _known(self, core: int, waits: list[int]) -> Numbers:
        """Return the commands that are surely finished when a command starts that waits for so many."""
        found = self._started[core]
        for each, count in zip(Core, waits, strict=True):
            found = np.maximum(found, self._finished[each][count])
        return found


def _sequence(tasks: Tasks) -> Iterator[tuple[str, int]]:
    """Yield all events in an order in which they may happen: transfers as late as they are waited for."""
    done = {"reads": 0, "writes": 0}

    def move(direction: str, count: int) -> Iterator[tuple[str, int]]:
        listed: tuple[Transfer, ...] = getattr(tasks, direction)
        while done[direction] < count:
            number = done[direction]
            yield from move("writes" if direction == "reads" else "reads", listed[number].others)
            done[direction] += 1
            yield direction, number

    for number, task in enumerate(tasks.tasks):
        yield from move("writes", task.wait_writes)
        yield from move("reads", task.wait_reads)
        yield "tasks", number
    yield from move("reads", len(tasks.reads))
    yield from move("writes", len(tasks.writes))


def _once(*granules: Numbers) -> Numbers:
    """Return all granules that are accessed."""
    found = [each[each >= 0] for each in granules]
    return np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)


def _most(counts: Numbers, places: Numbers) -> int:
    return int(counts[places].max(initial=0))
