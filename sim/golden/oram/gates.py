"""When the gates act: acceptance, issue, turn and release, from public events alone (docs/oram.md, Time)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hw.oram.config import OramConfig


def _after(events: Sequence[int], number: int, cycles: int) -> int:
    """Return the cycle so long after event ``number``; 0, which holds up nothing, if there is none so
    early.
    """
    return events[number] + cycles if number >= 0 else 0


@dataclass(kw_only=True)
class Gates:
    """Cycles of the host's events, which are put in, and of the gates', which follow.

    Operations and touches come in order: an operation is accepted, then each of its touches is issued, has
    its turn and, if it has a page, releases it.
    """

    config: OramConfig
    #: ``position_cycles``, ``touch_cycles``: deadlines of `hw.oram.core.touch.touch.Touch`: from acceptance
    #: to issue, from issue to turn.
    position_cycles: int
    touch_cycles: int
    seen: int = 1  #: From a pulse to the first cycle in which a gate counts it.
    #: From an issue to the first acceptance, and from a turn to the first issue, that counts it.
    told: int = 2
    #: ``room``, ``free``: from the release of a page to the first issue that counts its place, and to the
    #: first of this page.
    room: int = 1
    free: int = 3
    #: ``command_there``, ``page_there``, ``page_left``, ``page_written``, ``response_written``: pulses of the
    #: host, as the ports of `Touch`: by operation, or by touch with a page.
    command_there: list[int] = field(default_factory=list)
    page_there: list[int] = field(default_factory=list)
    page_left: list[int] = field(default_factory=list)
    page_written: list[int] = field(default_factory=list)
    response_written: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)  #: By operation: a(n).
    #: ``issued``, ``turned``: by touch: i(j) and q(j).
    issued: list[int] = field(default_factory=list)
    turned: list[int] = field(default_factory=list)
    released: list[int] = field(default_factory=list)  #: By touch with a page: r(j).
    _page: int | None = None  # of the touch that was issued last
    _free_from: dict[int, int] = field(default_factory=dict)  # by page

    def accept(self) -> int:
        """Return a(n) of the next operation, whose command is there.

        At most ``config.accepted`` operations are accepted and their first touch not issued.
        """
        config, n = self.config, len(self.accepted)
        accepted = max(
            _after(self.command_there, n, self.seen),
            _after(self.accepted, n - 1, config.interval),
            _after(self.issued, (n - config.accepted) * config.items, self.told),
        )
        self.accepted.append(accepted)
        return accepted

    def issue(self, page: int | None) -> int:
        """Return i(j) of the next touch, whose page, if it has one, is not under way.

        At most ``inflight`` operations are issued and have not turned, and at most ``scoreboard_pages`` pages
        are under way.
        """
        config, j = self.config, len(self.issued)
        n, at = divmod(j, config.items)
        issued = max(
            _after(self.issued, j - 1, config.item_cycles),
            _after(self.released, len(self.released) - config.scoreboard_pages, self.room),
        )
        if at == 0:
            issued = max(
                issued,
                _after(self.accepted, n, self.position_cycles),
                _after(self.turned, (n - config.inflight + 1) * config.items - 1, self.told),
            )
        if page is not None:
            issued = max(issued, self._free_from.get(page, 0))
        self._page = page
        self.issued.append(issued)
        return issued

    def turn(self) -> int:
        """Return q(j) of the touch that was issued, whose page, if it has one, is there.

        At most ``write_pages`` pages have turned and not left, at most ``response_records`` responses are
        not written.
        """
        config, j, pages = self.config, len(self.turned), len(self.released)
        n, at = divmod(j, config.items)
        turned = max(
            _after(self.issued, j, self.touch_cycles),
            _after(self.turned, j - 1, config.item_cycles),
            _after(self.page_left, pages - config.write_pages, self.seen),
        )
        if self._page is not None:
            turned = max(turned, _after(self.page_there, pages, self.seen))
        if at == config.items - 1:
            turned = max(turned, _after(self.response_written, n - config.response_records, self.seen))
        self.turned.append(turned)
        return turned

    def release(self) -> int:
        """Return r(j) of the touch that turned, whose page is written."""
        assert self._page is not None
        released = max(
            _after(self.turned, len(self.turned) - 1, self.config.settle_deadline),
            _after(self.page_written, len(self.released), self.seen),
        )
        self.released.append(released)
        self._free_from[self._page] = released + self.free
        return released
