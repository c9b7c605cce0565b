"""The attention engine's regression: which sizes, shapes and memories are co-simulated."""

from __future__ import annotations

from collections.abc import Iterator

from sim.adapter import Case


def attention_cases() -> Iterator[Case]:
    yield from ()
