"""The reads and writes of one table of the position map, in a memory model without the RTL."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from hw.board import load_board
from sim.memory.config import MemoryConfig
from tests.support.memory.native import NativeMemory

BYTES, BEATS = 128, 4
#: Pairs of banks: bits of a bucket's offset from its port's base (`hw.oram.sizing.queues`).
PAIR_SHIFT, PAIRS = 11, 8
#: Bursts under way at a port, as in `hw.oram.engine.OramEngine`.
_BURSTS = 256


def bin_of(bucket: int, ports: int) -> tuple[int, int]:
    """Return the port and the pair of banks of a bucket."""
    return bucket % ports, (bucket // ports * BYTES >> PAIR_SHIFT) % PAIRS


def same_bin(buckets: int, ports: int, count: int) -> list[int]:
    """Return different buckets of one bin, in different rows as long as there are some."""
    found = [bucket for bucket in range(buckets) if bin_of(bucket, ports) == (0, 0)]
    rows = sorted(found, key=lambda bucket: (bucket // ports * BYTES % (1 << PAIR_SHIFT), bucket))
    return rows[:count]


def hbm(ports: int) -> MemoryConfig:
    """Return the HBM of a U55C at 300 MHz, a channel a port."""
    timing = replace(load_board("u55c").memory.timing, port_read_bursts=_BURSTS, port_write_bursts=_BURSTS)
    return MemoryConfig(
        name="memory",
        timing=timing,
        channels=32,
        channel_bytes=2**24,
        kernel_clock_mhz=300.0,
        port_channels=tuple(range(ports)),
    )


class _Port:
    """Bursts of a port in their order: reads of buckets, writes of beats."""

    def __init__(self, memory: NativeMemory, number: int) -> None:
        self.drive, self._memory, self._number = memory.drive[number], memory, number
        self._base = number * 2**24
        self.reads: deque[int] = deque()
        self.writes: deque[int] = deque()
        self._asked: deque[int] = deque()  # operations of reads under way, and of writes
        self._written: deque[int] = deque()
        self.beats = self._words = 0  # beats read; beats written whose address was taken

    def request(self, address: int, operation: int) -> None:
        self.reads.append(address)
        self._asked.append(operation)

    def write(self, address: int, operation: int) -> None:
        self.writes += [address + 32 * beat for beat in range(BEATS)]
        self._written += [operation] * BEATS

    def offer(self) -> None:
        """Drive the next edge."""
        drive = self.drive
        drive.arvalid, drive.awvalid = bool(self.reads), bool(self.writes)
        drive.wvalid = drive.wlast = self._words > 0
        if self.reads:
            drive.araddr, drive.arlen = self._base + self.reads[0], BEATS - 1
        if self.writes:
            drive.awaddr, drive.awlen = self._base + self.writes[0], 0

    def taken(self, seen) -> tuple[int | None, int | None]:
        """Return the operations whose last data and whose last answer came at the edge."""
        read = answered = None
        if self.drive.arvalid and seen.arready:
            self.reads.popleft()
        if self.drive.awvalid and seen.awready:
            self.writes.popleft()
            self._words += 1
        if self.drive.wvalid and seen.wready:
            self._words -= 1
        if seen.rvalid:
            self.beats += 1
            if self.beats % BEATS == 0:
                read = self._asked.popleft()
        if seen.bvalid:
            answered = self._written.popleft()
        return read, answered


def longest_waits(config, buckets: list[int], starts: list[int]) -> tuple[int, int]:
    """Return the longest read and the longest write of operations that change all beats.

    ``buckets``: of each operation. ``starts``: cycles of the operations, an interval apart at least.
    """
    ports, sizes, interval = config.position_ports // 2, config.position, config.interval
    with NativeMemory(config=hbm(ports)) as memory:
        sides = [_Port(memory, number) for number in range(ports)]
        last_use: dict[int, int] = {}
        arrived = [False] * len(buckets)
        asked_at: dict[int, int] = {}
        left_at: dict[int, int] = {}
        began = turned = 0
        next_turn = 0
        longest = [0, 0]
        while turned < len(buckets) or asked_at or left_at:
            now = memory.edge
            if began < len(buckets) and now >= starts[began]:
                bucket = buckets[began]
                if began - last_use.get(bucket, -(10**9)) < sizes.log:
                    arrived[began] = True
                else:
                    sides[bucket % ports].request(bucket // ports * BYTES, began)
                    asked_at[began] = now
                last_use[bucket] = began
                began += 1
            if turned < began and arrived[turned] and now >= next_turn:
                leaving = turned - sizes.write_back
                # The place leaves, unless a later operation took its marks over before this turn.
                if leaving >= 0 and buckets[leaving] not in buckets[leaving + 1 : turned + 1]:
                    bucket = buckets[leaving]
                    sides[bucket % ports].write(bucket // ports * BYTES, leaving)
                    left_at[leaving] = now
                turned, next_turn = turned + 1, now + interval
            for side in sides:
                side.offer()
            seen = list(memory.answer)
            memory.cycle()
            for side, answer in zip(sides, seen, strict=True):
                read, answered = side.taken(answer)
                if read is not None:
                    arrived[read] = True
                    longest[0] = max(longest[0], memory.edge - asked_at.pop(read))
                if answered is not None and not any(left == answered for left in side._written):
                    longest[1] = max(longest[1], memory.edge - left_at.pop(answered))
    return longest[0], longest[1]
