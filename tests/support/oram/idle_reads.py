"""Reads of an HBM that does nothing else, at any time of its refresh, in a memory model without the RTL."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tests.support.memory.native import NativeMemory

#: Cycles of 300 MHz from refresh to refresh.
REFRESH = 1170


@dataclass(frozen=True)
class Line:
    """A read through the one port: cycles after the first, address, beats, kind."""

    later: int
    address: int
    beats: int
    kind: int


def read(memory: NativeMemory, lines: list[Line], phase: int) -> tuple[int, int]:
    """Read after all is idle, in a cycle of the refresh interval; return the cycles to the last beat, and to
    the first of kind 0.
    """
    for _ in range(REFRESH + (phase - memory.edge) % REFRESH):
        memory.cycle()
    drive, begin, first = memory.drive[0], memory.edge, 0
    left, missing = list(lines), Counter()
    for line in lines:
        missing[line.kind] += line.beats
    while missing.total():
        drive.arvalid = int(bool(left) and memory.edge - begin >= left[0].later)
        if drive.arvalid:
            drive.araddr, drive.arlen, drive.arid = left[0].address, left[0].beats - 1, left[0].kind
        seen = memory.answer[0]
        memory.cycle()
        if drive.arvalid and seen.arready:
            left.pop(0)
        if seen.rvalid:
            missing[seen.rid] -= 1
            if not seen.rid and not first:
                first = memory.edge - 1 - begin
    drive.arvalid = 0
    return memory.edge - 1 - begin, first
