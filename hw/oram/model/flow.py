"""When touches of a launch turn, by the rules of its gates (docs/oram.md, Time) and a model of the host."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.core.touch.scoreboard import Scoreboard
from hw.oram.model.host import Done, Host, Port
from hw.oram.model.link import Link
from hw.oram.movers.blocks.reader import BlockReader
from hw.oram.movers.blocks.writer import BlockWriter
from hw.oram.movers.ring.command_reader import CommandReader
from hw.oram.movers.ring.response_writer import ResponseWriter
from hw.oram.movers.timing import Timing

#: Cycles from a pulse to the first cycle in which a gate counts it, and from what a gate does to the first in
#: which another counts it, whose pulse is a cycle later.
_SEEN, _TOLD = 1, 2
#: Cycles from a page's release to its next issue.
_FREE = 1 + Scoreboard.LATENCY


class Flow(NamedTuple):
    """Cycles from the request of the first command to the end of a launch: in all, and of those, how many
    touches waited for their page to be free, for the host, and for others to turn.
    """

    total: float
    page: float
    host: float
    credit: float


def likely_pages(config: OramConfig, operations: int) -> list[int | None]:
    """Return pages of touches as labels give them: each as likely, whatever is done."""
    draw = random.Random(0)
    pages: list[int | None] = []
    for _ in range(operations * config.label_count):
        label = draw.randrange(config.labels)
        if config.items > config.label_count:
            pages += [None, draw.randrange(config.host_pages)]
        else:
            pages.append(label - config.hbm_labels if label >= config.hbm_labels else None)
    return pages


def flow(config: OramConfig, link: Link, pages: Sequence[int | None]) -> tuple[Flow, Flow]:
    """Follow operations that touch ``pages``, `OramConfig.items` each: give the first half of them, and all.

    What ends a launch counts for the first half too.
    """
    return _Launch(config, link, pages).follow()


class _Launch:
    """Gates, and what is done of bursts.

    A gate's cycle follows from others and is known before it comes: each acts as soon as all is known that it
    waits for.  Bursts that follow are carried in the order of time (`Host`), since they share rates.
    """

    def __init__(self, config: OramConfig, link: Link, pages: Sequence[int | None]) -> None:
        timing = Timing(config)
        self._config, self._host = config, Host(link)
        self._position, self._touch = timing.position, timing.touch
        self._page_sealed, self._response_sealed = timing.page_sealed, timing.response_sealed
        self._quiet = timing.quiet
        self._commands, self._reads = (self._host.port(write=False) for _ in range(2))
        self._responses, self._writes = (self._host.port(write=True) for _ in range(2))
        self._pages, self._operations = pages, len(pages) // config.items
        self._there: list[int] = []  # by operation
        self._accepted: list[int] = []
        self._answered: list[int] = []
        self._waiting: list[int] = []  # by response that is not written: when it was there
        self._issued: list[int] = []  # by touch
        self._turned: list[int] = []
        self._waited: list[bool] = []  # for the host
        self._came: list[int] = []  # by touch with a page
        self._left: list[int] = []
        self._released: list[int] = []
        self._paged = [0, 0]  # touches with a page that were issued, that turned
        self._last_touch: dict[int, int] = {}  # of a page, among touches with one
        self._asked, self._earliest = 0, 0  # commands, and when the next may be
        self._waits = {"page": 0, "host": 0, "credit": 0}
        self._half_waits = dict(self._waits)

    def follow(self) -> tuple[Flow, Flow]:
        """See `flow`."""
        self._advance()
        self._host.run()
        total = max(self._answered[-1], *self._released[-1:]) + self._quiet
        middle = self._operations // 2 * self._config.items
        half = Flow(total - self._turned[-1] + self._turned[middle - 1], **self._half_waits)
        return half, Flow(total, **self._waits)

    def _advance(self) -> None:
        """Let each gate act as often as it can."""
        while self._ask() or self._accept() or self._issue() or self._turn():
            pass

    def _ask(self) -> bool:
        """Ask for the next group of commands."""
        config, first = self._config, self._asked
        count = min(config.ring_group, self._operations - first)
        holder = first + count - 1 - config.command_records
        if not count or holder >= len(self._accepted):
            return False
        beats = config.command_bytes // BEAT_BYTES
        room = self._accepted[holder] + beats + _TOLD if holder >= 0 else 0
        request = max(self._earliest, room)
        self._asked, self._earliest = first + count, request + CommandReader.SPACING

        def come(begin: int, last: int) -> None:
            apart = (last - begin) / max(1, count * beats - 1)
            ends = (begin + ((n + 1) * beats - 1) * apart for n in range(count))
            self._there += [math.ceil(end) + CommandReader.THERE_LATENCY + _SEEN for end in ends]
            self._advance()

        size, cycle = config.command_bytes, request + CommandReader.ADDRESS_LATENCY
        self._host.ask(self._commands, cycle, first * size, count * size, come)
        return True

    def _accept(self) -> bool:
        """Accept the next operation: a(n)."""
        config, n = self._config, len(self._accepted)
        holder = (n - config.accepted) * config.items
        if n >= len(self._there) or holder >= len(self._issued):
            return False
        accepted = max(self._there[n], self._accepted[-1] + config.interval if n else 0)
        if holder >= 0:
            accepted = max(accepted, self._issued[holder] + _TOLD)
        self._accepted.append(accepted)
        return True

    def _issue(self) -> bool:
        """Issue the next touch: i(j)."""
        config, j = self._config, len(self._issued)
        n, at = divmod(j, config.items)
        if n >= len(self._accepted):
            return False
        page = self._pages[j]
        place = self._paged[0] - config.scoreboard_pages
        before = self._last_touch.get(page, -1) if page is not None else -1
        holder = (n - config.inflight + 1) * config.items - 1 if at == 0 else -1
        if max(place, before) >= len(self._released) or holder >= len(self._turned):
            return False
        if n == self._operations // 2 and at == 0:
            self._half_waits = dict(self._waits)
        issue = self._issued[-1] + config.item_cycles if j else 0
        if at == 0:
            issue = max(issue, self._accepted[n] + self._position)
        held, by_host = issue, False
        if holder >= 0:
            held, by_host = max(held, self._turned[holder] + _TOLD), self._waited[holder]
        if place >= 0:
            held = max(held, self._released[place] + _SEEN)
        self._waits["host" if by_host else "credit"] += held - issue
        issue = max(held, self._released[before] + _FREE) if before >= 0 else held
        self._waits["page"] += issue - held
        self._issued.append(issue)
        if page is not None:
            self._last_touch[page] = self._paged[0]
            self._paged[0] += 1
            self._move_page(self._reads, issue + BlockReader.ADDRESS_LATENCY, page, self._come)
        return True

    def _come(self, _: int, last: int) -> None:
        """A page is there."""
        self._came.append(last + BlockReader.THERE_LATENCY + _SEEN)
        self._advance()

    def _turn(self) -> bool:
        """Let the next touch turn: q(j)."""
        config, j = self._config, len(self._turned)
        n, at = divmod(j, config.items)
        if j >= len(self._issued):
            return False
        page, k = self._pages[j], self._paged[1]
        leaver = k - config.write_pages
        writer = n - config.response_records if at == config.items - 1 else -1
        if leaver >= len(self._left) or writer >= len(self._answered):
            return False
        if page is not None and k >= len(self._came):
            return False
        turn = self._issued[j] + self._touch
        ready = turn = max(turn, self._turned[-1] + config.item_cycles if j else 0)
        if leaver >= 0:
            turn = max(turn, self._left[leaver] + BlockWriter.LEFT_LATENCY + _SEEN)
        if writer >= 0:
            turn = max(turn, self._answered[writer] + _SEEN)
        if page is not None:
            turn = max(turn, self._came[k])
            self._paged[1] += 1
            sealed = turn + self._page_sealed
            self._move_page(self._writes, sealed + BlockWriter.ADDRESS_LATENCY, page, self._leave(turn))
        self._turned.append(turn)
        self._waited.append(turn > ready)
        if at == config.items - 1:
            self._respond(n, turn + self._response_sealed)
        return True

    def _leave(self, turn: int) -> Done:
        """Return what follows when the page of a turn is written: r(j)."""

        def left(last: int, answered: int) -> None:
            self._left.append(last)
            written = answered + BlockWriter.WRITTEN_LATENCY + _SEEN
            after = self._released[-1] + 1 if self._released else 0
            self._released.append(max(turn + self._config.settle_deadline, written, after))
            self._advance()

        return left

    def _respond(self, n: int, whole: int) -> None:
        """Write the responses that wait when the last of a group comes, or of all commands there are, or when
        the first waited long enough.
        """
        if self._waiting and whole > self._waiting[0] + ResponseWriter.WAIT:
            self._answer(n - len(self._waiting), self._waiting[0] + ResponseWriter.WAIT)
        self._waiting.append(whole)
        following = self._there[n + 1 : n + 2]
        alone = n + 1 == self._operations or (following and following[0] > whole + _SEEN)
        if alone or not (n + 1) % self._config.ring_group:
            self._answer(n + 1 - len(self._waiting), whole)

    def _answer(self, first: int, go: int) -> None:
        """Write the responses from ``first`` on that wait."""
        count = len(self._waiting)
        self._waiting.clear()

        def written(_: int, answered: int) -> None:
            begin = answered + ResponseWriter.WRITTEN_LATENCY
            self._answered += range(begin, begin + count)
            self._advance()

        size, cycle = self._config.command_bytes, go + ResponseWriter.ADDRESS_LATENCY
        self._host.ask(self._responses, cycle, first * size, count * size, written)

    def _move_page(self, port: Port, cycle: int, page: int, done: Done) -> None:
        size = self._config.page_bytes
        self._host.ask(port, cycle, page * size, size, done)
