"""Designs built in less time: shapes, widths and keys of values are made once, and classes asked directly.

Amaranth makes a shape for each question for a width, and a key for each look-up of a signal.  Its classes of
values are abstract base classes: each question whether an object is a value runs Python.
"""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from typing import Any

from amaranth.hdl import Shape, Signal, Value, _ast
from amaranth.hdl._ast import Concat, Operator, SignalDict, SignalKey, SignalSet, Slice
from amaranth.sim import pysim

#: Attributes of cached facts at Amaranth's objects.
_SHAPE, _KEY, _NUMBER = "_quick_shape", "_quick_key", "_quick_number"


class Plain(type):
    """The metaclass of values: `isinstance` asks no registry."""


def _kept(shape: Callable[[Any], Shape]) -> Callable[[Any], Shape]:
    """Cache the shape of an expression at the expression."""

    def remembered(expression: Any) -> Shape:
        found: Shape | None = expression.__dict__.get(_SHAPE)
        if found is None:
            found = shape(expression)
            setattr(expression, _SHAPE, found)
        return found

    return remembered


def _key(signal: Any) -> SignalKey:
    """Return the key of a signal, the same one each time."""
    found: SignalKey | None = signal.__dict__.get(_KEY)
    if found is None:
        found = SignalKey(signal)
        setattr(signal, _KEY, found)
    return found


def install() -> None:
    """Let Amaranth build designs this way in this process."""
    for kind in (Operator, Concat, Slice, Signal):
        kind.shape = _kept(kind.shape)
    Signal.__len__ = lambda signal: signal._width
    Slice.__len__ = lambda part: part._stop - part._start
    SignalDict._map_key = SignalSet._map_key = staticmethod(_key)
    for kind in vars(_ast).values():
        if type(kind) is ABCMeta and issubclass(kind, Value):
            kind.__class__ = Plain
    numbered = pysim._PyEngineState.get_signal

    def get_signal(state: Any, signal: Any) -> int:
        known: tuple[Any, int] | None = signal.__dict__.get(_NUMBER)
        if known is None or known[0] is not state:
            known = state, numbered(state, signal)
            setattr(signal, _NUMBER, known)
        return known[1]

    pysim._PyEngineState.get_signal = get_signal
