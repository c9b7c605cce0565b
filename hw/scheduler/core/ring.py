"""Flow control of a ring: counts of words written, available and released."""

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class RingWriter(wiring.Signature):
    """The end that fills a ring, seen from the writer."""

    def __init__(self, size_bits: int) -> None:
        super().__init__(
            {
                "written": Out(1),  #: A word is written in this cycle.
                #: Words written and not released.  A word may be written while this is less than the ring.
                "level": In(size_bits),
            }
        )


class RingReader(wiring.Signature):
    """The end that empties a ring, seen from the reader."""

    def __init__(self) -> None:
        super().__init__(
            {
                "available": In(1),  #: A word was written and not yet acquired.
                #: The first read of the next word; only while ``available``.
                "acquired": Out(1),
                #: The oldest acquired word will not be read again; in the cycle of its acquisition or later.
                "released": Out(1),
            }
        )


class Ring(wiring.Component):
    """Counts the words in a ring.

    ``size_bits``: bits of the size of the largest ring.

    Behaviour
    ---------
    An event shows at the other end in the next cycle.  Writes and releases count at the grant of the bank,
    and every access reaches its bank a fixed latency after its grant.  So a read granted a cycle after the
    write sees the word, and a write granted a cycle after the release never overtakes the last read.

    Several pieces may pass in turn.  Words left of the previous piece count too: they can delay the next one,
    but never let it in too early.

    Why
    ---
    Ring sizes differ from step to step; the counts do not depend on them.  Acquiring and releasing are two
    events, so that an operator with a window (rows of a convolution) can read a word several times.
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
