"""Step counter of the stages that take a few lanes of a row in each cycle."""

from typing import Any

from amaranth.hdl import Module, Signal, Value


def count_steps(m: Module, name: str, start: Value, last: Value, control: Any) -> Value:
    """Drive ``control.valid`` and ``control.step`` from the cycle after ``start`` on.

    ``start``: begins at step 0; not before the last step of the steps before. ``last``: the last step,
    constant from the cycle after ``start`` to that step. ``control``: a view with ``valid`` and ``step``.
    The returned value is up in the cycle of the last step.

    >>> from amaranth.lib import data
    >>> m, control = Module(), Signal(data.StructLayout({"valid": 1, "step": 4}))
    >>> count_steps(m, "merge", Signal(), Signal(4), control)
    (sig merge_ends)
    """
    running = Signal(name=f"{name}_running")
    step = Signal(control.step.shape(), name=f"{name}_step")
    ends = Signal(name=f"{name}_ends")
    m.d.comb += [ends.eq(running & (step == last)), control.valid.eq(running), control.step.eq(step)]
    with m.If(start):
        m.d.sync += [running.eq(1), step.eq(0)]
    with m.Elif(running):
        m.d.sync += [running.eq(~ends), step.eq(step + 1)]
    return ends
