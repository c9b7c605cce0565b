"""Starts fetches in earlier steps and ends writes in later ones, so that they overlap with computation.

This adds no words and no peak, and changes no address: an episode only grows into steps in which its words of
the scratchpad are free.  The longest wait of a step is hidden first.  A change is kept only if the whole plan
becomes shorter by `QueueTiming`, a model of the two in-order transfer queues.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hw.scheduler.planner.address.blocks import AddressBlock
from hw.scheduler.planner.watch import current

#: Cycles from the start of a transfer to its first word, without a memory model.
LATENCY_CYCLES = 100
#: Steps and transfers visited before the search ends, some seconds in all.
_WORK = 4_000_000
#: Passes over the transfers that are still exposed.
_PASSES = 3


@dataclass
class Move:
    """A transfer whose steps may change; ``block`` is the index of the block it fills or saves, or of its
    window.  A transfer engine moves a word a cycle.
    """

    words: int
    start: int
    deadline: int
    reads: bool
    streams: bool
    block: int


class QueueTiming(NamedTuple):
    """Cycles of a simulation of the two queues.

    The total is from the first slot to the end of the last transfer; each step waits for its reads, and
    before its slot for writes.
    """

    total: int
    read_waits: tuple[int, ...]
    write_waits: tuple[int, ...]


def queue_key(move: Move) -> tuple[int, int, int]:
    """Return the sort key of a move in its queue.

    Streams come after the reads that their step waits for, and before the writes that start after it.
    """
    if move.reads:
        return move.start, move.deadline, not move.streams
    return move.start, not move.streams, move.deadline


def simulate(
    moves: Sequence[Move], step_cycles: Sequence[int], latency_cycles: int = LATENCY_CYCLES
) -> QueueTiming:
    """Run both queues against steps of known length.

    The moves may be in any order; `queue_key` sorts them. ``step_cycles``: cycles of each step once its
    operands have arrived. ``latency_cycles``: from the start of a transfer to its first word.
    """
    steps = len(step_cycles)
    reads: list[list[Move]] = [[] for _ in range(steps)]
    writes: list[list[Move]] = [[] for _ in range(steps)]
    for move in sorted(moves, key=queue_key):
        (reads if move.reads else writes)[move.start].append(move)
    readable, saved = [0] * (steps + 1), [0] * (steps + 1)
    read_waits, write_waits = [], []
    now = reading = writing = 0  # end of the previous step; end of each engine's last transfer
    for step in range(steps):
        slot = max(now, saved[step])
        write_waits.append(slot - now)
        streamed = 0
        for move in reads[step]:
            # A busy queue prefetches the next data: only an idle one exposes its latency.
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
    return QueueTiming(
        total=max(now, reading, max(saved)), read_waits=tuple(read_waits), write_waits=tuple(write_waits)
    )


class Hiding:
    """Moves starts and deadlines to shorten waits, the longest wait first.

    A read's block begins with its start, a write's ends before its deadline.

    * ``blocks``: all blocks in the scratchpad; their total in any step never exceeds the present maximum.
    * ``addresses``, ``owners``: each block's address in words, and its tensor, or -1 for a buffer. A tensor
      is never at two addresses at once.
    * ``step_cycles``, ``latency_cycles``: as for `simulate`.
    """

    def __init__(
        self,
        moves: Sequence[Move],
        blocks: Sequence[AddressBlock],
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

    def _simulate(self) -> QueueTiming:
        self._work += len(self._moves) + len(self._step_cycles)
        return simulate(self._moves, self._step_cycles, self._latency_cycles)

    def run(self) -> list[Move]:
        """Return the moves with their best steps; each change is tried, and kept or undone."""
        for _ in range(_PASSES):
            if not self._improve():
                break
        return self._moves

    def _improve(self) -> bool:
        """Try each exposed transfer once; return whether the plan became shorter."""
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
        """Try to extend a transfer over as many steps as possible."""
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
        """Return the earliest start of a read, or the latest deadline of a write.

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
