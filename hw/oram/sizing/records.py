"""Deadlines of the records in HBM: a bound on their queues for every sequence of keys and every pace.

A label is a uniform draw that nobody knows before its touch. So each draw puts a record into a bank,
whatever the keys and the pace. A draw is used at most four times. Its header is read when it is drawn.
After the operation's admission the item is appended. The record is read when the key is used again; after
that admission its header is written. An adversary decides when, but not where.

Uses of one draw weigh more than the same uses of different draws: their moments multiply. So let all keys
be hot. In a window of n operations, n draws have both reads, and n others both writes. A draw has all
four only in a window longer than the reads' deadline. A LOAD touches the next page in order instead of a
label; an adversary may mix both kinds. Chernoff's bound limits the work of a bank beyond the time in
which it came, in all windows in which it may be busy: that is the longest wait at the bank. The wait for
the port's data bus is work of other banks, and its moments multiply.

Records of odd lines have the halves of each 64 bytes swapped in HBM (`hw.oram.movers.hbm.lines`). So
headers alternate between the two banks of a pair. A touch writes into the other bank only if an item
leaves the overflow for it.

A controller keeps every bank busy while requests for it wait. Cycles are those of 300 MHz; slower kernels
wait for fewer.
"""

import bisect
import functools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.oram.sizing.lists import LIFE_FAILURE, LIFE_OPERATIONS
from hw.oram.sizing.queues import (
    PAIRS,
    READ_CYCLES,
    REFRESH_CYCLES,
    ROW_BYTES,
    SERVED,
    UNLOADED,
    WRITING_CYCLES,
)

Float = NDArray[np.float64]

#: Bytes of a beat of a port to HBM, which is a granule of HBM; the header has as many.
_GRANULE_BYTES = 32
#: HBM's cycles of 900 MHz in one of 300 MHz; those of a granule in a bank; those of a row with a
#: granule, if not the row cycle: for a read 14 + 5 + 14, for a write 12 + 4 + 2 + 15 + 14
#: (``boards/u55c.yaml``).
_RATIO, _BANK, _READ_ROW, _WRITE_ROW = 3, 4, 33, 47
#: Cycles of a beat that is read at the kernel's port, and of one that is written on HBM's data bus.
_READ_BEAT, _WRITE_BEAT = 1.0, 2 / _RATIO
#: Rates of the exponential moments, multiplied by the work of a draw.
_RATES = np.geomspace(0.3, 40.0, 96)
#: Operations of the shortest windows, which are considered first, and of the longest.
_FIRST_OPERATIONS, _MOST_OPERATIONS = 1 << 7, 1 << 12
#: Cycles between deadlines, and maximum of a deadline.
_STEP, _MOST_CYCLES = 8, 1 << 14
#: Cycles of a touch and of its writes outside of HBM, with a margin; and most operations that are issued.
_TOUCH_EXTRA, _MOST_ISSUED = 64, 256


@dataclass(frozen=True, kw_only=True)
class RecordTraffic:
    """Numbers on which the queues of records depend; `hw.oram.config.OramConfig.record_sizes` is made of
    them.
    """

    record_ports: int
    record_bytes: int
    value_bytes: int  #: V.
    labels: int  #: M.
    host_pages: int  #: H.
    records: int  #: Pages, and S HBM bins for each label in HBM.
    bin_split: int  #: S.
    label_count: int  #: Labels drawn by an operation.
    items: int  #: Touches of an operation: of its labels, and of pages drawn for padding.
    interval: int  #: Cycles of an operation.
    overflow_entries: int  #: Items on chip whose list is full.


@dataclass(frozen=True, kw_only=True)
class _Work:
    """Cycles of a draw's uses at a bank or bus, and the probability that a draw is there."""

    share: float
    header: float  #: ``header``, ``record``: of the reads.
    record: float
    append: float  #: ``append``, ``touch``: of the writes.
    touch: float


def _value_granules(traffic: RecordTraffic) -> int:
    return max(1, traffic.value_bytes // _GRANULE_BYTES)


def _shares(traffic: RecordTraffic) -> tuple[float, float]:
    """Return the probabilities that a label's record lies in a pair of banks, and its header in a bank."""
    size, ports = traffic.record_bytes, traffic.record_ports
    whole = ROW_BYTES % size == 0
    per_row = ROW_BYTES // size if whole else -(-ROW_BYTES // size) + 1
    heads_per_row = -(-ROW_BYTES // size) + 1 >> 1
    pair = head = 0.0
    pages = traffic.host_pages
    for records, labels in ((pages, pages), (traffic.records - pages, traffic.labels - pages)):
        if records:
            lines = -(-records // ports)
            rows = -(-lines * size // ROW_BYTES) + (records != pages)  # bins may begin within a row
            rows_of_pair = -(-rows // PAIRS)
            each = labels / records / traffic.labels
            pair += min(lines, rows_of_pair * per_row) * each
            head += min(lines, rows_of_pair * heads_per_row) * each
    return min(1.0, pair), min(1.0, pair, head)


def _bank(traffic: RecordTraffic) -> list[_Work]:
    """Return the work of the fullest bank: of draws with the header there, and of those without.

    A bank with a single row keeps it open. Else each use is a row cycle.
    """
    pair, head = _shares(traffic)
    values = -(-_value_granules(traffic) // 2)  # in one bank
    whole = min(ROW_BYTES, traffic.record_bytes) // (2 * _GRANULE_BYTES)
    moved = _moved(traffic)
    single = -(-traffic.records // traffic.record_ports) * traffic.record_bytes <= PAIRS * ROW_BYTES

    def cycles(row: float, granules: int) -> float:
        return _BANK * granules / _RATIO if single else (row + _BANK * (granules - 1)) / _RATIO

    def read(granules: int) -> float:
        return cycles(_READ_ROW, granules) if single else max(READ_CYCLES, cycles(_READ_ROW, granules))

    def write(granules: int) -> float:
        return cycles(_WRITE_ROW, granules)

    return [
        _Work(
            share=(head if has_header else pair - head) * (moved if moves else 1 - moved),
            header=read(1) * has_header,
            record=read(whole),
            append=write(has_header + 1 + values),
            touch=write(has_header + (1 + values) * moves) if has_header or moves else 0.0,
        )
        for has_header in (True, False)
        for moves in (True, False)
    ]


def _moved(traffic: RecordTraffic) -> float:
    """Return a bound on the probability that an item leaves the overflow for a touched record."""
    return min(1.0, traffic.overflow_entries / traffic.host_pages)


def _port(traffic: RecordTraffic, *, read: float, written: float) -> list[_Work]:
    """Return the work of a port: cycles for each beat that is ``read`` or ``written``."""
    moved, item = _moved(traffic), 1 + _value_granules(traffic)
    return [
        _Work(
            share=(moved if moves else 1 - moved) / traffic.record_ports,
            header=read,
            record=read * (traffic.record_bytes // _GRANULE_BYTES),
            append=written * (1 + item),
            touch=written * (1 + item * moves),
        )
        for moves in (True, False)
    ]


class _Moments:
    """Logarithms of the moments of an operation's work at ``places``, for each of ``rates``."""

    def __init__(self, traffic: RecordTraffic, places: list[_Work], rates: Float, served: float) -> None:
        def of(*uses: str) -> Float:
            """Return those of a draw with these uses."""
            total = np.zeros_like(rates)
            for work in places:
                cycles = sum(getattr(work, use) for use in uses) / served
                total += work.share * np.expm1(rates * cycles)
            return np.asarray(np.log1p(total))

        labels = traffic.label_count
        padding = (traffic.items - labels) * (of("record") + of("touch"))
        #: Of hot keys: both reads of its draws and both writes of others; or all uses of its draws.
        self.apart = labels * (of("header", "record") + of("append", "touch")) + padding
        self.together = labels * of("header", "record", "append", "touch") + padding
        self.load = labels * (of("header") + of("append")) + padding  #: Of a LOAD, without its page.
        #: Work of the page of a LOAD at the place.
        self.page = rates * max(work.record + work.touch for work in places) / served


class _Queue:
    """Work that arrives at a bank, a data bus or a port.

    ``scanned``: lines there of successive pages, at most. ``served``: share of the time in which it serves.
    """

    def __init__(
        self, traffic: RecordTraffic, places: list[_Work], *, scanned: int, served: float = SERVED
    ) -> None:
        self._traffic, self._scanned, self._served = traffic, scanned, served
        whole = max(work.header + work.record + work.append + work.touch for work in places) / served
        self._rates = _RATES / whole
        self._own = _Moments(traffic, places, self._rates, served)
        self._beside = np.zeros_like(self._rates)
        self.hot_cycles = whole / 2  #: Cycles of a draw with both reads or both writes, on average.
        self._most = 2 * traffic.items * whole

    def add_bus(self, bus: list[_Work]) -> None:
        """Count the wait for a bus too: others' work beyond the time in which it came, in any window.

        A draw is in the bank or adds to ``bus``, so the moments of both multiply at most. Those of all
        windows of the bus are added up: a geometric series.
        """
        others = _Moments(self._traffic, bus, self._rates, self._served)
        load = others.load + others.page / self._traffic.record_ports
        most = np.max([others.apart, others.together, load], axis=0)
        left = np.minimum(most - self._rates * self._traffic.interval, 0.0)
        with np.errstate(divide="ignore"):
            self._beside = most - np.log(-np.expm1(left)) + others.page

    def _moments(self, operations: Float, apart: int) -> Float:
        """Return bounds on the logarithms of the moments of the work of each number of ``operations``.

        They are convex in the number of LOADs up to the last line of a row, and from there on.
        """
        kinds = np.stack([self._own.apart, self._own.together, self._own.load, self._own.page])
        bounds, ports = [], self._traffic.record_ports
        for most in (0, 1, ports * (self._scanned - 1), math.inf):
            loads = np.minimum(operations, most)
            hot = operations - loads
            together = np.minimum(hot, 1 + np.maximum(0, hot - apart))
            lines = np.minimum(loads / ports + 1, self._scanned) * (loads > 0)
            bounds.append(np.stack([hot - together, together, loads, lines], axis=1) @ kinds)
        return np.asarray(np.max(bounds, axis=0))

    def _exceeds(self, moments: Float, work: Float) -> Float:
        """Return bounds on the probabilities of more work than this."""
        exponents = moments - np.multiply.outer(work, self._rates)
        return np.asarray(np.exp(np.minimum(0.0, np.min(exponents, axis=1))))

    def exceeds(self, operations: Float, work: Float, apart: int) -> Float:
        """Return bounds on the probabilities that so many operations bring more work than this.

        ``apart``: operations between the reads of an operation and its writes.
        """
        return self._exceeds(self._moments(operations, apart), work)

    def late(self, wait: float, apart: int, rare: float) -> float:
        """Return a bound on the probability that work, and the wait for the bus, take ``wait`` cycles longer
        than it took to arrive, in any window from a certain operation on.

        Windows end where one that lasts longer is ``rare``; 1 if that is not within `_MOST_OPERATIONS`.
        """
        total, most = 0.0, _FIRST_OPERATIONS
        operations = np.arange(1.0, most)
        while most <= _MOST_OPERATIONS:
            came = (operations - 1) * self._traffic.interval
            moments = self._moments(operations, apart)
            ends = self._exceeds(moments, came)
            chances = self._exceeds(moments + self._beside, came + wait)
            if np.any(ended := ends < rare):
                last = int(np.argmax(ended))
                return total + float(chances[: last + 1].sum() + ends[last])
            total += float(chances.sum())
            operations = np.arange(float(most), 2.0 * most)
            most *= 2
        return 1.0

    def held(self, operations: int, apart: int) -> int:
        """Return the least work that is exceeded with an accepted probability."""
        accepted = 2.0**LIFE_FAILURE / LIFE_OPERATIONS / self._traffic.record_ports / 16
        count = np.array([float(operations)])
        return bisect.bisect_left(
            range(math.ceil(operations * self._most)),
            -accepted,
            key=lambda work: -self.exceeds(count, np.array([float(work)]), apart)[0],
        )


class RecordQueues:
    """The queues of the records."""

    def __init__(self, traffic: RecordTraffic) -> None:
        self._ports, self._interval = traffic.record_ports, traffic.interval
        #: Probabilities that a label's record lies in the fullest pair of banks, and its header in a bank.
        self.shares = _shares(traffic)
        size = traffic.record_bytes
        lines = -(-ROW_BYTES // size) + (ROW_BYTES % size != 0) + 1
        self._bank = _Queue(traffic, _bank(traffic), scanned=lines)
        self._bank.add_bus(_port(traffic, read=_READ_BEAT, written=_WRITE_BEAT))
        read = _port(traffic, read=_GRANULE_BYTES / size, written=0)
        self._read = _Queue(traffic, read, scanned=_MOST_OPERATIONS, served=1)
        written = _port(traffic, read=0, written=1)
        self._written = _Queue(traffic, written, scanned=_MOST_OPERATIONS, served=1)

    def failure(self, deadline: int, *, apart_cycles: int = 0) -> float:
        """Return log2 of a bound on the probability that a use in a map's life misses its deadline.

        ``apart_cycles``: between the reads of an operation and its writes; by default the deadline.
        """
        wait = deadline - WRITING_CYCLES - REFRESH_CYCLES - UNLOADED
        if wait <= 0:
            return 0.0
        uses = LIFE_OPERATIONS * 2 * PAIRS * self._ports
        apart = (apart_cycles or deadline) // self._interval
        late = uses * self._bank.late(wait, apart, 2.0**LIFE_FAILURE / uses / 16)
        return min(0.0, math.log2(max(late, 2.0**-1000)))

    @functools.cached_property
    def deadline(self) -> int:
        """The least deadline whose failure in a map's life is accepted, a multiple of 8; 0 if there is none
        up to 16,384 cycles.
        """
        deadlines = range(_STEP, _MOST_CYCLES + 1, _STEP)
        found = bisect.bisect_left(deadlines, -LIFE_FAILURE, key=lambda cycles: -self.failure(cycles))
        return deadlines[found] if found < len(deadlines) else 0

    def hot_draws(self, operations: int, apart: int) -> int:
        """Return the most draws, each with both reads or both writes, that a bank gets in a window."""
        return int(self._bank.held(operations, apart) / self._bank.hot_cycles)

    def lines(self, operations: int) -> int:
        """Return the most records that so many operations read at a port, their headers counted as beats."""
        return self._read.held(operations, operations)

    def beats(self, operations: int) -> int:
        """Return the most beats that so many operations write at a port."""
        return self._written.held(operations, operations)


@functools.cache
def record_queues(traffic: RecordTraffic) -> RecordQueues:
    """Return the queues of a kind of traffic."""
    return RecordQueues(traffic)


class RecordSizes:
    """Deadlines of the records in HBM, and the sizes of their queues.

    ``touch_cycles``, ``settle_cycles``, ``inflight``: 0 is replaced by a number that suffices.
    """

    def __init__(
        self, traffic: RecordTraffic, *, touch_cycles: int, settle_cycles: int, inflight: int
    ) -> None:
        self.traffic, self._queues = traffic, record_queues(traffic)
        #: ``touch_cycles``, ``settle_cycles``: for an operation's reads, from its issue, and for its writes;
        #: 0 if no deadline suffices.
        self.touch_cycles = touch_cycles or self._queues.deadline
        self.settle_cycles = settle_cycles or self._queues.deadline
        needed = self._operations(self.touch_cycles)
        #: Operations between issue and admission, at most: a power of two.
        self.issued = inflight or min(_MOST_ISSUED, 1 << (needed - 1).bit_length())

    def _operations(self, cycles: int) -> int:
        return -(-(cycles + _TOUCH_EXTRA) // self.traffic.interval)

    @functools.cached_property
    def failure(self) -> float:
        """log2 of a bound on the probability that a use in a map's life misses a deadline."""
        least = min(self.touch_cycles, self.settle_cycles)
        return self._queues.failure(least, apart_cycles=self.touch_cycles)

    @functools.cached_property
    def read_lines(self) -> int:
        """Lines of a kind at a port from their request to the stage, at most."""
        return self._queues.lines(self.issued)

    @functools.cached_property
    def write_beats(self) -> int:
        """Beats at a port from their queue to their answer, at most."""
        return self._queues.beats(self._operations(self.settle_cycles))
