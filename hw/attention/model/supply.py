"""The earliest cycle in which each part of queries, keys and values can come from memory."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

from hw.attention.model.refresh import Refreshes
from hw.lib.dma.write import WriteDMA
from hw.lib.skid import Skid

#: Items that wait behind a width converter: its own, and those in the skid buffer.
_ITEMS_READY = 1 + Skid.CAPACITY


@dataclass(frozen=True, kw_only=True)
class Supply:
    """A stream from memory: an item in ``interval`` cycles, the first one ``latency`` after its request."""

    latency: float = 0.0
    interval: float = 1.0
    #: Cycles between items even when memory is ahead: the converter behind the DMA's buffer takes a beat a
    #: cycle.
    gap: float = 1.0
    depth: float = math.inf  #: Items that are prefetched at most.
    #: ``turn``, ``beats``: items of a round over all ports, and beats of an item.  Requests are whole rounds.
    turn: int = 1
    beats: float = 0.0
    #: Where each port holds a part of every item: the ports.  ``interval`` then excludes refreshes.
    lockstep: LockstepPorts | None = None

    @property
    def ahead(self) -> bool:
        """Whether channels in lockstep are faster than their buses, and so catch up after refreshes."""
        return self.lockstep is not None and self.lockstep.interval < self.gap


@dataclass(frozen=True, kw_only=True)
class LockstepPorts:
    """Ports that each hold a part of every item."""

    channels: Sequence[int]  #: Of each port.
    refreshes: Refreshes  #: Of these channels.
    behind: int  #: Cycles from a request to its part.
    interval: float = math.inf  #: Cycles of a channel for a part, without refreshes.
    ahead: float = 0.0  #: Parts that memory buffers for a port whose bus is slower than its channel.

    def transferred(self, channel: int, cycle: float, cycles: float) -> float:
        """Return when a port has the part that its channel transfers ``cycles`` after this cycle."""
        return self.refreshes.transferred(channel, cycle - self.behind, cycles) + self.behind

    def burst(
        self, channel: int, *, items: int, begins: float, free: float, gap: float
    ) -> tuple[float, float, float]:
        """Return when a port's bus transfers the first and the last of ``items``, and when its channel is
        done.

        The channel ``begins`` in this cycle or later; its bus was last busy in the cycle ``free``. The bus
        stalls for a refresh once the parts that memory buffers are gone.
        """
        moved, at = 1.0, self.transferred(channel, begins, 0)
        first = max(free + gap, at)
        before = first - gap  # part n, from 1 on, is on the bus n * gap later
        while True:
            begin, end = (
                cycle + self.behind for cycle in self.refreshes.following(channel, at - self.behind)
            )
            sent = (begin - before) / gap
            moved = max(moved, min(moved + (begin - at) / self.interval, sent + self.ahead))
            if moved >= items:
                break
            at = end
            before = max(before, at + self.interval - (moved + 1) * gap)
        done = at + max(0.0, items - moved) * self.interval
        last = before + items * gap
        return first, last, max(done, last - self.ahead * gap)


@dataclass(frozen=True, kw_only=True)
class IssueTimes:
    """When the reads of a pass can be issued, in cycles."""

    #: ``queries``, ``keys``: first cycle for requests of its queries, and of its keys and values.
    queries: int = 0
    keys: int = 0
    empty: int = 0  #: The core learns whether it is empty.
    cached: int = 0  #: First cycle for its keys from the caches.
    #: ``query_delay``, ``key_delay``, ``value_delay``: cycles beyond memory's latency of the first of its
    #: queries, keys and values.
    query_delay: int = 0
    key_delay: int = 0
    value_delay: int = 0
    #: ``query_cycles``, ``result_cycles``: fewest cycles of the channels for its queries, and its results.
    query_cycles: float = 0.0
    result_cycles: float = 0.0
    #: ``again``, ``keep``: see `hw.attention.driver.shapes.JobPass`.
    again: bool = False
    keep: bool = False


class ResultChannel:
    """The channel through which results are written, and queries read where they share it, beat by beat.

    Results stall only when the channel is slower than them; the `WriteDMA` then takes results until it is
    full.

    ``read_interval``, ``write_interval``: cycles of the channel for a beat of queries, and for a beat of
    results, of all their ports.
    """

    def __init__(self, *, read_interval: float = 0.0, write_interval: float = 0.0) -> None:
        self._read_interval, self._write_interval = read_interval, write_interval
        self.free = 0.0  #: When it has transferred all beats so far.

    def read(self, beats: float, *, first: int) -> None:
        """Read queries, requested in the cycle ``first``."""
        self.free = max(self.free, first) + beats * self._read_interval

    def write(self, beats: int, *, first: int, least: float = 0.0) -> tuple[int, int]:
        """Return when the last of ``beats`` leaves the core, and when it is sent.

        The first one leaves in the cycle ``first``, and the channel needs ``least`` cycles for all.
        """
        last = first + beats - 1
        interval = max(self._write_interval, least / beats)
        self.free = max(self.free, first) + beats * interval
        sent = max(last, math.ceil(self.free) - 1)
        return max(last, sent - math.floor(WriteDMA.FIFO_BEATS * interval)), sent


class SupplySchedule:
    """When the items of a `Supply` arrive, requested in runs."""

    def __init__(self, supply: Supply) -> None:
        self.supply = supply
        self.count = 0  #: Items requested so far.
        self._next = self._moved = 0.0
        ports = len(supply.lockstep.channels) if supply.lockstep else 0
        self._ports = [0.0] * ports  # as `_next`
        self._on_bus = [-math.inf] * ports  # when their buses transferred the last item
        self._last = -math.inf
        # Items so far, and when the last of them was taken; both relative to the sums of `skip`.
        self._taken: deque[tuple[int, int]] = deque()
        self._skipped_items = self._skipped_cycles = 0

    def copy(self) -> SupplySchedule:
        """Return a schedule in the same state."""
        other = copy(self)
        other._ports, other._on_bus = self._ports.copy(), self._on_bus.copy()
        other._taken = self._taken.copy()
        return other

    def ask(self, items: int, *, earliest: int = 0, least: float = 0.0) -> tuple[int, int] | None:
        """Return the earliest cycles of the first and the last of the next ``items``; None for none.

        The request can go out from the cycle ``earliest`` on; the channel needs ``least`` cycles for all.
        """
        if not items:
            return None
        # The last item needs the room that an item ``depth`` before it leaves when it is taken.
        place = self.count + items - self.supply.depth
        while self._taken and self._taken[0][0] + self._skipped_items < place:
            self._taken.popleft()
        room = self._taken[0][1] + self._skipped_cycles if self._taken and place > 0 else 0
        if self.supply.lockstep:
            return self._ask_ports(items, self.supply.lockstep, earliest=earliest, room=room)
        first = max(self._next, earliest + self.supply.latency, room - (items - 1) * self.supply.interval)
        last = first + (items - 1) * self.supply.interval
        # The channel may be ahead of its port.
        self._moved = max(self._moved, earliest + self.supply.latency, room) + least
        last = max(last, self._moved)
        turns = -(-items // self.supply.turn) * self.supply.turn
        self._next = first + max(last - first + self.supply.interval, turns * self.supply.beats)
        self.count += items
        return math.ceil(first), math.ceil(max(last, self._last + items * self.supply.gap))

    def _ask_ports(self, items: int, ports: LockstepPorts, *, earliest: int, room: int) -> tuple[int, int]:
        """Return the cycles of the first and the last item, each those of its latest port."""
        between = (items - 1) * self.supply.interval
        first = last = 0.0
        for n, channel in enumerate(ports.channels):
            begins = max(self._ports[n], earliest + self.supply.latency, room - between)
            if self.supply.ahead:
                own_first, own_last, moved = ports.burst(
                    channel, items=items, begins=begins, free=self._on_bus[n], gap=self.supply.gap
                )
                self._on_bus[n], self._ports[n] = own_last, moved + ports.interval
                first, last = max(first, own_first), max(last, own_last)
                continue
            first = max(first, ports.transferred(channel, begins, 0))
            last = max(last, ports.transferred(channel, begins, between))
            self._ports[n] = ports.transferred(channel, begins, between + self.supply.interval)
        self.count += items
        return math.ceil(first), math.ceil(max(last, self._last + items * self.supply.gap))

    def late(self, items: int) -> int:
        """Return the fewest cycles from the first of ``items`` to the last, however far memory is ahead."""
        return math.ceil(max(0, items - 1 - _ITEMS_READY) * self.supply.gap)

    def take(self, cycle: int, *, again: bool = False, keep: bool = False) -> None:
        """Record when the last item requested was taken, maybe ``again``; kept items free no room."""
        self._last = cycle
        if self.supply.depth == math.inf or keep:
            return
        count = self.count - self._skipped_items
        if again and self._taken and self._taken[-1][0] == count:
            self._taken.pop()
        if not self._taken or self._taken[-1][0] < count:
            self._taken.append((count, cycle - self._skipped_cycles))

    def skip(self, items: int, cycles: int) -> None:
        """Repeat the last run up to ``items`` more, in ``cycles``: memory keeps the pace."""
        self.count += items
        self._next += items * self.supply.interval
        self._ports = [cycle + items * self.supply.interval for cycle in self._ports]
        self._last += cycles
        self._skipped_items += items
        self._skipped_cycles += cycles
