"""The log of a kernel's signals: a line for each cycle in which one of them has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError
from sim.host.paths import check_readable

Cycles = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class SignalLog:
    """Bits of signals over time, as the simulation's testbench writes them (`sim.bench.top`)."""

    names: tuple[str, ...]
    #: Edges of the kernel's clock since the simulation began, at which the bits change, in order.
    cycles: Cycles
    bits: NDArray[np.int64]  #: From each of these cycles to the next one: bit ``n`` is that of name ``n``.

    def high(self, *names: str, low: Sequence[str] = ()) -> Cycles:
        """Return the spans ``[spans, 2]`` in which all of ``names`` are 1 and those of ``low`` are 0: first
        cycle, and first cycle after it. A span that does not end within the log is left out.
        """
        holds = np.ones(len(self.bits), bool)
        for name in names:
            holds &= self._bit(name)
        for name in low:
            holds &= ~self._bit(name)
        edges = np.diff(np.concatenate([[False], holds, [False]]).astype(np.int8))
        # What holds on the last line has no end.
        begins, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
        ended = ends < len(self.cycles)
        return np.stack([self.cycles[begins[ended]], self.cycles[ends[ended]]], axis=1)

    def pulses(self, name: str) -> Cycles:
        """Return all cycles in which a signal is 1."""
        return cycles_in(self.high(name))

    def _bit(self, name: str) -> NDArray[np.bool_]:
        return (self.bits >> self.names.index(name) & 1).astype(bool)


def read_signals(path: Path, names: Sequence[str]) -> SignalLog:
    """Read a log; ``names`` are those of the design's signals, in order.

    Raises `InputError` when the file is missing or no log.
    """
    check_readable("signals", path)
    lines = [line.split() for line in path.read_text("utf-8").splitlines()]
    try:
        found = np.array([[int(cycle), int(bits)] for cycle, bits in lines], np.int64).reshape(-1, 2)
    except ValueError as error:
        raise InputError("signals", str(path), "a cycle and a number in each line") from error
    return SignalLog(names=tuple(names), cycles=found[:, 0], bits=found[:, 1])


def cycles_in(spans: Cycles) -> Cycles:
    """Return every cycle of some spans.

    >>> cycles_in(np.array([[3, 5], [9, 10]])).tolist()
    [3, 4, 9]
    """
    return np.concatenate([np.arange(0), *(np.arange(begin, end) for begin, end in spans.tolist())])
