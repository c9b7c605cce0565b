"""Visits of all places of the log: to forget their marks, or to send their changes to HBM."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.oram.config import OramConfig
from hw.oram.core.position.log import BucketLog
from hw.oram.core.position.lookahead import place_bits


class Sweep(wiring.Component):
    """Names all places in order.

    Behaviour
    ---------
    A place takes `BucketLog.SPACING` cycles, and longer until ``ready``.
    """

    #: Cycles from ``flush`` to the last beat at its queue's output, without those of the places.
    _AROUND: ClassVar = 4 + BucketLog.LATENCY + BucketLog.SPACING

    @staticmethod
    def cycles(config: OramConfig) -> int:
        """Return the maximum cycles from ``flush`` until all beats have left, if they are taken at once."""
        return BucketLog.SPACING * config.position.log + Sweep._AROUND

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        super().__init__(
            {
                #: Pulses: a sweep begins; after ``clear`` changes are discarded.
                "clear": In(1),
                "flush": In(1),
                "busy": Out(1),  #: From the next cycle on.
                "discard": Out(1),  #: With ``busy``.
                "ready": In(1),  #: The tables take a place.
                "place": Out(place_bits(config)),  #: From the cycle before ``leave`` on, for three cycles.
                "leave": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A counter of places, and the cycles of one."""
        m = Module()
        phase = Signal(range(BucketLog.SPACING))
        m.d.comb += self.leave.eq(self.busy & (phase == 1))
        with m.If(self.busy & ((phase != 0) | self.ready)):
            m.d.sync += phase.eq(phase + 1)  # wraps: a power of two
        with m.If(phase == BucketLog.SPACING - 1):
            m.d.sync += self.place.eq(self.place + 1)
            with m.If(self.place == self._config.position.log - 1):
                m.d.sync += [self.place.eq(0), self.busy.eq(0)]
        with m.If(self.clear | self.flush):
            m.d.sync += [self.busy.eq(1), self.discard.eq(self.clear)]
        return m
