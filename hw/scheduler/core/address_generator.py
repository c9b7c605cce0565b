"""Addresses of the words of a piece of the scratchpad, whole or a ring."""

from amaranth.hdl import Module, ShapeLike, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import piece_layout, place_layout


class AddressGenerator(wiring.Component):
    """Generates the address of each word of a piece, whole or in a ring.

    ``tag``: shape of the tag that accompanies each word.

    Behaviour
    ---------
    Latency 1 cycle, one word a cycle, without gaps between pieces; ``i.ready`` depends on ``o.ready``.
    Counts are compared a cycle ahead, because ``o.ready`` arrives late in the cycle.
    """

    def __init__(self, config: SchedulerConfig, tag: ShapeLike) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(piece_layout(config, tag))),  #: ``words`` is at least 1.
                #: Word ``k`` of a piece lies at ``address + k``, or ``address + k % ring``.
                "o": Out(stream.Signature(place_layout(config, tag))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        place, piece = self.o.payload, self.i.payload
        first = Signal(self._config.address_bits)
        left = Signal(self._config.size_bits)  # words after this one
        # Words after this one until the ring wraps, and whether it wraps after this one.  Without a ring the
        # count underflows to more words than a piece can have.
        turn = Signal(self._config.size_bits)
        wraps = Signal()
        m.d.comb += self.i.ready.eq(~self.o.valid | (self.o.ready & place.last))
        with m.If(self.i.ready):
            m.d.sync += [
                self.o.valid.eq(self.i.valid),
                place.address.eq(piece.address),
                place.last.eq(piece.words == 1),
                place.ring.eq(piece.ring),
                place.tag.eq(piece.tag),
                first.eq(piece.address),
                left.eq(piece.words - 1),
                turn.eq(piece.ring - 1),
                wraps.eq(piece.ring == 1),
            ]
        with m.Elif(self.o.ready):
            m.d.sync += [left.eq(left - 1), place.last.eq(left == 1)]
            with m.If(wraps):
                m.d.sync += [place.address.eq(first), turn.eq(place.ring - 1), wraps.eq(place.ring == 1)]
            with m.Else():
                m.d.sync += [place.address.eq(place.address + 1), turn.eq(turn - 1), wraps.eq(turn == 1)]
        return m
