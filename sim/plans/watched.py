"""Planning that someone waits for: a line that says how far it is, and an end that comes when asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from hw.scheduler.compiled import reported_compiling
from hw.scheduler.planner.watch import Watch
from sim.host.background import in_background
from sim.host.progress import Activity

Result = TypeVar("Result")

#: Seconds between two looks at how far it is.
_GLANCE_S = 0.25


def watched_work(
    title: str, work: Callable[[Watch], Result], within_s: float | None = None
) -> tuple[Result, bool, float]:
    """Do work that may take long and heeds its watch; give its result, whether it was interrupted, and the
    seconds in it that searches were compiled.

    The work is done beside the thread that waits, which so hears of an interrupt (Ctrl-C) even while compiled
    code runs: a first one stops the watch, a second one is raised as ever.
    """
    told = ["beginning"]
    watch = Watch(partial(told.__setitem__, 0), within_s)
    interrupted = False
    with reported_compiling(watch.compiling) as compiling, Activity(title) as activity:
        future = in_background(partial(work, watch))
        while True:
            try:
                try:
                    return future.result(timeout=_GLANCE_S), interrupted, compiling.seconds
                except TimeoutError:
                    if future.done():
                        raise
                    activity.update("ending with the best so far" if interrupted else told[0])
            except KeyboardInterrupt:  # while it prints, too
                if interrupted:
                    raise
                interrupted = True
                watch.stop()
