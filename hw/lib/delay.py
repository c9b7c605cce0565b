"""Registers of data: delay lines, and payloads that reset need not reach."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal, Value


def delay(m: Module, name: str, value: Any, cycles: int, *, reset: bool = True) -> Any:
    """Return ``value`` as it was ``cycles`` cycles ago.

    ``name``: of the line; its registers are ``name_1``, ``name_2``, ... ``value``: a value or a view, of any
    shape. ``cycles``: at least 0. ``reset``: whether the registers are cleared by reset: what says that
    something happens must be, data need not.
    """
    shape = value.shape() if hasattr(value, "shape") else Value.cast(value).shape()
    for n in range(cycles):
        register = Signal(shape, name=f"{name}_{n + 1}", reset_less=not reset)
        m.d.sync += Value.cast(register).eq(Value.cast(value))
        value = register
    return value


def payload_register(m: Module, payload: Any, *, name: str = "payload_held") -> Any:
    """Return a register of the same shape that drives ``payload`` and is not cleared by reset.

    Members of an interface always are: for data that only costs, since a kernel's reset is one net whose
    delay grows with its loads.
    """
    register = Signal.like(payload, name=name, reset_less=True)
    m.d.comb += Value.cast(payload).eq(Value.cast(register))
    return register
