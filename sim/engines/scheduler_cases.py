"""The scheduler engine's regression."""

from __future__ import annotations

from collections.abc import Iterator

from sim.adapter import Case


def scheduler_cases() -> Iterator[Case]:
    yield from ()
