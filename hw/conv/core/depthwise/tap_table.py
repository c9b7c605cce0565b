"""The taps of a kernel, step by step."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import MAX_TAPS, ConvConfig
from hw.conv.core.layouts import TapCommand
from hw.lib.memory import ports, uninitialised

#: Bits of the distance of a tap from the first one: 6 times a dilation of up to 63.
_DISTANCE_BITS = 9


class Tap(data.StructLayout):
    """A tap of the kernel: ``y`` and ``x`` from the first tap on, ``i`` and ``j`` from its centre on.

    ``on`` is 0 after the last tap.
    """

    def __init__(self) -> None:
        super().__init__({"y": _DISTANCE_BITS, "x": _DISTANCE_BITS, "i": signed(4), "j": signed(4), "on": 1})


class TapTable(wiring.Component):
    """The taps of each step, counted once at a layer's start.

    Behaviour
    ---------
    A tap a cycle is written: tap k into LUTRAM k mod T, or all taps into the first where samples leave.
    """

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse.
                "job": In(TapCommand(config)),  #: Constant from ``start`` on.
                #: The table is of this layer; low for a cycle a tap after ``start``.
                "ready": Out(1),
                "step": In(range(MAX_TAPS)),  #: Address of a look-up.
                "taps": Out(Tap()).array(config.taps),  #: A cycle after ``step``.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Step through the kernel by counters; divisions would take longer."""
        m = Module()
        job, lanes = self.job, self._config.taps
        tap = Signal(Tap())
        row = Signal(3)
        column = Signal(3)
        step = Signal(range(MAX_TAPS + 1))
        lane = Signal(range(max(2, lanes)))
        filled = self.ready
        column_last = column == job.kernel_columns - 1
        all_taps = Signal()
        end = Signal()
        next_lane = Signal.like(lane)
        next_step = Signal.like(step)
        one = job.samples | (lanes == 1)
        m.d.comb += [
            end.eq((lane == lanes - 1) | one),
            next_lane.eq(Mux(end, 0, lane + 1)),
            next_step.eq(step + end),
            tap.i.eq(row - (job.kernel_rows >> 1)),
            tap.j.eq(column - (job.kernel_columns >> 1)),
            tap.on.eq(~all_taps),
        ]
        y = Signal.like(tap.y)
        x = Signal.like(tap.x)
        m.d.comb += [tap.y.eq(y), tap.x.eq(x)]
        with m.If(self.start):
            m.d.sync += [row.eq(0), column.eq(0), y.eq(0), x.eq(0), step.eq(0), lane.eq(0)]
            m.d.sync += [filled.eq(0), all_taps.eq(0)]
        with m.Elif(~filled):
            m.d.sync += [step.eq(next_step), lane.eq(next_lane), filled.eq(next_step == job.steps)]
            m.d.sync += [column.eq(column + 1), x.eq(x + job.dilation_columns)]
            with m.If(column_last):
                m.d.sync += [column.eq(0), x.eq(0), row.eq(row + 1), y.eq(y + job.dilation_rows)]
                with m.If(row == job.kernel_rows - 1):
                    m.d.sync += all_taps.eq(1)
        for n in range(lanes):
            ram = uninitialised(width=data.Layout.cast(Tap()).size, depth=MAX_TAPS, ram_style="distributed")
            m.submodules[f"taps_{n}"] = ram
            write, read = ports(ram, domain="comb")
            m.d.comb += [
                write.en.eq(~filled & ((lane == n) | (one if n else 0))),
                write.addr.eq(step),
                write.data.eq(tap.as_value()),
            ]
            if n:
                # Where samples leave, only the first tap of a step is used.
                off = Signal(Tap(), name=f"off_{n}")
                m.d.comb += [off.eq(tap), off.on.eq(tap.on & ~job.samples), write.data.eq(off.as_value())]
            m.d.comb += read.addr.eq(self.step)
            m.d.sync += self.taps[n].as_value().eq(read.data)
        return m
