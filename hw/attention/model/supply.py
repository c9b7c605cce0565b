"""The earliest cycle in which each part of queries, keys and values can come from memory."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from hw.attention.model.refresh import Refreshes
from hw.lib.dma.write import WriteDMA
from hw.lib.skid import Skid

#: Items that wait behind a converter: its own, and those in the skid buffer.
_ITEMS_READY = 1 + Skid.CAPACITY


@dataclass(frozen=True, kw_only=True)
class Supply:
    """A stream: an item every ``interval`` cycles at most, ``latency`` after it is known at the earliest."""

    #: ``latency``, ``interval``: what memory gives, in cycles.
    latency: float = 0.0
    interval: float = 1.0
    #: Between items even when memory is ahead: a converter behind the DMA's buffer takes a beat a cycle.
    gap: float = 1.0
    depth: float = math.inf  #: Items that memory may be ahead of what was taken.
    #: ``turn``, ``beats``: items that all ports give together, and the beats of an item: what is asked for at
    #: once begins a new turn, and so ends in a whole number of them.
    turn: int = 1
    beats: float = 0.0
    #: Where an item is one of every port: when these refresh.  ``interval`` is that between refreshes then.
    lockstep: LockstepPorts | None = None

    @property
    def ahead(self) -> bool:
        """Whether channels of ports in lockstep are faster than their buses, and so make up for refreshes."""
        return self.lockstep is not None and self.lockstep.interval < self.gap


@dataclass(frozen=True, kw_only=True)
class LockstepPorts:
    """Ports of which each gives a part of every item."""

    channels: Sequence[int]  #: A port's each.
    refreshes: Refreshes  #: Of these.
    behind: int  #: Cycles from a request to its part.
    interval: float = math.inf  #: Cycles that a channel takes for a part, between refreshes.
    ahead: float = 0.0  #: Parts that memory holds for a port whose bus is slower than its channel.

    def moved(self, channel: int, cycle: float, cycles: float) -> float:
        """Return when the part is there that a port gives so many cycles of moving after this cycle."""
        return self.refreshes.moved(channel, cycle - self.behind, cycles) + self.behind

    def given(
        self, channel: int, *, items: int, begins: float, free: float, gap: float
    ) -> tuple[float, float, float]:
        """Return when a port's bus gives the first and the last of ``items``, one every ``gap`` cycles at the
        most, and when the channel has moved all of them.

        The channel ``begins`` in this cycle, or later; the bus gave a part in the cycle ``free``.  Of a
        refresh the bus sees what memory does not hold by then.
        """
        moved, at = 1.0, self.moved(channel, begins, 0)
        first = max(free + gap, at)
        before = first - gap  # the bus gives part n, from 1 on, n * gap behind it
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
    """When what a pass needs is known, in cycles."""

    #: ``queries``, ``keys``: from when on memory can be asked for its queries, and for its keys and values.
    queries: int = 0
    keys: int = 0
    empty: int = 0  #: From when on it is whether it is empty.
    cached: int = 0  #: From when on its keys can come from the caches.
    #: ``later``, ``keys_later``, ``values_later``: by how many cycles the first of its queries, keys and
    #: values comes later than memory's latency says.
    later: int = 0
    keys_later: int = 0
    values_later: int = 0
    #: ``query_cycles``, ``result_cycles``: what the channels of its queries, and of its results, take for
    #: them at least.
    query_cycles: float = 0.0
    result_cycles: float = 0.0
    #: ``again``, ``keep``: see `hw.attention.driver.shapes.JobPass`.
    again: bool = False
    keep: bool = False


class ResultChannel:
    """The channel through which results are written, and queries read where they share it, beat by beat.

    It is behind only when these are more than it moves; the `WriteDMA` then takes results until it is full.

    ``read_interval``, ``write_interval``: cycles that the channel takes for a beat of queries, and for one of
    results, of all their ports.
    """

    def __init__(self, *, read_interval: float = 0.0, write_interval: float = 0.0) -> None:
        self._read_interval, self._write_interval = read_interval, write_interval
        self.free = 0.0  #: When it has moved all that it was given.

    def read(self, beats: float, *, first: int) -> None:
        """Read queries, asked for in the cycle ``first``."""
        self.free = max(self.free, first) + beats * self._read_interval

    def write(self, beats: int, *, first: int, least: float = 0.0) -> tuple[int, int]:
        """Return when the last of so many beats leaves the core, after the ``first``, and when it is sent;
        the channel takes ``least`` cycles for all of them.
        """
        last = first + beats - 1
        interval = max(self._write_interval, least / beats)
        self.free = max(self.free, first) + beats * interval
        sent = max(last, math.ceil(self.free) - 1)
        return max(last, sent - math.floor(WriteDMA.FIFO_BEATS * interval)), sent


class SupplySchedule:
    """Items of a `Supply`, asked for in runs."""

    def __init__(self, supply: Supply) -> None:
        self.supply = supply
        self.count = 0  #: Items that were asked for.
        self._next = self._moved = 0.0
        ports = len(supply.lockstep.channels) if supply.lockstep else 0
        self._ports = [0.0] * ports  # as `_next`
        self._given = [-math.inf] * ports  # when their buses gave the last item
        self._last = -math.inf
        self._taken: deque[tuple[int, int]] = deque()  # items, and when the last of them was taken

    def ask(self, items: int, *, known: int = 0, least: float = 0.0) -> tuple[int, int] | None:
        """Return the earliest cycles of the first and the last of the next ``items``; None for none.

        Memory can be asked for them from the cycle ``known`` on, and its channel takes ``least`` cycles for
        all of them.
        """
        if not items:
            return None
        # The last item needs the room that one taken long before it left.
        place = self.count + items - self.supply.depth
        while self._taken and self._taken[0][0] < place:
            self._taken.popleft()
        room = self._taken[0][1] if self._taken and place > 0 else 0
        if self.supply.lockstep:
            return self._ask_ports(items, self.supply.lockstep, known=known, room=room)
        first = max(self._next, known + self.supply.latency, room - (items - 1) * self.supply.interval)
        last = first + (items - 1) * self.supply.interval
        # The channel may be ahead of the port that its data go through.
        self._moved = max(self._moved, known + self.supply.latency, room) + least
        last = max(last, self._moved)
        turns = -(-items // self.supply.turn) * self.supply.turn
        self._next = first + max(last - first + self.supply.interval, turns * self.supply.beats)
        self.count += items
        return math.ceil(first), math.ceil(max(last, self._last + items * self.supply.gap))

    def _ask_ports(self, items: int, ports: LockstepPorts, *, known: int, room: int) -> tuple[int, int]:
        """Return the first and the last cycle likewise: those of the port that is last."""
        between = (items - 1) * self.supply.interval
        first = last = 0.0
        for n, channel in enumerate(ports.channels):
            begins = max(self._ports[n], known + self.supply.latency, room - between)
            if self.supply.ahead:
                own_first, own_last, moved = ports.given(
                    channel, items=items, begins=begins, free=self._given[n], gap=self.supply.gap
                )
                self._given[n], self._ports[n] = own_last, moved + ports.interval
                first, last = max(first, own_first), max(last, own_last)
                continue
            first = max(first, ports.moved(channel, begins, 0))
            last = max(last, ports.moved(channel, begins, between))
            self._ports[n] = ports.moved(channel, begins, between + self.supply.interval)
        self.count += items
        return math.ceil(first), math.ceil(max(last, self._last + items * self.supply.gap))

    def late(self, items: int) -> int:
        """Return the cycles from the first of ``items`` to the last, wherever memory is."""
        return math.ceil(max(0, items - 1 - _ITEMS_READY) * self.supply.gap)

    def take(self, cycle: int, *, again: bool = False, keep: bool = False) -> None:
        """Say when the last item that was asked for was taken, maybe ``again``; those that are kept leave no
        room.
        """
        self._last = cycle
        if self.supply.depth == math.inf or keep:
            return
        if again and self._taken and self._taken[-1][0] == self.count:
            self._taken.pop()
        if not self._taken or self._taken[-1][0] < self.count:
            self._taken.append((self.count, cycle))

    def skip(self, items: int, cycles: int) -> None:
        """Repeat what happened last, ``items`` in all, in ``cycles``: memory was no slower."""
        self.count += items
        self._next += items * self.supply.interval
        self._ports = [cycle + items * self.supply.interval for cycle in self._ports]
        self._last += cycles
        self._taken = deque((count + items, cycle + cycles) for count, cycle in self._taken)
