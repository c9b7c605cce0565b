"""Naive models of the scratchpad: who is granted in each cycle, and when words are there."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from hw.network.scratchpad.response import READS_AHEAD, SliceResponse
from hw.network.scratchpad.shape import GranuleShape
from hw.network.scratchpad.slice import QUEUE


@dataclass
class NaivePort:
    """A port of one direction: requests are words, and a writer never lacks room."""

    credits: int | None = READS_AHEAD  #: None for a writer.
    waiting: deque[int] = field(default_factory=deque)
    head: int | None = None
    granted_last: bool = False

    def eligible(self) -> bool:
        # A grant costs its credit a cycle later, and one credit is kept for it.
        return self.head is not None and (self.credits is None or self.credits + self.granted_last >= 2)

    def edge(self, granted: bool, accepted: int | None, taken: bool) -> None:
        if granted or self.head is None:
            self.head = self.waiting.popleft() if self.waiting else None
        if accepted is not None:
            self.waiting.append(accepted)
        if self.credits is not None:
            self.credits += taken - granted
        self.granted_last = granted


def granted(ports: Sequence[NaivePort], bank_of) -> list[bool]:
    """Return whether each port is granted: the first of each bank."""
    served, result = set(), []
    for port in ports:
        wins = port.eligible() and bank_of(port.head) not in served
        if wins:
            served.add(bank_of(port.head))
        result.append(wins)
    return result


@dataclass
class _Reader:
    """A read port of the scratchpad."""

    slices: list[NaivePort]
    answers: list[deque[int]]  #: Cycle in which each response of a slice is there.
    asking: tuple[int | None, ...] | None = None  #: Word asked of each slice.
    tags: deque[tuple[int | None, ...]] = field(default_factory=deque)
    current: tuple[int | None, ...] | None = None
    valid: bool = False


class NaiveReaders:
    """The read ports of a scratchpad, cycle by cycle; data is not looked at."""

    def __init__(self, shape: GranuleShape, ports: int) -> None:
        self.shape = shape
        count = shape.granules
        self.ports = [
            _Reader([NaivePort() for _ in range(count)], [deque() for _ in range(count)])
            for _ in range(ports)
        ]
        self.now = 0

    def words_of(self, address: int, enable: int) -> tuple[int | None, ...]:
        """Return the word asked of each slice."""
        count = self.shape.granules
        words: list[int | None] = [None] * count
        for n in range(count):
            if enable >> n & 1:
                words[(address + n) % count] = (address + n) // count % self.shape.words
        return tuple(words)

    def cycle(self, offered: Sequence[tuple[int, int] | None], ready: Sequence[bool]) -> list[bool]:
        """Go on by a cycle; return whose request is taken."""
        count = self.shape.granules
        wins = [granted([port.slices[n] for port in self.ports], self.shape.bank_of) for n in range(count)]
        taken = []
        for at, port in enumerate(self.ports):
            accepts = len(port.tags) < READS_AHEAD and all(len(each.waiting) < QUEUE for each in port.slices)
            pushed = port.asking if port.asking is not None and accepts else None
            free = port.asking is None or accepts
            step = (
                port.current is not None
                and all(
                    word is None or (answers and answers[0] <= self.now)
                    for word, answers in zip(port.current, port.answers, strict=True)
                )
                and (not port.valid or ready[at])
            )
            for n, each in enumerate(port.slices):
                takes = bool(step and port.current and port.current[n] is not None)
                if takes:
                    port.answers[n].popleft()
                if wins[n][at]:
                    port.answers[n].append(self.now + SliceResponse.LATENCY)
                each.edge(wins[n][at], pushed[n] if pushed else None, takes)
            if not port.valid or ready[at]:
                port.valid = step
            if port.current is None or step:
                port.current = port.tags.popleft() if port.tags else None
            if pushed is not None:
                port.tags.append(pushed)
            offer = offered[at]
            if free:
                port.asking = None if offer is None else self.words_of(*offer)
            taken.append(free and offer is not None)
        self.now += 1
        return taken
