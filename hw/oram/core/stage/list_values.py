"""Values of a list that are whole beats, in a RAM."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.memory import ports, uninitialised
from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.core.layouts import BEAT_BITS


class ListValues(wiring.Component):
    """Holds the values of one record while those of the next arrive."""

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        super().__init__(
            {
                "record": In(stream.Signature(BEAT_BITS, always_ready=True)),
                "start": In(1),  #: With the last beat: from the next cycle on this record is read.
                "item": In(range(config.record_slots)),
                "row": In(range(max(2, config.value_rows))),
                "data": Out(BEAT_BITS),  #: That row of the item's value, a cycle later.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A half for each of two records."""
        m = Module()
        config = self._config
        first = config.record_values_offset // BEAT_BYTES
        rows = config.record_slots * config.value_rows
        half_rows = 1 << (rows - 1).bit_length()
        index = Signal(range(config.record_beats))
        half = Signal()
        reads = Signal()
        at = Signal(range(half_rows))
        with m.If(self.record.valid):
            m.d.sync += index.eq(index + 1)
            with m.If(index >= first):
                m.d.sync += at.eq(at + 1)
            with m.If(index == config.record_beats - 1):
                m.d.sync += [index.eq(0), at.eq(0), half.eq(~half)]
        with m.If(self.start):
            m.d.sync += reads.eq(half)
        m.submodules.values = values = uninitialised(width=BEAT_BITS, depth=2 * half_rows, ram_style="block")
        write, read = ports(values)
        place = Signal(range(half_rows))
        m.d.comb += [
            place.eq(self.item * config.value_rows + self.row),
            write.addr.eq(Cat(at, half)),
            write.data.eq(self.record.payload),
            write.en.eq(self.record.valid & (index >= first)),
            read.addr.eq(Cat(place, reads)),
            self.data.eq(read.data),
        ]
        return m
