"""Look-up tables of a layer's steps, filled at its start: taps, and groups of offsets."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import MAX_TAPS, TAP_LAYER_WORDS, ConvConfig
from hw.conv.core.depthwise.tap_table import Tap, TapTable
from hw.conv.core.layouts import TapCommand
from hw.lib.memory import ports, uninitialised


class LayerTables(wiring.Component):
    """The taps of each step, and the first entry of offsets of each slice of a word."""

    #: Cycles from the last entry to ``ready``.
    LATENCY: ClassVar = 2

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        members: dict[str, Any] = {
            "start": In(1),  #: One-cycle pulse.
            "job": In(TapCommand(config)),  #: Constant from ``start`` on.
            #: The tables are of this layer; low for as many cycles after ``start`` as there are taps or
            #: slices.
            "ready": Out(1),
            #: ``step``, ``word``: address of a look-up.
            "step": In(range(MAX_TAPS)),
            "word": In(range(TAP_LAYER_WORDS)),
            "taps": Out(Tap()).array(config.taps),  #: A cycle after ``step``.
            #: First entry of the offsets of the slices of ``word``, a cycle after it.
            "entries": Out(range(config.offset_entries)).array(config.generators),
        }
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Fill LUTRAMs by counters; a division would take longer."""
        m = Module()
        m.submodules.taps = taps = TapTable(self._config)
        m.d.comb += [
            taps.start.eq(self.start),
            taps.job.eq(self.job),
            taps.step.eq(self.step),
            *(self.taps[n].eq(taps.taps[n]) for n in range(self._config.taps)),
        ]
        m.d.sync += self.ready.eq(taps.ready & self._fill_entries(m) & ~self.start)
        return m

    def _fill_entries(self, m: Module) -> Signal:
        """Step through the slices of a pixel: slice s into table s mod G."""
        job, lanes = self.job, self._config.generators
        word = Signal(range(TAP_LAYER_WORDS + 1))
        lane = Signal(range(max(2, lanes)))
        left = Signal.like(job.group_slices)
        entry = Signal(range(self._config.offset_entries + 1))
        filled = Signal()
        end = Signal()
        m.d.comb += end.eq(lane == lanes - 1)
        with m.If(self.start):
            m.d.sync += [word.eq(0), lane.eq(0), entry.eq(0), left.eq(job.group_slices - 1), filled.eq(0)]
        with m.Elif(~filled):
            m.d.sync += [
                lane.eq(Mux(end, 0, lane + 1)),
                word.eq(word + end),
                left.eq(Mux(left == 0, job.group_slices - 1, left - 1)),
                filled.eq(end & (word + 1 == job.fill.words)),
            ]
            with m.If(left == 0):
                m.d.sync += entry.eq(entry + job.steps)
        for n in range(lanes):
            ram = uninitialised(width=len(self.entries[n]), depth=TAP_LAYER_WORDS, ram_style="distributed")
            m.submodules[f"entries_{n}"] = ram
            write, read = ports(ram, domain="comb")
            m.d.comb += [
                read.addr.eq(self.word),
                write.en.eq(~filled & (lane == n)),
                write.addr.eq(word),
                write.data.eq(entry),
            ]
            m.d.sync += self.entries[n].eq(read.data)
        return filled
