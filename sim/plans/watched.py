"""Planning with a progress line, which the user can stop early."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from hw.scheduler.compiled import reported_compiling
from hw.scheduler.planner.watch import Watch
from sim.host.background import in_background
from sim.host.progress import ProgressLine

Result = TypeVar("Result")

#: Seconds between updates of the progress line.
_GLANCE_S = 0.25


def watched_work(
    title: str, work: Callable[[Watch], Result], within_s: float | None = None
) -> tuple[Result, bool, float]:
    """Do long work that obeys its watch; return its result, whether it was interrupted, and compile seconds.

    The work runs in a thread, so that the waiting thread receives an interrupt (Ctrl-C) even while compiled
    code runs. The first interrupt stops the watch; the second is raised.
    """
    status = ["beginning"]
    watch = Watch(partial(status.__setitem__, 0), within_s)
    interrupted = False
    with reported_compiling(watch.compiling) as compiling, ProgressLine(title) as activity:
        future = in_background(partial(work, watch))
        while True:
            try:
                try:
                    return future.result(timeout=_GLANCE_S), interrupted, compiling.seconds
                except TimeoutError:
                    if future.done():
                        raise
                    activity.update("ending with the best so far" if interrupted else status[0])
            except KeyboardInterrupt:  # while it prints, too
                if interrupted:
                    raise
                interrupted = True
                watch.stop()
