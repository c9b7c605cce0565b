"""Registers of a row's final output, sum and maximum in one stream, until they are combined."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import MAXIMUM_BITS, AttentionConfig
from hw.attention.core.row.merge import FinalLanes
from hw.lib.memory import ports, uninitialised


class FinalRead(data.StructLayout):
    """The lanes to read: ``valid``, ``bank`` (unused with one stream) and ``step``."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"valid": 1, "bank": 1, "step": range(config.merge_steps)})


class Final(data.StructLayout):
    """The final sums of a row in one stream."""

    def __init__(self, config: AttentionConfig) -> None:
        members: dict[str, Any] = {
            "total": config.sum_bits,  #: Sum l.
            "lanes": data.ArrayLayout(signed(config.output_bits), config.merge_lanes),
        }
        if config.streams > 1:
            members["maximum"] = signed(MAXIMUM_BITS)  #: M, the scale of both.
        super().__init__(members)


class Finals(wiring.Component):
    """Keeps the final outputs of one query tile, or of two with several streams."""

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(FinalLanes(config)),
                #: ``total``, ``maximum``: of the row, with the lanes of step 0.
                "total": In(config.sum_bits),
                "maximum": In(signed(MAXIMUM_BITS)),
                "sum_bank": In(1),  #: Bank of the sum and maximum on ``o``.
                "read": In(FinalRead(config)),
                #: Sum and maximum from the cycle after the lanes of step 0, combinational from ``sum_bank``;
                #: with one stream the sum is wired through.  Lanes a cycle after ``read``, until the next
                #: read.
                "o": Out(Final(config)),
            }
        )

    @staticmethod
    def sum_latency(config: AttentionConfig) -> int:
        """Return the cycles from the final sum to ``o``."""
        return config.final_banks - 1

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        steps = config.merge_steps
        m.submodules.lanes = lanes = uninitialised(
            width=config.output_bits * config.merge_lanes,
            depth=config.final_banks << (steps - 1).bit_length() if config.final_banks > 1 else steps,
            ram_style="distributed",
        )
        put, get = ports(lanes)
        m.d.comb += [
            put.en.eq(self.i.valid),
            put.addr.eq(self._address(self.i)),
            put.data.eq(self.i.lanes.as_value()),
            get.en.eq(self.read.valid),
            get.addr.eq(self._address(self.read)),
            self.o.lanes.as_value().eq(get.data),
        ]
        if config.streams == 1:
            m.d.comb += self.o.total.eq(self.total)
            return m
        totals = Array(Signal(config.sum_bits, name=f"total_{n}", reset_less=True) for n in range(2))
        maxima = Array(Signal(signed(MAXIMUM_BITS), name=f"maximum_{n}", reset_less=True) for n in range(2))
        with m.If(self.i.valid & (self.i.step == 0)):
            m.d.sync += [totals[self.i.bank].eq(self.total), maxima[self.i.bank].eq(self.maximum)]
        m.d.comb += [
            self.o.total.eq(Mux(self.sum_bank, totals[1], totals[0])),
            self.o.maximum.eq(Mux(self.sum_bank, maxima[1], maxima[0])),
        ]
        return m

    def _address(self, place: Any) -> Any:
        return place.step if self._config.final_banks == 1 else Cat(place.step, place.bank)
