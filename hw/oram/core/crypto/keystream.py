"""The keystream of pages, computed ahead (SP 800-38D, sections 6.5 and 7.1)."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.place import Placer
from hw.oram.core.crypto.aes_lane import KEYS_LAYOUT, AesLane
from hw.oram.core.crypto.config import PageShape
from hw.oram.core.layouts import seal_layout


class Keystream(wiring.Component):
    """Computes the keystream of each requested page.

    Behaviour
    ---------
    A request takes one cycle for each beat of a page. Its first beat is valid `LATENCY` cycles after its
    begin. At most `AHEAD` beats wait for their use; requests wait for room.
    """

    #: Beats in the queue, enough for the lanes to run without pause.
    AHEAD: ClassVar = 32
    LATENCY: ClassVar = AesLane.LATENCY + Fifo.LATENCY

    def __init__(self, shape: PageShape, placer: Placer) -> None:
        self._shape = shape
        self._placer = placer
        super().__init__(
            {
                "round_keys": In(KEYS_LAYOUT),  #: Constant while a page is in flight.
                #: Page and version: the initialization vector has 6 bytes of each, the lowest first.
                "request": In(stream.Signature(seal_layout())),
                #: Block 0 of a page masks its tag, block s its slot s.
                "o": Out(stream.Signature(shape.beat_bits)),
                #: Pulse: the keystream of one more page is valid from the next cycle on. One beat a cycle
                #: follows while beats are taken or the queue has room.
                "arrived": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A beat enters the lanes when the queue at their end has room for it."""
        m = Module()
        shape, lanes = self._shape, self._shape.lanes
        m.submodules.ahead = ahead = Fifo(shape.beat_bits, depth=self.AHEAD)
        connect(m, ahead.o, flipped(self.o))
        beat = Signal(range(shape.beats))
        room = Signal(range(self.AHEAD + 1), init=self.AHEAD)
        begin = Signal()
        taken = Signal()
        is_last = Signal()
        m.d.comb += [
            is_last.eq(beat == shape.beats - 1),
            begin.eq(self.request.valid & (room != 0)),
            self.request.ready.eq(is_last & (room != 0)),
            taken.eq(ahead.o.valid & ahead.o.ready),
        ]
        m.d.sync += room.eq(room + taken - begin)
        with m.If(begin):
            m.d.sync += beat.eq(beat + 1)
            with m.If(is_last):
                m.d.sync += beat.eq(0)
        blocks = []
        for n in range(lanes):
            cell = self._placer.place(m, f"lane_{n}", "aes_lane", lambda: AesLane(self._placer))
            counter = Signal(16, name=f"counter_{n}")
            m.d.comb += [
                counter.eq(beat * lanes + n + 1),
                cell.i.eq(Cat(self.request.payload, _big_endian(counter))),
                cell.round_keys.eq(self.round_keys),
            ]
            blocks.append(cell.o)
        m.d.comb += [
            ahead.i.valid.eq(delay(m, "begun", begin, AesLane.LATENCY)),
            ahead.i.payload.eq(Cat(blocks)),
            self.arrived.eq(delay(m, "first", begin & (beat == 0), AesLane.LATENCY)),
        ]
        return m


def _big_endian(counter: Value) -> Value:
    """Return a block's counter, 4 bytes with the highest first; two are zero."""
    return Cat(Const(0, 16), counter[8:], counter[:8])
