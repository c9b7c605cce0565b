"""Pages in flight."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.oram.core.touch.credits import Credits


class Scoreboard(wiring.Component):
    """Pages between the issue of their read and the answer to their write, in order.

    ``page_bits``: bits of a page's number.
    """

    #: Cycles from ``page`` to ``blocked``.
    LATENCY: ClassVar = 2

    def __init__(self, *, page_bits: int, pages: int) -> None:
        self._pages = pages
        self._page_bits = page_bits
        super().__init__(
            {
                "insert": In(1),  #: ``page`` is in flight from now on; only while ``room``.
                "page": In(page_bits),  #: The page to insert or to look up.
                "release": In(1),  #: The oldest page is no longer in flight.
                "room": Out(1),  #: A place is free.
                "blocked": Out(1),  #: The value of ``page`` `LATENCY` cycles ago was then in flight.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A ring of pages, each with a comparator."""
        m = Module()
        m.submodules.places = places = Credits(self._pages)
        m.d.comb += [places.take.eq(self.insert), places.give.eq(self.release), self.room.eq(places.some)]
        # One-hot pointers: a write needs no decoder.
        newest, oldest = (Signal(self._pages, name=name, init=1) for name in ("newest", "oldest"))
        with m.If(self.insert):
            m.d.sync += newest.eq(newest.rotate_left(1))
        with m.If(self.release):
            m.d.sync += oldest.eq(oldest.rotate_left(1))
        equal = Signal(self._pages)
        for n in range(self._pages):
            page = Signal(self._page_bits, name=f"page_{n}", reset_less=True)
            held = Signal(name=f"held_{n}")
            with m.If(self.release & oldest[n]):
                m.d.sync += held.eq(0)
            with m.If(self.insert & newest[n]):
                m.d.sync += [held.eq(1), page.eq(self.page)]
            m.d.sync += equal[n].eq(held & (page == self.page))
        m.d.sync += self.blocked.eq(Cat(equal).any())
        return m
