"""The end of a launch: as the engine says, or after an error of a memory by force."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.bus_guard import BusGuard


class Recovery(wiring.Component):
    """Ends launches, and clears the engine after an error of a memory.

    ``ports``: memory ports, at least 1, each behind a `hw.lib.bus_guard.BusGuard`.

    Behaviour
    ---------
    ``done`` comes `LATENCY` cycles after ``engine_done``, when an error of the last answer would be known.
    After an error the ports are held; when all are idle the engine is cleared for `CLEAR_CYCLES`, as long
    again nothing happens, and then ``done`` comes.  An error between launches is none: nobody waits for what
    was read.
    """

    #: Cycles from ``engine_done`` to ``done``: those of an error at a guard, a register here, as ports are
    #: far, the sum of all, and ``done`` itself.
    LATENCY: ClassVar = BusGuard.ERROR_LATENCY + 3
    #: More than the levels of registers that reset passes, from the kernel's to those of the innermost cell.
    CLEAR_CYCLES: ClassVar = 32

    def __init__(self, *, ports: int) -> None:
        #: ``start``: one-cycle pulse: a launch begins.  Not before the last ``done``.
        #: ``engine_done``: one-cycle pulse of the engine's.
        pulses = {name: In(1) for name in ("start", "engine_done")}
        #: ``error``, ``idle``: of the guards.
        vectors = {name: In(ports) for name in ("error", "idle")}
        #: ``hold``: to the guards.
        #: ``clear``: the engine is to be reset.
        #: ``done``: one-cycle pulse: the launch has ended.
        #: ``failed``: there was an error since ``start``.
        outputs = {name: Out(1) for name in ("hold", "clear", "done", "failed")}
        super().__init__(pulses | vectors | outputs)

    def elaborate(self, platform: Any) -> Module:
        """A delay of ``engine_done``, and a count of what follows an error."""
        m = Module()
        errors, idle = Signal.like(self.error), Signal.like(self.idle)
        any_error, all_idle = Signal(), Signal()
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
