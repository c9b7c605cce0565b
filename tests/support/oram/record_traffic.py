"""The reads and writes of records in a memory model without the RTL."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from tests.support.memory.native import NativeMemory
from tests.support.oram.bucket_traffic import PAIR_SHIFT, PAIRS, hbm

BEAT = 32
#: Cycles from the arrival of a touch's record to its writes.
_STAGE = 60


@dataclass(frozen=True, kw_only=True)
class Operation:
    """The records of an operation: the one that it touches, and the fresh one."""

    touched: int
    fresh: int


def bank_of(record: int, *, ports: int, record_bytes: int) -> tuple[int, int]:
    """Return the port of a record and the bank of its header: odd lines have swapped halves."""
    line = record // ports
    return record % ports, 2 * ((line * record_bytes >> PAIR_SHIFT) % PAIRS) + line % 2


def same_bank(config, count: int) -> list[int]:
    """Return different records with their headers in one bank, of different rows first."""
    shape = {"ports": config.record_ports, "record_bytes": config.record_bytes}
    found = [record for record in range(config.records) if bank_of(record, **shape) == (0, 0)]
    step = PAIRS << PAIR_SHIFT
    rows: dict[int, list[int]] = {}
    for record in found:
        rows.setdefault(record // config.record_ports * config.record_bytes // step, []).append(record)
    depth = max(len(row) for row in rows.values())
    return [row[n] for n in range(depth) for row in rows.values() if n < len(row)][:count]


@dataclass
class _Port:
    """Reads of a port by kind, which take turns, and its writes; each with its operation."""

    base: int
    reads: tuple[deque, deque] = field(default_factory=lambda: (deque(), deque()))
    asked: tuple[deque, deque] = field(default_factory=lambda: (deque(), deque()))
    writes: deque = field(default_factory=deque)
    written: deque = field(default_factory=deque)
    words: int = 0
    kind: int = 0

    def offer(self, drive) -> None:
        """Drive the next edge: an address stays until it is taken."""
        if not drive.arvalid and any(self.reads):
            self.kind = (self.kind + 1) % 2 if self.reads[(self.kind + 1) % 2] else self.kind
            drive.arvalid, drive.arid = 1, self.kind
            drive.araddr, drive.arlen = self.reads[self.kind][0]
        drive.awvalid = bool(self.writes)
        drive.wvalid = drive.wlast = self.words > 0
        if self.writes:
            drive.awaddr, drive.awlen = self.writes[0], 0

    def take(self, drive, seen) -> tuple[int | None, int | None]:
        """Return the operations whose last data and whose answer came at the edge."""
        read = answered = None
        if drive.arvalid and seen.arready:
            self.reads[self.kind].popleft()
            drive.arvalid = 0
        if drive.awvalid and seen.awready:
            self.writes.popleft()
            self.words += 1
        if drive.wvalid and seen.wready:
            self.words -= 1
        if seen.rvalid and seen.rlast:
            read = self.asked[seen.rid].popleft()
        if seen.bvalid:
            answered = self.written.popleft()
        return read, answered


def longest_waits(config, operations: list[Operation], starts: list[int]) -> tuple[int, int]:
    """Return the longest read and the longest write of operations that all keep their items.

    ``starts``: cycles of their issue, an interval apart at least.
    """
    ports, size = config.record_ports, config.record_bytes
    keys, values = BEAT, config.record_values_offset
    delay = config.record_sizes.touch_cycles + _STAGE
    longest = [0, 0]
    with NativeMemory(config=hbm(ports)) as memory:
        sides = [_Port(number * 2**24) for number in range(ports)]

        def address(record: int, byte: int) -> int:
            line = record // ports
            return sides[record % ports].base + line * size + (byte ^ BEAT * (line % 2))

        def read(record: int, kind: int, operation: int) -> None:
            side = sides[record % ports]
            start = side.base + record // ports * size
            side.reads[kind].append((address(record, 0), 0) if kind else (start, size // BEAT - 1))
            side.asked[kind].append(operation)

        def write(record: int, byte: int, operation: int) -> None:
            side = sides[record % ports]
            side.writes.append(address(record, byte))
            side.written.append(operation)

        issued = admitted = 0
        while admitted < len(operations) or any(side.written for side in sides):
            now = memory.edge
            if issued < len(operations) and now >= starts[issued]:
                read(operations[issued].touched, 0, issued)
                read(operations[issued].fresh, 1, issued)
                issued += 1
            if admitted < issued and now >= starts[admitted] + delay:
                operation = operations[admitted]
                write(operation.touched, 0, admitted)
                slot = admitted % config.record_slots
                for byte in (0, keys + 8 * slot, values + config.value_bytes * slot):
                    write(operation.fresh, byte // BEAT * BEAT, admitted)
                admitted += 1
            for side, drive in zip(sides, memory.drive, strict=True):
                side.offer(drive)
            seen = list(memory.answer)
            memory.cycle()
            for side, drive, answer in zip(sides, memory.drive, seen, strict=True):
                arrived, answered = side.take(drive, answer)
                if arrived is not None:
                    longest[0] = max(longest[0], memory.edge - starts[arrived])
                if answered is not None:
                    longest[1] = max(longest[1], memory.edge - starts[answered] - delay)
    return longest[0], longest[1]
