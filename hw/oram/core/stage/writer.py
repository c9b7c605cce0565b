"""Writes of the stage to records in HBM, as beats."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.fifo import Fifo
from hw.oram.config import VERSION_BITS, OramConfig
from hw.oram.core.layouts import HBM_BEAT_BYTES, beat_write_layout
from hw.oram.core.stage.schedule import KEY_BYTES

#: Changes and rows in the queues.
_DEPTH = 64
#: Steps of a change.
_HEADER, _KEY, _VALUE = range(3)


def change_layout(config: OramConfig) -> data.StructLayout:
    """Return a change of a record: of its header, of a slot's key and value, or of both."""
    return data.StructLayout(
        {
            "record": config.record_index_bits,
            #: ``header``, ``with_page``: the bitmap is written; and around it the version and the page's
            #: items.
            "header": 1,
            "with_page": 1,
            "version": VERSION_BITS,
            "bitmap": config.record_slots,
            "page_items": range(config.slots + 1),
            #: ``item``, ``slot``, ``key``: a key and a value are written into this slot; the value's rows are
            #: a stream of their own.
            "item": 1,
            "slot": range(config.record_slots),
            "key": config.key_bits,
        }
    )


def record_write_layout(config: OramConfig) -> data.StructLayout:
    """Return a written beat of a record."""
    return beat_write_layout(
        line_bits=config.record_index_bits, port_bytes=HBM_BEAT_BYTES, line_bytes=config.record_bytes
    )


class Writer(wiring.Component):
    """Turns changes into beats, one a cycle, in order."""

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        super().__init__(
            {
                "change": In(stream.Signature(change_layout(config), always_ready=True)),
                #: Rows of the values, in the same order.
                "row": In(stream.Signature(8 * config.row_bytes, always_ready=True)),
                "o": Out(stream.Signature(record_write_layout(config))),
                "full": Out(1),  #: A pulse: a queue was full, and data is lost.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Header, key, and the value's beats; a row of 64 bytes is two beats."""
        m = Module()
        config = self._config
        m.submodules.changes = changes = Fifo(change_layout(config), depth=_DEPTH)
        m.submodules.rows = rows = Fifo(8 * config.row_bytes, depth=_DEPTH)
        m.submodules.out = out = Fifo(self.o.payload.shape(), depth=2)
        wiring.connect(m, out.o, wiring.flipped(self.o))
        m.d.comb += [
            changes.i.valid.eq(self.change.valid),
            changes.i.payload.eq(self.change.payload),
            rows.i.valid.eq(self.row.valid),
            rows.i.payload.eq(self.row.payload),
        ]
        full = Signal()
        m.d.sync += full.eq((self.change.valid & ~changes.i.ready) | (self.row.valid & ~rows.i.ready))
        m.d.comb += self.full.eq(full)

        change = changes.o.payload
        value_beats = max(1, config.value_bytes // HBM_BEAT_BYTES)
        row_beats = max(1, config.row_bytes // HBM_BEAT_BYTES)
        step = Signal(range(2 + value_beats))
        now = Signal(range(2 + value_beats))
        m.d.comb += now.eq(Mux((step == 0) & ~change.header, _KEY, step))
        part = Signal(range(max(2, value_beats)))
        beat = out.i.payload
        m.d.comb += [
            out.i.valid.eq(changes.o.valid & ((now <= _KEY) | rows.o.valid)),
            beat.line.eq(change.record),
            part.eq(now - _VALUE),
        ]
        value_units = config.record_values_offset // min(config.value_bytes, HBM_BEAT_BYTES)
        with m.If(now == _HEADER):
            words = [Value.cast(word) for word in (change.version, change.bitmap, change.page_items)]
            m.d.comb += [
                beat.data.eq(Cat(word | Const(0, 64) for word in words)),
                beat.strobe.eq(Mux(change.with_page, (1 << 24) - 1, 0xFF << 8)),
            ]
        with m.Elif(now == _KEY):
            _place(m, beat, change.key | Const(0, 8 * KEY_BYTES), HBM_BEAT_BYTES // KEY_BYTES + change.slot)
        with m.Elif(Const(config.value_bytes < HBM_BEAT_BYTES)):
            _place(m, beat, rows.o.payload, value_units + change.slot)
        with m.Else():
            halves = [rows.o.payload.word_select(half, 8 * HBM_BEAT_BYTES) for half in range(row_beats)]
            m.d.comb += [
                beat.beat.eq(value_units + change.slot * value_beats + part),
                beat.data.eq(Mux(part[0], halves[-1], halves[0])),
                beat.strobe.eq(-1),
            ]
        moves = Signal()
        last = Signal()
        m.d.comb += [
            moves.eq(out.i.valid & out.i.ready),
            last.eq(Mux(now == _HEADER, ~change.item, now == _VALUE + value_beats - 1)),
            changes.o.ready.eq(moves & last),
            rows.o.ready.eq(moves & (now > _KEY) & (part % row_beats == row_beats - 1)),
        ]
        with m.If(moves):
            m.d.sync += step.eq(Mux(last, _HEADER, now + 1))
        return m


def _place(m: Module, beat: Any, value: Value, unit: Value) -> None:
    """Place a value shorter than a beat: the ``unit``-th of its size in the record."""
    units = 8 * HBM_BEAT_BYTES // len(value)
    lane = unit[: (units - 1).bit_length()]
    m.d.comb += [
        beat.beat.eq(unit // units),
        beat.data.eq(Cat(value for _ in range(units))),
        beat.strobe.eq(Cat((lane == at).replicate(len(value) // 8) for at in range(units))),
    ]
