"""How many of something there are, and whether there is one."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Credits(wiring.Component):
    """Counts up and down.

    ``limit``: most there can be. ``full``: whether all are there at first; otherwise none.
    """

    def __init__(self, limit: int, *, full: bool = True) -> None:
        self.limit = limit
        super().__init__(
            {
                "take": In(1),  #: One less; only while ``some``.
                "give": In(1),  #: One more; never beyond the limit.
                #: There is one, as of all cycles before this one: a flip-flop.
                "some": Out(1, init=int(full)),
            }
        )
        # Where proofs see it.
        self.count = Signal(range(limit + 1), init=limit if full else 0)

    def elaborate(self, platform: Any) -> Module:
        """Keep beside the number whether it is 0: comparing it would begin long paths."""
        m = Module()
        with m.If(self.give & ~self.take):
            m.d.sync += [self.count.eq(self.count + 1), self.some.eq(1)]
        with m.If(self.take & ~self.give):
            m.d.sync += [self.count.eq(self.count - 1), self.some.eq(self.count != 1)]
        return m
