"""Logit buffer: holds the logits of a tile until its maximum is known, and updates the running maximum."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import (
    LOGIT_BITS,
    LOGIT_FRACTION_BITS,
    MAXIMUM_BITS,
    RESCALE_BITS,
    AttentionConfig,
)
from hw.lib.arithmetic.fixed import saturate
from hw.lib.delay import payload_register
from hw.lib.memory import ports, uninitialised

#: Tiles, complete or not, in the buffer at a time.
LOGIT_TILES = 4


class LogitWrite(data.StructLayout):
    """Control of a logit's write to the buffer."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "valid": 1,  #: A logit is written.
                "slot": range(LOGIT_TILES),  #: Number of its tile, modulo `LOGIT_TILES`.
                "entry": range(config.logit_entries),  #: Its entry.
                #: ``first``, ``last``: it is the first, the last of its tile.
                "first": 1,
                "last": 1,
                "opens": 1,  #: Its tile is the first of the query tile: earlier maxima do not count.
            }
        )


class LogitRead(data.StructLayout):
    """Control of a logit's read from the buffer."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "valid": 1,  #: A logit is read.
                #: ``slot``, ``entry``: as written.
                "slot": range(LOGIT_TILES),
                "entry": range(config.logit_entries),
                #: ``first``, ``last``: it is the first, the last of its tile.
                "first": 1,
                "last": 1,
            }
        )


class LogitBuffer(wiring.Component):
    """Holds the logits of a row until the maximum of their tile is known.

    Behaviour
    ---------
    A tile may be read from `LATENCY` cycles after its last logit was written.  An entry may be overwritten
    from one cycle after its read; the read of a tile's first logit also reads the slot's maximum.  A logit
    may be read more than once.

    Why
    ---
    A hidden key stands for the smallest logit, whose M is -2048, so no other is below.  O and l of a row that
    sees no key are 0 whatever its M, so the maximum needs no valid bit.

    Tiles follow each other in a ring, not in two halves of the buffer.  So a short tile takes only the room
    of its logits, and keys continue behind it.
    """

    #: Cycles from the last write of a tile to its first read.
    LATENCY = 3

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(signed(LOGIT_BITS)),  #: Logit, described by ``write``.
                "i_visible": In(1),  #: The row sees its key.
                "write": In(LogitWrite(config)),
                "read": In(LogitRead(config)),
                #: ``o``, ``o_visible``: the logit of the read one cycle ago.
                "o": Out(signed(LOGIT_BITS)),
                "o_visible": Out(1),
                #: M, the running maximum including the tile of ``o``; beside ``o``.
                "maximum": Out(signed(MAXIMUM_BITS)),
                #: Rise of M with the tile whose last logit was read most recently, at most 63; from 2 cycles
                #: after that read.
                "rise": Out(RESCALE_BITS),
                "reached": Out(signed(MAXIMUM_BITS)),  #: M with that tile; with several streams only.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        m.submodules.logits = logits = uninitialised(
            width=LOGIT_BITS + 1, depth=self._config.logit_entries, ram_style="distributed"
        )
        put, get = ports(logits)
        m.d.comb += [
            put.en.eq(self.write.valid),
            put.addr.eq(self.write.entry),
            put.data.eq(Cat(self.i, self.i_visible)),
            get.en.eq(self.read.valid),
            get.addr.eq(self.read.entry),
            self.o.eq(get.data[:LOGIT_BITS].as_signed()),
            self.o_visible.eq(get.data[LOGIT_BITS]),
        ]

        # While a tile is written: its largest logit.
        seen = Signal(signed(LOGIT_BITS))
        largest = Signal(signed(LOGIT_BITS), reset_less=True)
        m.d.comb += seen.eq(Mux(self.i_visible, self.i, -(2 ** (LOGIT_BITS - 1))))
        with m.If(self.write.valid & (self.write.first | (seen > largest))):
            m.d.sync += largest.eq(seen)

        # A cycle after its last logit the maximum is rounded up.  A cycle later the running maximum is
        # updated, and kept by slot until the tile is read.
        ended = Signal()
        complete = Signal()
        opened = Signal(reset_less=True)
        opens = Signal(reset_less=True)
        written = Signal(range(LOGIT_TILES), reset_less=True)
        slot = Signal(range(LOGIT_TILES), reset_less=True)
        peak = Signal(signed(MAXIMUM_BITS), reset_less=True)
        m.d.sync += [
            ended.eq(self.write.valid & self.write.last),
            opened.eq(self.write.opens),
            written.eq(self.write.slot),
            complete.eq(ended),
            opens.eq(opened),
            slot.eq(written),
            peak.eq((largest + (2**LOGIT_FRACTION_BITS - 1)) >> LOGIT_FRACTION_BITS),
        ]
        running = Signal(signed(MAXIMUM_BITS), reset_less=True)
        slots = range(LOGIT_TILES)
        maxima = Array(Signal(signed(MAXIMUM_BITS), name=f"maximum_{n}", reset_less=True) for n in slots)
        rises = Array(Signal(RESCALE_BITS, name=f"rise_{n}", reset_less=True) for n in slots)
        following = Signal(signed(MAXIMUM_BITS))
        climb = Signal(signed(MAXIMUM_BITS + 1))
        m.d.comb += [
            climb.eq(peak - running),
            following.eq(Mux(opens | (climb > 0), peak, running)),
        ]
        with m.If(complete):
            m.d.sync += [
                running.eq(following),
                maxima[slot].eq(following),
                rises[slot].eq(Mux(opens, 0, saturate(climb, RESCALE_BITS))),
            ]

        # While a tile is read.
        rise = Signal(RESCALE_BITS, reset_less=True)
        ending = Signal()
        maximum, last_rise, reached = (
            payload_register(m, getattr(self, name), name=f"{name}_held")
            for name in ("maximum", "rise", "reached")
        )
        with m.If(self.read.valid & self.read.first):
            m.d.sync += [maximum.eq(maxima[self.read.slot]), rise.eq(rises[self.read.slot])]
        m.d.sync += ending.eq(self.read.valid & self.read.last)
        with m.If(ending):
            m.d.sync += last_rise.eq(rise)
            if self._config.streams > 1:
                m.d.sync += reached.eq(maximum)
        return m
