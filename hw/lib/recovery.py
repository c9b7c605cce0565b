"""The end of a launch: by the engine's ``done``, or forced after a memory error."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.bus_guard import BusGuard


class Recovery(wiring.Component):
    """Ends launches, and clears the engine after a memory error.

    ``ports``: memory ports, at least 1, each behind a `hw.lib.bus_guard.BusGuard`.

    Behaviour
    ---------
    ``done`` follows ``engine_done`` by `LATENCY` cycles, when an error of the last answer is known.  After an
    error the ports are held.  When all are idle, the engine is cleared for `CLEAR_CYCLES`.  After as many
    cycles again ``done`` follows.  An error between launches has no effect.

    Example
    -------
    >>> recovery = Recovery(ports=3)
    >>> recovery.error.shape(), Recovery.LATENCY
    (unsigned(3), 5)
    """

    #: Cycles from ``engine_done`` to ``done``: the guard's error latency, a register for distant ports, the
    #: OR of all errors, and ``done``.
    LATENCY: ClassVar = BusGuard.ERROR_LATENCY + 3
    #: More than the registers in the path of the reset, from the kernel to the innermost cell.
    CLEAR_CYCLES: ClassVar = 32

    def __init__(self, *, ports: int) -> None:
        #: ``start``: one-cycle pulse: a launch begins, after the last ``done``.
        #: ``engine_done``: one-cycle pulse from the engine.
        pulses = {name: In(1) for name in ("start", "engine_done")}
        #: ``error``, ``idle``: from the guards.
        vectors = {name: In(ports) for name in ("error", "idle")}
        #: ``hold``: to the guards.
        #: ``clear``: resets the engine.
        #: ``done``: one-cycle pulse: the launch has ended.
        #: ``failed``: an error since ``start``.
        outputs = {name: Out(1) for name in ("hold", "clear", "done", "failed")}
        super().__init__(pulses | vectors | outputs)

    def elaborate(self, platform: Any) -> Module:
        """Delay ``engine_done``, and time the steps after an error."""
        m = Module()
        errors = Signal.like(self.error)
        idle = Signal.like(self.idle)
        any_error = Signal()
        all_idle = Signal()
        m.d.sync += [
            errors.eq(self.error),
            idle.eq(self.idle),
            any_error.eq(errors.any()),
            all_idle.eq(idle.all()),
        ]

        running = Signal()
        ends = Signal(self.LATENCY - 1)
        count = Signal(range(2 * self.CLEAR_CYCLES))
        held = self.hold | any_error
        m.d.sync += [ends.eq(Cat(self.engine_done & ~held, ends)), self.done.eq(0)]
        with m.If(self.hold):
            with m.If(all_idle | count.any()):
                m.d.sync += count.eq(count + 1)
            with m.If(count.all()):
                m.d.sync += [self.hold.eq(0), self.done.eq(1), running.eq(0)]
        with m.Elif(running & any_error):
            m.d.sync += [self.hold.eq(1), self.failed.eq(1), ends.eq(0)]
        with m.Elif(ends[-1]):
            m.d.sync += [self.done.eq(1), running.eq(0)]
        with m.If(self.start):
            m.d.sync += [running.eq(1), self.failed.eq(0)]
        m.d.sync += self.clear.eq(count.any() & ~count[-1])
        return m
