"""Erasure of the tables in HBM, in a fixed time."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.oram.config import BUCKET_BYTES, OramConfig
from hw.oram.core.layouts import HBM_BEAT_BYTES

#: Cycles of 16 beats at a port. Refreshes take 105 of 1,170 cycles of 300 MHz, or of 585 above 85 C: the rest
#: would do with 19.5.
_BURST_CYCLES, _BURST_BEATS = 20, 16
#: Cycles of the refreshes and bursts at both ends of the erasure, with a margin.
_EXTRA = 512


def bucket_lines(config: OramConfig) -> int:
    """Return the buckets behind a port."""
    return 2 * config.buckets // config.position_ports


def record_lines(config: OramConfig) -> int:
    """Return the records behind a port; the last line of a port may be none."""
    return -(-config.records // config.record_ports)


def erase_cycles(config: OramConfig) -> int:
    """Return the cycles of an erasure: until earlier writes are answered, then of the longest slice."""
    longest = max(bucket_lines(config) * BUCKET_BYTES, record_lines(config) * config.record_bytes)
    beats = longest // HBM_BEAT_BYTES
    settled = max(config.record_sizes.settle_cycles, config.position.write_cycles)
    return settled + -(-beats * _BURST_CYCLES // _BURST_BEATS) + _EXTRA


class Erase(wiring.Component):
    """Erases all ports' slices, and takes as long whatever HBM does.

    Behaviour
    ---------
    It ends `erase_cycles` after ``start``, and never before all slices are erased. After the last erasure no
    table is written until reset.
    """

    def __init__(self, config: OramConfig) -> None:
        self._cycles = erase_cycles(config)
        super().__init__(
            {
                "start": In(1),  #: Pulse.
                "last": In(1),  #: With ``start``: this erasure, or the one under way, is the last.
                #: ``erase``, ``erased``: those of all ports; see `hw.oram.movers.hbm.line_writer.LineWriter`.
                "erase": Out(1),
                "erased": In(1),
                "busy": Out(1),  #: From ``start`` to the end.
                "late": Out(1),  #: The last erasure took longer than its time.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A counter of the time that is left."""
        m = Module()
        left = Signal(range(self._cycles))
        running = Signal()
        last = Signal()
        over = Signal()
        m.d.sync += [left.eq(left - ~over), over.eq(left <= 1)]
        m.d.comb += self.busy.eq(self.start | running)
        with m.If(running & over):
            with m.If(self.erased):
                m.d.sync += [running.eq(0), self.erase.eq(last)]
            with m.Elif(last):
                m.d.sync += self.late.eq(1)
        with m.If(self.start):
            m.d.sync += [
                running.eq(1),
                self.erase.eq(1),
                last.eq(self.last),
                left.eq(self._cycles - 1),
                over.eq(0),
            ]
        return m
