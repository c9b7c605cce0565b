"""Times of a launch's touches: the recurrences of `Admission`, and a model of the host."""

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.model.admission import Admission
from hw.oram.model.host import Done, HostMemory, HostPort
from hw.oram.model.link import Link
from hw.oram.movers.blocks.reader import BlockReader
from hw.oram.movers.blocks.writer import BlockWriter
from hw.oram.movers.ring.command_reader import CommandReader
from hw.oram.movers.ring.response_writer import ResponseWriter
from hw.oram.movers.timing import PathTiming

#: Cycles from the end of a command's beats to the first request that counts its room.
_ROOM_COUNTED = 2


class LaunchTimes(NamedTuple):
    """Cycles from the first command's request to the end of a launch: all, and those in which touches
    waited for admissions that a page, the host, or earlier ones delayed.
    """

    total: float
    page: float
    host: float
    credit: float


def random_pages(config: OramConfig, operations: int) -> list[int | None]:
    """Return random pages of touches: every label is equally likely, whatever the operations."""
    draw = random.Random(0)
    pages: list[int | None] = []
    for _ in range(operations * config.label_count):
        label = draw.randrange(config.labels)
        if config.items > config.label_count:
            pages += [None, draw.randrange(config.host_pages)]
        else:
            pages.append(label - config.hbm_labels if label >= config.hbm_labels else None)
    return pages


def launch_times(
    config: OramConfig, link: Link, pages: Sequence[int | None]
) -> tuple[LaunchTimes, LaunchTimes]:
    """Follow operations that touch ``pages``, `OramConfig.items` each: return the times of the second and
    third quarter, and of all with the end of the launch.

    The last operations are faster than these: no later one reads.
    """
    return _Launch(config, link, pages).follow()


class _Launch:
    """A launch: the recurrences of `Admission`, and the bursts that its actions cause.

    Each action is computed once its inputs are known. Bursts are carried in order of time (`HostMemory`),
    since they share rates.
    """

    def __init__(self, config: OramConfig, link: Link, pages: Sequence[int | None]) -> None:
        timing = PathTiming(config)
        self._host = HostMemory(link)
        self._page_sealed, self._response_sealed = timing.page_sealed, timing.response_sealed
        self._end = timing.quiet + timing.end
        self._commands, self._reads = (self._host.port(write=False) for _ in range(2))
        self._responses, self._writes = (self._host.port(write=True) for _ in range(2))
        self._pages, self._operations = pages, len(pages) // config.items
        quarter = self._operations // 4
        self._middle = [quarter * config.items, (quarter + self._operations // 2) * config.items]
        self._admission = Admission(config, timing.touches)
        self._items, self._group, self._records = config.items, config.ring_group, config.command_records
        self._command_bytes, self._page_bytes = config.command_bytes, config.page_bytes
        self._waiting: list[int] = []  # cycles of the last beats of waiting responses
        self._asked, self._earliest = 0, 0  # commands requested, and the cycle of the next request at least
        self._waits_at = [dict(self._admission.waits)] * 2

    def follow(self) -> tuple[LaunchTimes, LaunchTimes]:
        """See `launch_times`."""
        self._ask()
        self._host.run()
        times = self._admission
        total = max(times.response_written[-1], *times.page_written[-1:]) + self._end
        first, last = (times.admitted[j - 1] if j else 0 for j in self._middle)
        waits = {name: self._waits_at[1][name] - wait for name, wait in self._waits_at[0].items()}
        return LaunchTimes(last - first, **waits), LaunchTimes(total, **times.waits)

    def _advance(self) -> None:
        """Compute every action that the events so far determine."""
        accept = self._admission.accept
        while True:
            while accept() is not None:
                self._ask()
            if not self._issue():
                while self._admit():
                    if self._issue():
                        break
                else:
                    return

    def _ask(self) -> None:
        """Request all groups of commands that have room."""
        times, beats = self._admission, self._command_bytes // BEAT_BYTES
        while count := min(self._group, self._operations - self._asked):
            holder = self._asked + count - 1 - self._records
            if holder >= len(times.accepted):
                break
            room = times.accepted[holder] + beats + _ROOM_COUNTED if holder >= 0 else 0
            request = max(self._earliest, room)
            self._request(self._asked, count, request + CommandReader.ADDRESS_LATENCY)
            self._asked, self._earliest = self._asked + count, request + CommandReader.SPACING

    def _request(self, first: int, count: int, cycle: int) -> None:
        """Read commands, whose address is on the bus in ``cycle``."""
        beats = self._command_bytes // BEAT_BYTES

        def arrive(begin: int, last: int) -> None:
            apart = (last - begin) / max(1, count * beats - 1)
            ends = (begin + ((n + 1) * beats - 1) * apart for n in range(count))
            pulses = [math.ceil(end) + CommandReader.ARRIVED_LATENCY for end in ends]
            self._admission.command_arrived += pulses
            self._advance()

        size = self._command_bytes
        self._host.ask(self._commands, cycle, first * size, count * size, arrive)

    def _issue(self) -> bool:
        """Issue the next touch, and read its page."""
        times = self._admission
        j = len(times.issued)
        if j >= len(self._pages):
            return False
        for n, middle in enumerate(self._middle):
            if j == middle:
                self._waits_at[n] = dict(times.waits)
        page = self._pages[j]
        issued = times.issue(page)
        if issued is None:
            return False
        if page is not None:
            self._move_page(self._reads, issued + BlockReader.ADDRESS_LATENCY, page, self._page_read)
        return True

    def _page_read(self, _: int, last: int) -> None:
        self._admission.page_arrived.append(last + BlockReader.ARRIVED_LATENCY)
        self._advance()

    def _admit(self) -> bool:
        """Admit the next touch, write its page, and respond after an operation's last touch."""
        times = self._admission
        admitted = times.admit()
        if admitted is None:
            return False
        n, item = divmod(len(times.admitted) - 1, self._items)
        page = self._pages[len(times.admitted) - 1]
        if page is not None:
            sealed = admitted + self._page_sealed
            self._move_page(self._writes, sealed + BlockWriter.ADDRESS_LATENCY, page, self._page_written)
        if item == self._items - 1:
            self._respond(n, admitted + self._response_sealed)
        return True

    def _page_written(self, last: int, answered: int) -> None:
        times = self._admission
        times.page_left.append(last + BlockWriter.LEFT_LATENCY)
        written = answered + BlockWriter.WRITTEN_LATENCY  # at most one pulse a cycle
        times.page_written.append(max(written, times.page_written[-1] + 1) if times.page_written else written)
        times.release()
        self._advance()

    def _respond(self, n: int, last: int) -> None:
        """Write the waiting responses at the end of a group, when no command follows, or when the first has
        waited `ResponseWriter.WAIT` cycles.
        """
        if self._waiting and last > self._waiting[0] + ResponseWriter.WAIT:
            self._answer(n - len(self._waiting), self._waiting[0] + ResponseWriter.WAIT)
        self._waiting.append(last)
        following = self._admission.command_arrived[n + 1 : n + 2]
        alone = n + 1 == self._operations or (following and following[0] > last)
        if alone or not (n + 1) % self._group:
            self._answer(n + 1 - len(self._waiting), last)

    def _answer(self, first: int, cycle: int) -> None:
        """Write the waiting responses, the oldest of which is number ``first``."""
        count = len(self._waiting)
        self._waiting.clear()

        def written(_: int, answered: int) -> None:
            begin = answered + ResponseWriter.WRITTEN_LATENCY
            self._admission.response_written += range(begin, begin + count)
            self._advance()

        size, address = self._command_bytes, cycle + ResponseWriter.ADDRESS_LATENCY
        self._host.ask(self._responses, address, first * size, count * size, written)

    def _move_page(self, port: HostPort, cycle: int, page: int, done: Done) -> None:
        self._host.ask(port, cycle, page * self._page_bytes, self._page_bytes, done)
