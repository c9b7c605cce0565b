"""When touches happen, from public events alone: a naive model, cycle by cycle, of what the gates promise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hw.oram.config import OramConfig


def by(events: Sequence[int], cycle: int) -> int:
    """Give how many events came in cycles up to ``cycle``."""
    return sum(event <= cycle for event in events)


@dataclass
class Times:
    """Cycles of all events: those of the host are put in, those of the engine follow.

    Parameters
    ----------
    config
        Shape of the map.
    position_cycles, touch_cycles
        Deadlines.
    pages
        Page of every touch in order, or None.
    """

    config: OramConfig
    position_cycles: int
    touch_cycles: int
    pages: Sequence[int | None]
    there: list[int] = field(default_factory=list)  #: Pulses: commands.
    page_there: list[int] = field(default_factory=list)  #: Pulses, as are the next three.
    page_left: list[int] = field(default_factory=list)
    page_written: list[int] = field(default_factory=list)
    response_written: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)  #: a(n)
    issued: list[int] = field(default_factory=list)  #: i(j)
    turned: list[int] = field(default_factory=list)  #: q(j)
    released: list[int] = field(default_factory=list)  #: r(j), of touches with a page

    def cycle(self, t: int) -> None:
        """Add the events of cycle ``t``; those of the host up to the cycle before are known."""
        config, items = self.config, self.config.items
        firsts = self.issued[::items]
        lasts = self.turned[items - 1 :: items]
        accept = (
            len(self.accepted) < by(self.there, t - 1)
            and (not self.accepted or t >= self.accepted[-1] + config.interval)
            and len(self.accepted) - by(firsts, t - 2) < config.accepted
        )

        j = len(self.issued)
        issue = j < len(self.pages) and j // items < len(self.accepted)
        if issue:
            issue = j == 0 or t >= self.issued[-1] + config.item_cycles
            if j % items == 0:
                issue = issue and t >= self.accepted[j // items] + self.position_cycles
                issue = issue and len(firsts) - by(lasts, t - 2) < config.inflight
            paged = [page for page in self.pages[:j] if page is not None]
            gone = by(self.released, t - 3)
            issue = issue and self.pages[j] not in paged[gone:]
            issue = issue and len(paged) - by(self.released, t - 1) < config.scoreboard_pages

        k = len(self.turned)
        turn = k < len(self.issued) and t >= self.issued[k] + self.touch_cycles
        if turn:
            paged = [page for page in self.pages[:k] if page is not None]
            turn = k == 0 or t >= self.turned[-1] + config.item_cycles
            turn = turn and (self.pages[k] is None or len(paged) < by(self.page_there, t - 1))
            turn = turn and len(paged) - by(self.page_left, t - 1) < config.write_pages
            if k % items == items - 1:
                unwritten = len(lasts) - by(self.response_written, t - 1)
                turn = turn and unwritten < config.response_records

        x = len(self.released)
        with_page = [q for q, page in zip(self.turned, self.pages, strict=False) if page is not None]
        release = (
            x < len(with_page)
            and t >= with_page[x] + config.settle_cycles
            and x < by(self.page_written, t - 1)
        )
        for happens, events in (
            (accept, self.accepted),
            (issue, self.issued),
            (turn, self.turned),
            (release, self.released),
        ):
            if happens:
                events.append(t)
