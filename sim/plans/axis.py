"""What the pictures of plans share: axes of bytes, lists of names, the colours of traffic."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from sim.plans.facts import sized
from sim.report.charts import FAINT

AVOIDABLE_READ, AVOIDABLE_WRITE = "#e07b39", "#b3362f"
#: Names in a hover text before the rest is counted.
_LISTED = 6


def listed(names: Sequence[str]) -> str:
    """Name the first few, and count the rest."""
    shown = ", ".join(escape(name) for name in names[:_LISTED])
    return shown + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def byte_axis(most: float, *, both_ways: bool = False) -> dict[str, object]:
    """Give an axis whose ticks are round numbers of KiB or MiB, at most eight of them to one side."""
    step = 2 ** max(0, math.ceil(math.log2(max(most, 1) / 8)))
    ticks = [step * number for number in range(int(most // step) + 1)]
    if both_ways:
        ticks = [-tick for tick in ticks[:0:-1]] + ticks
        ticks = [tick for tick in ticks if tick % (4 * step) == 0]
    return {
        "tickmode": "array",
        "tickvals": ticks,
        "ticktext": [sized(abs(tick)) if tick else "0" for tick in ticks],
        "gridcolor": FAINT,
    }


def step_axis(steps: int) -> dict[str, object]:
    """Give an axis of steps that is never divided further."""
    return {"tickformat": "d", "title": "step"} | ({"dtick": 1} if steps <= 24 else {})
