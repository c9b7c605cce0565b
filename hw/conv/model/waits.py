"""Intervals in which units work or stall, and their union by precedence."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

#: In order of precedence.
BUSY, WEIGHT, INPUT, OUTPUT = range(4)
_IDLE = 4


class CycleCounts:
    """Intervals of cycles, ends excluded, each with the state of one of the units."""

    def __init__(self) -> None:
        self._intervals: list[tuple[int, int, int]] = []
        self._even: list[NDArray[np.int64]] = []

    def add(self, cause: int, start: int, end: int) -> None:
        """Add an interval; an empty one is ignored."""
        if end > start:
            self._intervals.append((start, end, cause))

    def add_even(self, cause: int, start: int, length: int, *, pitch: int, count: int) -> None:
        """Add ``count`` intervals of one length, ``pitch`` cycles apart."""
        if length == pitch:
            self.add(cause, start, start + count * pitch)
        else:
            starts = start + pitch * np.arange(count)
            self._even.append(np.stack([starts, starts + length, np.full(count, cause)], axis=1))

    def counts(self, cycles: int) -> Mapping[str, int]:
        """Return the cycles of each counter, of 0 ... ``cycles`` - 1: each cycle counts once."""
        found = np.concatenate([np.array([*self._intervals, (0, cycles, _IDLE)], np.int64), *self._even])
        bounds = np.unique(np.clip(found[:, :2], 0, cycles))
        lengths = np.diff(bounds)
        cause = np.full(len(lengths), _IDLE)
        for number in reversed(range(_IDLE)):
            mine = found[found[:, 2] == number]
            change = np.zeros(len(bounds), np.int64)
            for column, step in ((0, 1), (1, -1)):
                np.add.at(change, np.searchsorted(bounds, np.clip(mine[:, column], 0, cycles)), step)
            cause[np.cumsum(change)[:-1] > 0] = number
        sums = np.bincount(cause, weights=lengths, minlength=_IDLE + 1)
        names = (
            "cycles_busy",
            "cycles_stall_weight",
            "cycles_stall_input",
            "cycles_stall_output",
            "cycles_idle",
        )
        return {name: int(count) for name, count in zip(names, sums, strict=True)}
