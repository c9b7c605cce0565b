"""Cycle counters: every cycle of a run is counted as busy, as stalled by one named cause, or as idle."""

from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import Module, Signal, Value, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError

#: Bits of every counter: never wraps in the life of a device.
COUNTER_WIDTH = 64


def counter_names(causes: Sequence[str]) -> tuple[str, ...]:
    """Names of the counters, in the order they have in reports: total, busy, stalls by cause, idle."""
    return ("cycles_total", "cycles_busy", *(f"cycles_stall_{cause}" for cause in causes), "cycles_idle")


def count_since(m: Module, start: Value, count: Value) -> Value:
    """Return the growth of ``count`` since ``start``, modulo its range; only reset clears ``count``."""
    before = Signal.like(count, name="count_before")
    with m.If(start):
        m.d.sync += before.eq(count)
    return (count - before)[: len(count)]


class Counters(wiring.Component):
    """Performance counters of a run.

    ``causes``: names of the stall causes, lower-case identifiers, by priority.

    Behaviour
    ---------
    Each cycle adds one to ``cycles_total`` and to one other counter: busy if ``busy``, else the first cause
    whose bit is set, else idle.  So busy + stalls + idle = total in every cycle.  ``cycles_total`` is the
    distance from ``start`` to ``done``.  All inputs are registered: a count shows a cycle late, and a cause
    may end a long path.

    Why
    ---
    Overlapping counters cannot predict the gain from removing a cause; classes with a priority can.  Every
    report checks their sum.

    Example
    -------
    >>> from amaranth.sim import Simulator
    >>> counters = Counters(["memory"])
    >>> async def bench(ctx):
    ...     ctx.set(counters.start, 1)
    ...     await ctx.tick()
    ...     ctx.set(counters.start, 0)
    ...     ctx.set(counters.stall.memory, 1)
    ...     await ctx.tick().repeat(5)
    ...     print({name: ctx.get(counters.counters[name]) for name in counters.names})
    >>> simulator = Simulator(counters)
    >>> simulator.add_clock(1e-6)
    >>> simulator.add_testbench(bench)
    >>> simulator.run()
    {'cycles_total': 4, 'cycles_busy': 0, 'cycles_stall_memory': 4, 'cycles_idle': 0}
    """

    def __init__(self, causes: Sequence[str]) -> None:
        for cause in causes:
            if not (isinstance(cause, str) and cause.isidentifier() and cause.islower()):
                raise InputError("causes", cause, "lower-case identifiers")
            if list(causes).count(cause) > 1:
                raise InputError("causes", cause, "named once each")
        self.causes = tuple(causes)
        self.names = counter_names(causes)
        super().__init__(
            {
                #: One-cycle pulse: clears all counters, which count from the next cycle on.
                "start": In(1),
                "done": In(1),  #: One-cycle pulse in the last cycle counted.
                "busy": In(1),  #: Useful work happens in this cycle.
                #: A bit a cause: it stalls the engine.
                "stall": In(data.StructLayout({cause: unsigned(1) for cause in self.causes})),
                #: Frozen from the second cycle after ``done`` until the one after the next ``start``.
                "counters": Out(data.StructLayout({name: unsigned(COUNTER_WIDTH) for name in self.names})),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        start = Signal()
        done = Signal()
        busy = Signal()
        stall = Signal.like(self.stall)
        m.d.sync += [start.eq(self.start), done.eq(self.done), busy.eq(self.busy), stall.eq(self.stall)]
        running = Signal()

        def count(name: str) -> None:
            m.d.sync += self.counters[name].eq(self.counters[name] + 1)

        with m.If(start):
            m.d.sync += [running.eq(~done), self.counters.as_value().eq(0)]
        with m.Elif(running):
            m.d.sync += running.eq(~done)
            count("cycles_total")
            with m.If(busy):
                count("cycles_busy")
            for cause in self.causes:
                with m.Elif(stall[cause]):
                    count(f"cycles_stall_{cause}")
            with m.Else():
                count("cycles_idle")
        return m


def count_cycles(m: Module, body: Any, *, busy: Value, stall: Mapping[str, Value]) -> None:
    """Add `Counters` to ``m``, which elaborates the ``body`` of a kernel, from its ``start`` to its ``done``.

    ``stall``: by cause, in order of priority.
    """
    m.submodules.counters = counters = Counters([*stall])
    m.d.comb += [
        counters.start.eq(body.start),
        counters.done.eq(body.done),
        counters.busy.eq(busy),
        *(counters.stall[cause].eq(value) for cause, value in stall.items()),
        *(body.counters[name].eq(counters.counters[name]) for name in counters.names),
    ]
