"""Naive models of a slice: who is granted in each cycle, and what is read."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from hw.scheduler.core.granules.response import READS_AHEAD


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
