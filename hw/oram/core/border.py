"""Registers at a border of dies: on each side one, and no logic between them."""

from typing import Any

from amaranth.hdl import Module, Signal, Value
from amaranth.lib import stream

#: Cycles of such a register.
BORDER = 1


def at_border(m: Module, name: str, value: Any, *, reset: bool = False) -> Any:
    """Return ``value``, of any shape, `BORDER` cycles later.

    ``name``: of the register. ``reset``: whether reset clears it. Tools must not make it part of a shift
    register, which lies on one die.
    """
    shape = value.shape() if hasattr(value, "shape") else Value.cast(value).shape()
    register = Signal(shape, name=name, reset_less=not reset, attrs={"shreg_extract": "no"})
    m.d.sync += Value.cast(register).eq(Value.cast(value))
    return register


def stream_at_border(m: Module, name: str, source: Any) -> Any:
    """Return a stream that is always ready, `BORDER` cycles later."""
    shape = source.payload.shape() if hasattr(source.payload, "shape") else Value.cast(source.payload).shape()
    held = stream.Signature(shape, always_ready=True).create(path=(name,))
    m.d.comb += [
        held.valid.eq(at_border(m, f"{name}_valid", source.valid, reset=True)),
        Value.cast(held.payload).eq(Value.cast(at_border(m, f"{name}_payload", source.payload))),
    ]
    return held
