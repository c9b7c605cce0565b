"""Transfers behind computation: fetches start early and writes end late where their region is free anyway.

Neither moves more words, needs a higher peak, nor changes an address: an episode only grows into steps in
which nobody else has its words of the scratchpad.  What a step waits for longest is hidden first, each change
kept only when the whole plan becomes shorter by `Timing`, a model of the two in-order transfer queues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hw.scheduler.planner.address.blocks import Block
from hw.scheduler.planner.watch import current

#: From the moment a transfer may run to its first word, where no memory says another.
LATENCY_CYCLES = 100
#: Steps and transfers visited before the search ends, some seconds in all.
_WORK = 4_000_000
#: Passes over what is still exposed.
_PASSES = 3


@dataclass
class Move:
    """A transfer whose steps may change; ``block`` is the index of what it fills or saves, or of its window.

    A transfer engine moves a word a cycle.
    """

    words: int
    start: int
    deadline: int
    reads: bool
    streams: bool
    block: int


class Timing(NamedTuple):
    """Cycles of a simulation of the two queues.

    The total is from the first slot to the end of the last transfer; each step waits for its reads, and
    before its slot for writes.
    """

    total: int
    read_waits: tuple[int, ...]
    write_waits: tuple[int, ...]


def queue_key(move: Move) -> tuple[int, int, int]:
    """Return the place of a move in its queue, by rising key: streams behind the reads their step waits for,
    before the writes that start when it is computed.
    """
    if move.reads:
        return move.start, move.deadline, not move.streams
    return move.start, not move.streams, move.deadline


def simulate(
    moves: Sequence[Move], step_cycles: Sequence[int], latency_cycles: int = LATENCY_CYCLES
) -> Timing:
    """Run both queues against steps of known length.

    The moves are in any order, and queued by `queue_key`; ``step_cycles`` are what each step takes once its
    operands are there, ``latency_cycles`` pass from the moment a transfer may run to its first word.
    """
    steps = len(step_cycles)
    reads: list[list[Move]] = [[] for _ in range(steps)]
    writes: list[list[Move]] = [[] for _ in range(steps)]
    for move in sorted(moves, key=queue_key):
        (reads if move.reads else writes)[move.start].append(move)
    readable, saved = [0] * (steps + 1), [0] * (steps + 1)
    read_waits, write_waits = [], []
    now = reading = writing = 0  # when the step before is computed; until when each engine is busy
    for step in range(steps):
        slot = max(now, saved[step])
        write_waits.append(slot - now)
        streamed = 0
        for move in reads[step]:
            # A queue that is busy asks for the next data meanwhile: only an idle one shows its latency.
            reading = max(reading, slot + latency_cycles) + move.words
            if move.streams:
                streamed = reading
            else:
                readable[move.deadline] = max(readable[move.deadline], reading)
        ready = max(slot, readable[step])
        read_waits.append(ready - slot)
        now = max(ready + step_cycles[step], streamed)
        for move in writes[step]:
            if move.streams:
                writing = max(now, max(writing, ready) + move.words)
                now = writing
            else:
                writing = max(writing, now) + move.words
            end = writing + latency_cycles
            saved[move.deadline] = max(saved[move.deadline], end)
    return Timing(
        total=max(now, reading, max(saved)), read_waits=tuple(read_waits), write_waits=tuple(write_waits)
    )


class Hiding:
    """Moves starts and deadlines so that less is waited for, the longest wait first.

    A read's block begins with its start, a write's ends before its deadline.

    ``blocks``: everything in the scratchpad; the sum of sizes in any step never exceeds today's maximum.
    ``addresses``, ``owners``: words of each block; its tensor, which is never in two places at once, or -1
    for a buffer. ``step_cycles``, ``latency_cycles``: as for `simulate`.
    """

    def __init__(
        self,
        moves: Sequence[Move],
        blocks: Sequence[Block],
        addresses: Sequence[int],
        owners: Sequence[int],
        step_cycles: Sequence[int],
        latency_cycles: int,
    ) -> None:
        self._moves = [replace(move) for move in moves]
        self._step_cycles, self._latency_cycles = step_cycles, latency_cycles
        self._first = np.array([block.first for block in blocks], dtype=np.int64)
        self._last = np.array([block.last for block in blocks], dtype=np.int64)
        self._low = np.array(addresses, dtype=np.int64)
        self._high = self._low + np.array([block.size for block in blocks], dtype=np.int64)
        self._owner = np.array(owners, dtype=np.int64)
        change = np.zeros(len(step_cycles) + 1, dtype=np.int64)
        np.add.at(change, self._first, self._high - self._low)
        np.subtract.at(change, self._last + 1, self._high - self._low)
        self._used = np.cumsum(change)[:-1]
        self._peak = int(self._used.max(initial=0))
        self._work = 0
        self._timing = self._simulate()

    def _simulate(self) -> Timing:
        self._work += len(self._moves) + len(self._step_cycles)
        return simulate(self._moves, self._step_cycles, self._latency_cycles)

    def run(self) -> list[Move]:
        """Return the moves with their best steps; each change is tried, and kept or undone."""
        for _ in range(_PASSES):
            if not self._improve():
                break
        return self._moves

    def _improve(self) -> bool:
        """Try each exposed transfer once; tell whether the plan became shorter."""
        waits = self._timing
        exposed = []
        for index, move in enumerate(self._moves):
            if move.streams or (not move.reads and move.deadline >= len(self._step_cycles)):
                continue
            wait = (waits.read_waits if move.reads else waits.write_waits)[move.deadline]
            if wait:
                exposed.append((-wait, -move.words, index))
        for _, _, index in sorted(exposed):
            if self._work > _WORK or current().stopped:
                break
            self._hide(self._moves[index])
        return self._timing.total < waits.total

    def _hide(self, move: Move) -> None:
        """Try to give a transfer as many steps as there are."""
        before, limit = move.start if move.reads else move.deadline, self._limit(move)
        if limit != before:
            self._set(move, limit)
            timing = self._simulate()
            if timing.total < self._timing.total:
                self._timing = timing
            else:
                self._set(move, before)

    def _set(self, move: Move, step: int) -> None:
        """Change a read's start or a write's deadline, and its block with it."""
        block = move.block
        size = int(self._high[block] - self._low[block])
        self._used[self._first[block] : self._last[block] + 1] -= size
        if move.reads:
            move.start = step
            self._first[block] = step
        else:
            move.deadline = step
            self._last[block] = step - 1
        self._used[self._first[block] : self._last[block] + 1] += size

    def _limit(self, move: Move) -> int:
        """Return the first step a read could start in, or the last deadline a write could have.

        The block must not share a step with others that have the same words or tensor.
        """
        block = move.block
        first, last = int(self._first[block]), int(self._last[block])
        size = int(self._high[block] - self._low[block])
        beside = (self._low < self._high[block]) & (self._high > self._low[block])
        beside |= self._owner == self._owner[block]
        beside[block] = False
        if move.reads:
            limit = int(self._last[beside & (self._last < first)].max(initial=-1)) + 1
            while first > limit and self._used[first - 1] + size <= self._peak:
                first -= 1
            return first
        limit = int(self._first[beside & (self._first > last)].min(initial=len(self._used)))
        while last + 1 < limit and self._used[last + 1] + size <= self._peak:
            last += 1
        return last + 1
