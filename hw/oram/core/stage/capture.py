"""The value of one slot, captured while the beats of a page or record pass."""

from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.memory import ports, uninitialised
from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.core.bits import named, select
from hw.oram.core.layouts import BEAT_BITS

#: Pages or records whose value is held until it is read.
BANKS = 8


class Capture(wiring.Component):
    """Captures one value of each page or record.

    ``slots``, ``beats``, ``values_offset``: of a page or record: its values, its beats, and the first value's
    offset in bytes.
    """

    def __init__(self, config: OramConfig, *, slots: int, beats: int, values_offset: int) -> None:
        self._config = config
        self._slots, self._beats, self._values_offset = slots, beats, values_offset
        super().__init__(
            {
                "i": In(stream.Signature(BEAT_BITS, always_ready=True)),
                "own": In(slots),  #: With each beat: the slot to capture, or none.
                #: ``bank``, ``row``: number of the page or record modulo `BANKS`, and the row of its value.
                "bank": In(range(BANKS)),
                "row": In(range(max(2, config.value_rows))),
                #: That row, a cycle later. A row can be read two cycles after its beat.
                "data": Out(8 * config.row_bytes),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Every page has the same slots in a beat."""
        m = Module()
        config, rows = self._config, self._config.value_rows
        lanes = BEAT_BYTES // config.row_bytes
        first = self._values_offset // config.row_bytes
        index = Signal(range(self._beats))
        bank = Signal(range(BANKS))
        with m.If(self.i.valid):
            m.d.sync += index.eq(index + 1)
            with m.If(index == self._beats - 1):
                m.d.sync += [index.eq(0), bank.eq(bank + 1)]

        def slot_of(beat: int, lane: int) -> int | None:
            value = beat * lanes + lane - first
            return value // rows if 0 <= value < self._slots * rows else None

        places = Array(
            Cat(
                Const(0, 1) if (slot := slot_of(beat, lane)) is None else self.own[slot]
                for lane in range(lanes)
            )
            for beat in range(self._beats)
        )
        here = named(m, "here", places[index])
        row_of = Array(max(0, beat * lanes - first) % rows for beat in range(self._beats))[index]
        row = Signal(8 * config.row_bytes, reset_less=True)
        row_at = Signal.like(self.row, reset_less=True)
        bank_at = Signal.like(bank, reset_less=True)
        found = Signal()
        m.d.sync += [
            row.eq(
                select(
                    here, [self.i.payload.word_select(lane, 8 * config.row_bytes) for lane in range(lanes)]
                )
            ),
            row_at.eq(row_of),
            bank_at.eq(bank),
            found.eq(self.i.valid & here.any()),
        ]
        m.submodules.kept = kept = uninitialised(
            width=8 * config.row_bytes, depth=BANKS * rows, ram_style="distributed"
        )
        write, read = ports(kept)
        m.d.comb += [
            write.addr.eq(bank_at * rows + row_at),
            write.data.eq(row),
            write.en.eq(found),
            read.addr.eq(self.bank * rows + self.row),
            read.en.eq(1),
            self.data.eq(read.data),
        ]
        return m
