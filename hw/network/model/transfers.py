"""The transfers of a program, cycle by cycle while any is under way; compiled.

The engines and the channel are those of `hw.scheduler.program.timing.transfers`; a word is one of the port.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hw.errors import LoomworkError
from hw.network.config import WORD_BYTES
from hw.network.model.latency import READ_COUNT_CYCLES, WRITE_CYCLES
from hw.network.program.program import NetworkProgram, Transfer
from hw.scheduler.compiled import compiled
from hw.scheduler.program.timing.memory import TimingModel
from hw.scheduler.program.timing.state import HardwareState, Integers, ProgramArrays
from hw.scheduler.program.timing.transfers import (
    BURSTS,
    DONE,
    DONE_OUT,
    ENGINE_STATE,
    ISSUED,
    WORDS,
    drain,
    fill,
    idle,
    serve,
)

#: Later than any cycle.
_NEVER = 1 << 60


@compiled
def _advance(
    cycle: int,
    until: int,
    begun: int,
    computed: int,
    wanted: tuple[int, int],
    late: tuple[int, int],
    tables: ProgramArrays,
    hardware: HardwareState,
    pace: TimingModel,
    last: Integers,
    ends: Integers,
    counts: Integers,
) -> int:
    """Advance until so many reads and writes are ``wanted``, or ``until``; return that cycle.

    ``ends``: when each read, and each write, is counted. ``counts``: reads and writes with a known end, and
    those that are counted.
    """
    while cycle < until:
        for way in range(2):
            while counts[2 + way] < counts[way] and ends[way, counts[2 + way]] <= cycle:
                counts[2 + way] += 1
        if counts[2] >= wanted[0] and counts[3] >= wanted[1]:
            return cycle
        issued = hardware.reader[ISSUED] + hardware.writer[ISSUED]
        busy = fill(cycle, begun, tables, hardware, pace)
        busy = drain(cycle, begun, computed, tables, hardware, pace, last) or busy
        serve(cycle, hardware, pace)
        while counts[0] < hardware.reader[DONE]:
            ends[0, counts[0]] = cycle + 1 + late[0]
            counts[0] += 1
        while counts[1] < hardware.writer[DONE_OUT]:
            ends[1, counts[1]] = hardware.writing[counts[1]] + 1 + late[1]
            counts[1] += 1
        cycle += 1
        if not busy and hardware.reader[ISSUED] + hardware.writer[ISSUED] == issued:
            # Nothing is under way any more: only counts may still change.
            target = until
            for way in range(2):
                if counts[2 + way] < counts[way]:
                    target = min(target, ends[way, counts[2 + way]])
            cycle = max(cycle, target)
            idle(cycle, hardware, pace)
    return cycle


class Transfers:
    """Both transfer engines of a launch.

    ``words``: words of the port in one of the scratchpad. ``refresh``: the channel's first refresh.
    """

    def __init__(
        self, program: NetworkProgram, pace: TimingModel, *, port_bytes: int, begin: int, refresh: float
    ) -> None:
        words = WORD_BYTES // port_bytes
        self._pace = pace
        self._tables = ProgramArrays(
            steps=_zeros(1, 3),
            cores=_zeros(1, 1, 6),
            operands=_zeros(1, 3),
            reads=_rows(program.reads, words, writes=False),
            writes=_rows(program.writes, words, writes=True),
        )
        most = max(len(program.reads), len(program.writes)) + 1
        self._totals = len(program.reads), len(program.writes)
        self._last, self._ends, self._counts = _zeros(most), _zeros(2, most), _zeros(4)
        self._hardware = HardwareState(
            cores=_zeros(1, 1),
            rings=_zeros(3, 1, 2),
            changes=_zeros(3, 1, 2),
            reader=_zeros(ENGINE_STATE),
            writer=_zeros(ENGINE_STATE),
            reading=_zeros(most),
            writing=_zeros(most),
            burst_words=_zeros(BURSTS),
            burst_cycle=_zeros(BURSTS),
            ready=np.zeros(WORDS),
            sent=_zeros(WORDS),
            released=_zeros(BURSTS, 2),
            dram=np.array([0.0, 0.0, 0.0, refresh]),
        )
        idle(begin, self._hardware, pace)
        self._cycle = begin

    def wait(self, cycle: int, *, begun: int, computed: int, reads: int = 0, writes: int = 0) -> int:
        """Return the first cycle from ``cycle`` on in which so many reads and writes are counted.

        Raises `LoomworkError` when that never happens.
        """
        self.run(cycle, begun=begun, computed=computed)
        found = self._advance(_NEVER, begun, computed, (reads, writes))
        if found >= _NEVER:
            raise LoomworkError("the program waits for itself: a transfer never ends")
        return found

    def drain(self, cycle: int, *, steps: int) -> int:
        """Return the first cycle from ``cycle`` on in which all transfers are counted."""
        reads, writes = self._totals
        return self.wait(cycle, begun=steps, computed=steps, reads=reads, writes=writes)

    def run(self, until: int, *, begun: int, computed: int) -> None:
        """Go on to a cycle."""
        self._advance(until, begun, computed, (_NEVER, 0))

    def _advance(self, until: int, begun: int, computed: int, wanted: tuple[int, int]) -> int:
        late = READ_COUNT_CYCLES, WRITE_CYCLES
        state = self._tables, self._hardware, self._pace, self._last, self._ends, self._counts
        self._cycle = int(_advance(self._cycle, until, begun, computed, wanted, late, *state))
        return self._cycle


def _zeros(*shape: int) -> Integers:
    return np.zeros(shape, np.int64)


def _rows(transfers: Sequence[Transfer], words: int, *, writes: bool) -> Integers:
    """Return the rows of `ProgramArrays.reads` in words of the port."""
    rows = [
        (words * each.moved_words, _step(each, writes), 0, 0, words * each.dram_address) for each in transfers
    ]
    return np.array(rows, np.int64).reshape(-1, 5)


def _step(transfer: Transfer, writes: bool) -> int:
    """Return the first step in which it may run: a read from the step's beginning, a write from its end."""
    return sum(transfer.starts) - writes
