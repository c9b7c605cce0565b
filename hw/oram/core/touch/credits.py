"""Credits: a counter, and whether one is available."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Credits(wiring.Component):
    """Counts credits.

    ``limit``: maximum number of credits. ``full``: initially all are available; otherwise none.
    """

    def __init__(self, limit: int, *, full: bool = True) -> None:
        self.limit = limit
        super().__init__(
            {
                "take": In(1),  #: Takes a credit; only while ``some``.
                "give": In(1),  #: Puts a credit back; the caller never exceeds the limit.
                #: A credit is available, as of the previous cycle: a flip-flop.
                "some": Out(1, init=int(full)),
            }
        )
        # A member for proofs.
        self.count = Signal(range(limit + 1), init=limit if full else 0)

    def elaborate(self, platform: Any) -> Module:
        """Register ``some`` beside the count: a comparison would begin long paths."""
        m = Module()
        with m.If(self.give & ~self.take):
            m.d.sync += [self.count.eq(self.count + 1), self.some.eq(1)]
        with m.If(self.take & ~self.give):
            m.d.sync += [self.count.eq(self.count - 1), self.some.eq(self.count != 1)]
        return m
