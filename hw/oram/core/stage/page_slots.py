"""Free slots of a page once the operation's own item has left."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.oram.config import OramConfig
from hw.oram.core.bits import count_before
from hw.oram.core.stage.schedule import StageSchedule


class PageSlots(wiring.Component):
    """Removes the own item and counts the free slots.

    Each output is constant until the next page's.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        slots = config.slots
        count = range(slots + 1)
        super().__init__(
            {
                #: ``bitmap`` and ``match`` of a page are valid; with ``search`` the own item leaves it.
                "start": In(1),
                "search": In(1),
                "bitmap": In(slots),
                "match": In(slots),
                #: ``own``, ``kept``: a cycle later: the slot that it leaves, and the slots that stay in use.
                "own": Out(slots),
                "kept": Out(slots),
                #: ``free``, ``before``: `StageSchedule.count_cycles` later: free slots, and those below each
                #: slot.
                "free": Out(count),
                "before": Out(data.ArrayLayout(count, slots)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Counts are taken from the page's own registers, which are constant as long."""
        m = Module()
        slots, schedule = self._config.slots, StageSchedule(self._config)
        own = Signal(slots, reset_less=True)
        kept = Signal(slots, reset_less=True)
        m.d.comb += [self.own.eq(own), self.kept.eq(kept)]
        leaves = self.bitmap & self.match & self.search.replicate(slots)
        with m.If(self.start):
            m.d.sync += [own.eq(leaves), kept.eq(self.bitmap & ~leaves)]
        counts = count_before(m, "free", ~kept, cycles=schedule.count_cycles - 1)
        *before, free = counts
        for name, out, value in [
            ("free", self.free, free),
            *((f"before_{at}", self.before[at], value) for at, value in enumerate(before)),
        ]:
            m.d.comb += out.eq(delay(m, f"{name}_counted", value, 1, reset=False))
        return m
