"""What the planner and those who wait for it tell each other: how far it is, and that it should end.

All stages of one planning share a `Watch`, which they find by `current`.  Asked to end, each soon gives the
best it has so far: what follows is a whole plan in any case, and its certificate says that it was stopped.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from hw.scheduler.planner.order.lattice import Integers

#: What a stage that was asked to end says of itself.
STOPPED = "stopped"

#: What is said while a search is compiled.
COMPILING = "compiling what this search needs, and keeping it for the next time"

#: Share of the time that is kept for making a whole plan of what was found, and seconds for each operator.
_RESERVE, _RESERVE_PER_OPERATOR_S = 0.1, 0.002


class Watch:
    """One planning, watched: how far it is, and whether it should end.

    ``tell``: called with a line of text now and then, from the thread that plans. ``within_s``: seconds from
    now in which the plan is to be there, as far as one can be made in them.
    """

    def __init__(
        self, tell: Callable[[str], None] = lambda text: None, within_s: float | None = None
    ) -> None:
        #: Shape (1,): not 0 once the planning should end: compiled searches read it.
        self.flag: Integers = np.zeros(1, np.int64)
        self.tell, self._within_s, self._began = tell, within_s, time.monotonic()
        self._stage = self._known = ""
        self._least = math.inf
        self._timer: threading.Timer | None = None
        self.reserve(0)  # the time runs while a model is read, too

    @property
    def stopped(self) -> bool:
        """Whether the planning should end."""
        return bool(self.flag[0])

    def stop(self) -> None:
        """Ask the planning to end, from any thread."""
        self.flag[0] = 1

    def reserve(self, operators: int) -> None:
        """Keep as much of the time as a plan of so many operators needs once its search has ended."""
        if self._within_s is not None:
            kept = self._within_s * _RESERVE + operators * _RESERVE_PER_OPERATOR_S
            self.close()
            left = self._began + self._within_s - kept - time.monotonic()
            self._timer = threading.Timer(max(0.0, left), self.stop)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """Let the time run on without consequences."""
        if self._timer is not None:
            self._timer.cancel()

    def stage(self, text: str) -> None:
        """Say what is done from now on."""
        self._stage = text
        self._say()

    def detail(self, text: str) -> None:
        """Say how far the stage is."""
        self._say(f", {text}")

    def compiling(self, under_way: bool) -> None:
        """Say that the stage waits for a search to be compiled, or waits no longer."""
        if under_way:
            self.tell(COMPILING)
        else:
            self._say()

    def best(self, avoidable_bytes: int, bound_bytes: int, *, placed: bool = True) -> None:
        """Say what a plan moves, and what none of its graph is below: shown unless a better one is known.

        An order whose stays have no addresses yet may need more in the end.
        """
        if avoidable_bytes < self._least:
            what = "best so far" if placed else "best order so far, before addresses,"
            self._known = f"; {what} {avoidable_bytes:,} avoidable bytes, bound {bound_bytes:,}"
            if placed:
                self._least = avoidable_bytes
            self._say()

    def _say(self, detail: str = "") -> None:
        self.tell(self._stage + detail + self._known)


_watch: ContextVar[Watch] = ContextVar("watch", default=Watch())  # noqa: B039 (nobody stops the default)


def current() -> Watch:
    """Return the watch of the planning at hand; one that nobody looks at where there is none."""
    return _watch.get()


@contextmanager
def watched(watch: Watch) -> Iterator[Watch]:
    """Make a watch the current one."""
    token = _watch.set(watch)
    try:
        yield watch
    finally:
        watch.close()
        _watch.reset(token)
