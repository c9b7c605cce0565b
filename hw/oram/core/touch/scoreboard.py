"""Pages in flight."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import check_power_of_two
from hw.oram.core.bits import encode, equal_words
from hw.oram.core.layouts import NEAREST
from hw.oram.core.touch.credits import Credits


class Scoreboard(wiring.Component):
    """Pages between the issue of their read and the answer to their write, in order.

    ``page_bits``: bits of a page's number. ``pages``: places, a power of two.

    Behaviour
    ---------
    Insertion n takes place n modulo ``pages``. Only the newest place of a page is found. Insertions are at
    least 4 cycles apart.
    """

    #: Cycles from ``page`` to ``found`` and ``place``.
    LATENCY: ClassVar = 2

    def __init__(self, *, page_bits: int, pages: int) -> None:
        check_power_of_two("pages", pages, 2, 1 << 16)
        self._pages = pages
        self._page_bits = page_bits
        super().__init__(
            {
                "insert": In(1),  #: ``page`` is in flight from now on; only while ``room``.
                #: The page to insert or to look up; before ``insert`` for `LATENCY` cycles.
                "page": In(page_bits),
                "release": In(1),  #: The oldest page is no longer in flight.
                "room": Out(1),  #: A place is free.
                #: ``found``, ``place``: the value of ``page`` `LATENCY` cycles ago was then in flight, and
                #: its newest place.
                "found": Out(1),
                "place": Out(range(pages)),
                #: A cycle later: insertions from that one on, or 0 if none is found or more than `NEAREST`.
                "near": Out(range(NEAREST + 1)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A ring of pages, each with a comparator."""
        m = Module()
        m.submodules.places = places = Credits(self._pages)
        m.d.comb += [places.take.eq(self.insert), places.give.eq(self.release), self.room.eq(places.some)]
        # One-hot pointers: a write needs no decoder.
        newest, oldest = (Signal(self._pages, name=name, init=1) for name in ("newest", "oldest"))
        number = Signal(range(self._pages))
        with m.If(self.insert):
            m.d.sync += [newest.eq(newest.rotate_left(1)), number.eq(number + 1)]
        with m.If(self.release):
            m.d.sync += oldest.eq(oldest.rotate_left(1))
        equal = Signal(self._pages)
        held = Signal(self._pages)  # in flight, and the newest place of its page
        pages = [Signal(self._page_bits, name=f"page_{n}", reset_less=True) for n in range(self._pages)]
        m.d.sync += equal.eq(equal_words(m, "same", pages, self.page, held))
        for n, page in enumerate(pages):
            with m.If(self.release & oldest[n] | self.insert & equal[n]):
                m.d.sync += held[n].eq(0)
            with m.If(self.insert & newest[n]):
                m.d.sync += [held[n].eq(1), page.eq(self.page)]
        ago = Signal(range(self._pages))
        m.d.comb += ago.eq(number - self.place)
        m.d.sync += [
            self.found.eq(Cat(equal).any()),
            self.place.eq(encode(equal)),
            self.near.eq(Mux(self.found & (ago <= NEAREST), ago, 0)),
        ]
        return m
