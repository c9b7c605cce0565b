"""Flow control of a ring: who may write the next word, who may read it."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class RingWriter(wiring.Signature):
    """The end that fills a ring, seen from there."""

    def __init__(self, size_bits: int) -> None:
        super().__init__(
            {
                "written": Out(1),  #: A word is written in this cycle.
                #: Words written and not released.  A word may be written while this is less than the ring.
                "level": In(size_bits),
            }
        )


class RingReader(wiring.Signature):
    """The end that empties a ring, seen from there."""

    def __init__(self) -> None:
        super().__init__(
            {
                "available": In(1),  #: There is a word that was written and not acquired.
                #: The next word is taken note of: its first read; only while ``available``.
                "acquired": Out(1),
                #: The oldest acquired word will not be read again; at the earliest with its acquisition.
                "released": Out(1),
            }
        )


class Ring(wiring.Component):
    """Counts the words in a ring.

    ``size_bits``: bits of the size of the largest ring.

    Behaviour
    ---------
    An event shows at the other end in the next cycle.  Written and released count at the grant of the bank,
    and every access reaches its bank equally long after its grant: so a word that is read at the earliest in
    the cycle after its write finds it there, and one that is written at the earliest in the cycle after the
    release of its place never overtakes the last read.

    Several pieces may pass one after the other.  Words of the one before count as well, so the next one may
    be held back a little while they leave; nothing ever goes in too early.

    Why
    ---
    The sizes of rings differ from step to step; the counts do not depend on them.  To acquire and to release
    are two events, so that an operator with a window (rows of a convolution) can read a word several times.
    """

    def __init__(self, size_bits: int) -> None:
        self._size_bits = size_bits
        super().__init__({"writer": In(RingWriter(size_bits)), "reader": In(RingReader())})

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        ready = Signal(self._size_bits)  # written, not acquired
        written, acquired = self.writer.written, self.reader.acquired
        m.d.sync += self.writer.level.eq(self.writer.level + written - self.reader.released)
        with m.If(written & ~acquired):
            m.d.sync += [ready.eq(ready + 1), self.reader.available.eq(1)]
        with m.If(acquired & ~written):
            m.d.sync += [ready.eq(ready - 1), self.reader.available.eq(ready != 1)]
        return m
