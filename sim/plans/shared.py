"""What the pictures of plans share: axes of steps, lists of names, the colours of traffic."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

AVOIDABLE_READ, AVOIDABLE_WRITE = "#e07b39", "#b3362f"
#: Names in a hover text before the rest is counted.
_LISTED = 6


def listed(names: Sequence[str]) -> str:
    """Name the first few, and count the rest."""
    shown = ", ".join(escape(name) for name in names[:_LISTED])
    return shown + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")


def step_axis(steps: int) -> dict[str, object]:
    """Give an axis of steps that is never divided further."""
    return {"tickformat": "d", "title": "step"} | ({"dtick": 1} if steps <= 24 else {})
