"""Recurrences of the public times: acceptance, issue, admission and release (docs/oram.md, Time)."""

from hw.oram.config import OramConfig
from hw.oram.core.touch.times import TouchTimes

#: Cycles from a pulse to the first cycle in which a counter includes it.
_COUNTED = 1
#: Cycles from an issue to the first acceptance that counts it, and from an admission to the first issue.
_ACTION_COUNTED = 2


class Admission:
    """Cycles of the host's events, appended by the caller, and cycles of the map's actions, computed.

    Prediction and the golden bus trace both use these recurrences.  Two tests check them: the RTL against
    them, and the bus trace against a machine that is simulated cycle by cycle.

    Operations and touches are numbered in order.  Each action returns its cycle, or None while an event or an
    action that it depends on is not yet known.
    """

    def __init__(self, config: OramConfig, times: TouchTimes) -> None:
        self.config = config
        #: By whether the operation is alone.
        self._position = times.position_cycles, times.idle_position_cycles
        self._touch = times.touch_cycles, times.idle_touch_cycles
        self._rest, self._forward = times.rest_cycles, times.forward_cycles
        self._items, self._interval, self._item_cycles = config.items, config.interval, config.item_cycles
        self._ahead, self._inflight, self._board = config.accepted, config.issued, config.scoreboard_pages
        self._write_pages, self._response_records = config.write_pages, config.response_records
        self._settle = config.record_sizes.settle_cycles
        #: Cycles of pulses at the ports of `Touch`. ``command_arrived``, ``response_written``: by operation.
        #: ``page_arrived``, ``page_left``, ``page_written``: by touch with a page.
        self.command_arrived: list[int] = []
        self.page_arrived: list[int] = []
        self.page_left: list[int] = []
        self.page_written: list[int] = []
        self.response_written: list[int] = []
        #: ``accepted``: a(n), by operation. ``issued``, ``admitted``: i(j) and q(j), by touch. ``released``:
        #: r(j), by touch with a page. ``alone``: by operation.
        self.accepted: list[int] = []
        self.alone: list[bool] = []
        self.issued: list[int] = []
        self.admitted: list[int] = []
        self.released: list[int] = []
        #: Cycles in which issue waited for admissions: delayed by a page, by the host, or by earlier ones.
        self.waits = {"page": 0, "host": 0, "credit": 0}
        self._pages: list[int | None] = []  # by touch
        self._page_admitted: list[int] = []  # by touch with a page
        self._causes: list[str] = []  # by touch: the cause of its admission's delay
        self._last_touch: dict[int, int] = {}  # by page: its last touch, among touches with a page
        self._before: list[int] = []  # by touch with a page: the page's touch before, or -1

    def accept(self) -> int | None:
        """Accept the next operation: a(n)."""
        n = len(self.accepted)
        holder = (n - self._ahead) * self._items
        if n >= len(self.command_arrived) or holder >= len(self.issued):
            return None
        cycle = self.command_arrived[n] + _COUNTED
        if n and (paced := self.accepted[-1] + self._interval) > cycle:
            cycle = paced
        if holder >= 0 and (room := self.issued[holder] + _ACTION_COUNTED) > cycle:
            cycle = room
        before = n * self._items - 1  # the last touch of the operation before
        rested = before < len(self.admitted) and (n == 0 or self.admitted[before] + self._rest <= cycle)
        self.alone.append(rested)
        self.accepted.append(cycle)
        return cycle

    def issue(self, page: int | None) -> int | None:
        """Issue the next touch, of ``page`` or none: i(j)."""
        j = len(self.issued)
        n, item = divmod(j, self._items)
        if n >= len(self.accepted):
            return None
        board = len(self._before) - self._board
        holder = (n - self._inflight + 1) * self._items - 1 if item == 0 else -1
        if board >= len(self.released) or holder >= len(self.admitted):
            return None
        due = self.issued[-1] + self._item_cycles if j else 0
        if item == 0:
            due = max(due, self.accepted[n] + self._position[self.alone[n]])
        cycle, cause = due, "credit"
        if holder >= 0:
            cycle = max(cycle, self.admitted[holder] + _ACTION_COUNTED)
            cause = self._causes[holder]
        if board >= 0:
            cycle = max(cycle, self.released[board] + _COUNTED)
        self.waits[cause] += cycle - due
        self.issued.append(cycle)
        self._pages.append(page)
        if page is not None:
            self._before.append(self._last_touch.get(page, -1))
            self._last_touch[page] = len(self._before) - 1
        return cycle

    def admit(self) -> int | None:
        """Admit the next touch to the stage: q(j)."""
        j, k = len(self.admitted), len(self._page_admitted)
        if j >= len(self.issued):
            return None
        n, item = divmod(j, self._items)
        page = self._pages[j]
        leaving = k - self._write_pages
        response = n - self._response_records if item == self._items - 1 else -1
        if leaving >= len(self.page_left) or response >= len(self.response_written):
            return None
        if page is not None and k >= len(self.page_arrived):
            return None
        due = self.issued[j] + self._touch[self.alone[n]]
        if j:
            due = max(due, self.admitted[-1] + self._item_cycles)
        cycle, cause = due, "credit"
        if page is not None and (before := self._before[k]) >= 0:
            clear = self._page_admitted[before] + self._forward
            if clear > cycle:
                cycle, cause = clear, "page"
        own = cycle
        if leaving >= 0:
            cycle = max(cycle, self.page_left[leaving] + _COUNTED)
        if response >= 0:
            cycle = max(cycle, self.response_written[response] + _COUNTED)
        if page is not None:
            cycle = max(cycle, self.page_arrived[k] + _COUNTED)
            self._page_admitted.append(cycle)
        self.admitted.append(cycle)
        self._causes.append("host" if cycle > own else cause)
        return cycle

    def release(self) -> int | None:
        """Release the oldest page in flight: r(j)."""
        k = len(self.released)
        if k >= len(self.page_written) or k >= len(self._page_admitted):
            return None
        cycle = max(self._page_admitted[k] + self._settle, self.page_written[k] + _COUNTED)
        self.released.append(cycle)
        return cycle
