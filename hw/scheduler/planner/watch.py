"""Progress and early end of a planning run.

All stages of one run share a `Watch`, found by `current`.  Asked to end, each soon returns its best result so
far.  The plan is still complete, and its certificate says that it was stopped.
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from hw.scheduler.planner.order.lattice import Integers

#: Status of a stage that was asked to end.
STOPPED = "stopped"

#: Progress line while a search is compiled.
COMPILING = "compiling what this search needs, and keeping it for the next time"

#: Share of the time reserved for completing the plan, and seconds for each operator.
_RESERVE, _RESERVE_PER_OPERATOR_S = 0.1, 0.002


class Watch:
    """Progress of one planning run, and its request to end.

    ``tell``: called with progress lines, from the planning thread. ``within_s``: seconds from now until the
    plan is due; a first plan may take longer.
    """

    def __init__(
        self, tell: Callable[[str], None] = lambda text: None, within_s: float | None = None
    ) -> None:
        #: Shape (1,): not 0 once the run should end; compiled searches read it.
        self.flag: Integers = np.zeros(1, np.int64)
        self.tell, self._within_s, self._began = tell, within_s, time.monotonic()
        self._stage = self._known = ""
        self._least = math.inf
        self._timer: threading.Timer | None = None
        self.reserve(0)  # reading a model counts as time, too

    @property
    def stopped(self) -> bool:
        """Whether the run should end."""
        return bool(self.flag[0])

    def stop(self) -> None:
        """Ask the run to end, from any thread."""
        self.flag[0] = 1

    def reserve(self, operators: int) -> None:
        """Reserve the time that a plan of ``operators`` operators needs after its search."""
        if self._within_s is not None:
            kept = self._within_s * _RESERVE + operators * _RESERVE_PER_OPERATOR_S
            self.close()
            left = self._began + self._within_s - kept - time.monotonic()
            self._timer = threading.Timer(max(0.0, left), self.stop)
            self._timer.daemon = True
            self._timer.start()

    def close(self) -> None:
        """Cancel the deadline."""
        if self._timer is not None:
            self._timer.cancel()

    def stage(self, text: str) -> None:
        """Show the current stage."""
        self._stage = text
        self._say()

    def detail(self, text: str) -> None:
        """Show the progress of the stage."""
        self._say(f", {text}")

    def compiling(self, under_way: bool) -> None:
        """Show that the stage waits for a compilation, or waits no longer."""
        if under_way:
            self.tell(COMPILING)
        else:
            self._say()

    def best(self, avoidable_bytes: int, bound_bytes: int, *, placed: bool = True) -> None:
        """Show a plan's avoidable bytes and the bound of its graph, unless a better plan is known.

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
    """Return the current run's watch, or one without observers."""
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
