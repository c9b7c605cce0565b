"""Registers of data: delay lines, and payloads without reset."""

from typing import Any

from amaranth.hdl import Module, Signal, Value


def delay(m: Module, name: str, value: Any, cycles: int, *, reset: bool = True) -> Any:
    """Return ``value`` delayed by ``cycles`` cycles.

    ``name``: of the line; its registers are ``name_1``, ``name_2``, ... ``value``: a value or a view, of any
    shape. ``cycles``: at least 0. ``reset``: whether reset clears the registers; valid bits need it, data
    does not.

    >>> m = Module()
    >>> delay(m, "word", Signal(8), 2)
    (sig word_2)
    """
    shape = value.shape() if hasattr(value, "shape") else Value.cast(value).shape()
    for n in range(cycles):
        register = Signal(shape, name=f"{name}_{n + 1}", reset_less=not reset)
        m.d.sync += Value.cast(register).eq(Value.cast(value))
        value = register
    return value


def payload_register(m: Module, payload: Any, *, name: str = "payload_held") -> Any:
    """Return a register without reset that drives ``payload``.

    Reset clears every member of an interface; for data that costs loads of the reset and gains nothing.
    """
    register = Signal.like(payload, name=name, reset_less=True)
    m.d.comb += Value.cast(payload).eq(Value.cast(register))
    return register
