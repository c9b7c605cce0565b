"""Deadlines of the position map in HBM: a bound on its queues for every sequence of keys and every pace.

Keys are chosen without knowledge of the permutation, so distinct keys are balls in bins. A bin is a pair of
banks that holds whole buckets: HBM's addresses alternate between both, and a bucket opens a row of either.
Bins of keys drawn without replacement are negatively associated, so the binomial tail is a bound (Joag-Dev
and Proschan, 1983).

Operations begin at least an interval apart. Each reads at most one bucket of a table, and writes at most one,
that of the operation L before it. A bucket in the log is not read, so it is read at most once in D
operations. It is written at most once in L, and no sooner than L after its read. A read comes at least D - L
operations after the bucket's write, less those between request and lookup. Let none of these distances be
shorter than B operations. Then the requests of B operations are for different buckets, at most two an
operation.

Let B be the least number of operations whose requests to a bin take no longer than they last, whatever the
bin. A queue that was empty is then empty again within B operations, so a window of n < B operations decides
the longest wait. This holds for a controller that keeps every bank busy while requests for it wait.

Cycles are those of 300 MHz; slower kernels wait for fewer.
"""

import functools
import math
from dataclasses import dataclass

from hw.oram.sizing.lists import LIFE_FAILURE, LIFE_OPERATIONS

#: Tables of the position map.
_TABLES = 2
#: Bytes of a bucket, and its beats at a port.
_BUCKET_BYTES, _BEATS = 128, 4
#: Cycles of a row: for a read 45 of HBM's 900 MHz (``rc_ck`` of ``boards/u55c.yaml``); for a write with two
#: granules in a bank 12 + 4 + 4 + 2 + 15 + 14 (``rcd_write_ck`` to ``rp_ck``).
READ_CYCLES, WRITE_CYCLES = 15.0, 17.0
#: Cycles from refresh to refresh up to 85 degrees Celsius, and those of one behind a row just opened
#: (`hw.oram.sizing.idle`).
#: Above 85 degrees refreshes are twice as frequent, and the bound does not hold.
REFRESH_INTERVAL, REFRESH_CYCLES = 1170.0, 120.0
#: Share of the time in which a bank serves.
SERVED = 1 - REFRESH_CYCLES / REFRESH_INTERVAL
#: Pairs of banks of a channel, and bytes of the rows of a pair.
PAIRS, ROW_BYTES = 8, 2048
#: Cycles of a bucket at the kernel's port: four beats. HBM's data bus is faster.
_DATA_CYCLES = 4.0
#: Cycles for which a channel's reads wait while it writes: a full buffer of 128 granules, with their rows.
WRITING_CYCLES = 128
#: Cycles of a request that nothing delays, from the address to the last beat or the answer: 54, and a margin.
UNLOADED = 80
#: Cycles of a bucket's read and of its write outside of HBM.
_READ_EXTRA, _WRITE_EXTRA = 40, 24
#: Places of the log are a multiple of this.
_LOG_PLACES = 16
#: Maximum operations of a window.
_MOST_OPERATIONS = 1 << 11
#: log2 of more windows than decide.
_MOST_WINDOW_BITS = 14


def _tail(balls: int, bins: int, count: int) -> float:
    """Return log2 of a bound on P(Bin(balls, 1 / bins) >= count)."""
    if count > balls:
        return -math.inf
    if bins == 1:
        return 0.0
    share = 1 / bins
    ratio = (balls - count) / (count + 1) * share / (1 - share)
    if ratio >= 1:
        return 0.0
    log = math.lgamma(balls + 1) - math.lgamma(count + 1) - math.lgamma(balls - count + 1)
    log += count * math.log(share) + (balls - count) * math.log1p(-share) - math.log1p(-ratio)
    return min(0.0, log / math.log(2))


class _Bins:
    """Balls in equal bins: the most in one."""

    def __init__(self, *, bins: int, room: int, windows: int) -> None:
        self.bins, self._room = bins, room
        self._rare = LIFE_FAILURE - math.log2(LIFE_OPERATIONS * _TABLES * bins * windows)
        self._most = [0]

    def most(self, balls: int) -> int:
        """Return the least count that no bin exceeds in ``windows`` windows of each operation of a map's
        life: at most all balls, and the bin's room.
        """
        while len(self._most) <= balls:
            count = self._most[-1]  # it never falls
            while _tail(len(self._most), self.bins, count + 1) >= self._rare:
                count += 1
            self._most.append(count)
        return min(self._most[balls], self._room)

    def exceeds(self, balls: int, count: int) -> float:
        """Return log2 of the probability that a bin has at least ``count`` balls."""
        return -math.inf if count > self._room else _tail(balls, self.bins, count)


class PositionQueues:
    """The queues of a table of the position map.

    ``ports``: of the table. ``buckets``: of the table, a power of two. ``interval``: cycles of an operation.
    ``windows``: of one operation that count for the failure.
    """

    def __init__(self, *, ports: int, buckets: int, interval: int, windows: int = 1) -> None:
        self._interval = interval
        share = max(1, buckets // ports)
        pairs = min(PAIRS, max(1, share * _BUCKET_BYTES // ROW_BYTES))
        self._banks = _Bins(bins=ports * pairs, room=max(1, share // pairs), windows=windows)
        self._channels = _Bins(bins=ports, room=share, windows=windows)

    def _bank_cycles(self, count: int, operations: int) -> float:
        """Return the cycles of ``count`` row cycles: as many are writes as there are operations."""
        writes = min(count, operations)
        return (writes * WRITE_CYCLES + (count - writes) * READ_CYCLES) / SERVED

    def _backlog(self, operations: int) -> float:
        """Return the cycles of a bin's requests beyond the time in which they came."""
        count = self._banks.most(2 * operations)
        return self._bank_cycles(count, operations) - (operations - 1) * self._interval

    @functools.cached_property
    def apart(self) -> int:
        """B, the least number of operations whose requests to a bin take no longer than they last, or 0 if
        there is none up to 2,048.
        """
        return next((n for n in range(1, _MOST_OPERATIONS) if self._backlog(n) <= 0), 0)

    @property
    def _windows(self) -> range:
        return range(1, self.apart + 1)

    @functools.cached_property
    def _beside(self) -> float:
        """Longest wait beside the bank's: for its channel's data bus, its writes, and a refresh."""
        data = max(
            self._channels.most(2 * n) * _DATA_CYCLES / SERVED - (n - 1) * self._interval
            for n in self._windows
        )
        return max(0.0, data) + WRITING_CYCLES + REFRESH_CYCLES

    @functools.cached_property
    def wait_cycles(self) -> float:
        """Longest wait of a request at its bank, at its channel's data bus and for a refresh."""
        return max(self._backlog(n) for n in self._windows) + self._beside

    @functools.cached_property
    def deadline(self) -> int:
        """Cycles for a read or a write, from the port's address to its end; a multiple of 8."""
        return 8 * math.ceil((self.wait_cycles + UNLOADED) / 8)

    def beats(self, operations: int) -> int:
        """Return the most beats of so many operations' buckets at one port."""
        return _BEATS * self._channels.most(operations)

    def failure(self, deadline: int) -> float:
        """Return log2 of a bound on the probability that a request in a map's life misses its deadline."""
        bank = deadline - UNLOADED - self._beside
        total = self._exceeds(self.apart, 0.0) + sum(self._exceeds(n, bank) for n in self._windows)
        events = LIFE_OPERATIONS * _TABLES * self._banks.bins
        return min(0.0, math.log2(max(total * events, 2.0**-1000)))

    def _exceeds(self, operations: int, backlog: float) -> float:
        """Return the probability that a bin's requests take ``backlog`` cycles longer than they last."""
        rest = backlog + (operations - 1) * self._interval
        most = 2 * operations
        count = next((n for n in range(1, most + 1) if self._bank_cycles(n, operations) > rest), most + 1)
        return 2.0 ** self._banks.exceeds(most, count)


@functools.cache
def position_queues(*, ports: int, buckets: int, interval: int) -> PositionQueues:
    """Return the queues with the least deadline whose failure in a map's life is accepted."""
    for bits in range(_MOST_WINDOW_BITS):
        found = PositionQueues(ports=ports, buckets=buckets, interval=interval, windows=1 << bits)
        if not found.apart or found.failure(found.deadline) < LIFE_FAILURE:
            break
    return found


@dataclass(frozen=True, kw_only=True)
class PositionSizes:
    """Deadlines of the position map in HBM, and the sizes of its log and queues."""

    #: ``read_cycles``, ``write_cycles``: for a read, and for the write of a changed bucket.
    read_cycles: int
    write_cycles: int
    failure: float  #: log2 of the probability that a request in a map's life misses a deadline: a bound.
    inflight: int  #: Operations between the request of their buckets and their lookup, at most.
    #: Operations after which the changes of a bucket leave the log for HBM; 0 if the ports do not suffice.
    write_back: int
    #: Operations whose buckets are in the log. A later one reads HBM, which then has all changes. The log has
    #: the buckets of more operations than the stage's window.
    log: int
    write_beats: int  #: Beats at a port from their queue to their answer, at most.


@functools.cache
def position_sizes(
    *, ports: int, buckets: int, interval: int, read_cycles: int, write_cycles: int, window: int
) -> PositionSizes:
    """Return the sizes; ``read_cycles`` and ``write_cycles`` of 0 are chosen.

    ``ports``, ``buckets``: of a table. ``interval``: cycles of an operation. ``window``: of the stage.
    """
    queues = position_queues(ports=ports, buckets=buckets, interval=interval)
    apart = queues.apart
    chosen = queues.deadline if apart else _MOST_OPERATIONS
    read_cycles, write_cycles = read_cycles or chosen, write_cycles or chosen
    inflight = -(-(read_cycles + _READ_EXTRA) // interval) + 1
    leaving = -(-(write_cycles + _WRITE_EXTRA) // interval)
    log = max(apart + inflight + max(apart, leaving), window + 1)
    return PositionSizes(
        read_cycles=read_cycles,
        write_cycles=write_cycles,
        failure=queues.failure(min(read_cycles, write_cycles)) if apart else 0.0,
        inflight=inflight,
        write_back=apart,
        log=-(-log // _LOG_PLACES) * _LOG_PLACES,
        write_beats=queues.beats(leaving),
    )
