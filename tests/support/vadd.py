"""The example `examples.vadd` as an engine like any other, for tests that need a small one."""

from __future__ import annotations

import pytest

from hw.registry import ENGINES


def register_vadd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the line of the registry for the length of a test."""
    monkeypatch.setitem(ENGINES, "vadd", "examples.vadd.engine:VaddEngine")
