"""The tree of resets: what it clears, when, and how much each of its registers does."""

from __future__ import annotations

from collections import Counter

import pytest
from amaranth.hdl import Cat, ClockDomain, Fragment, Module, Signal
from amaranth.hdl._ast import Switch
from amaranth.lib import wiring

from hw.lib.loads import LOADS
from hw.lib.reset import RESET_LEVELS, spread_reset
from tests.support.gateware.streams import simulate

WIDE = 0x1234_5678_9ABC_DEF0_1357_9BDF_0246_8ACE_1122


class Part(wiring.Component):
    """Registers of some widths, each of which counts; half of one is no register."""

    def __init__(self, depth):
        super().__init__({})
        self.wide = Signal(150, init=WIDE)
        self.small = [Signal(5 + n, name=f"small_{n}", init=n) for n in range(20)]
        self.kept = Signal(8, init=3, reset_less=True)
        self.mixed = Signal(8)
        self.inner = Part(depth - 1) if depth else None

    def elaborate(self, platform):
        m = Module()
        m.d.sync += [signal.eq(signal + 1) for signal in (self.wide, *self.small, self.kept)]
        m.d.sync += self.mixed[4:].eq(self.mixed[4:] + 1)
        m.d.comb += self.mixed[:4].eq(self.small[0])
        if self.inner is not None:
            m.submodules.inner = self.inner
        return m

    @property
    def cleared(self):
        """Registers, and what they are cleared to."""
        own = [(self.wide, WIDE), (self.mixed[4:], 0), *((signal, n) for n, signal in enumerate(self.small))]
        return own + (self.inner.cleared if self.inner is not None else [])


class Whole(wiring.Component):
    def __init__(self, depth):
        super().__init__({})
        self.reset = Signal()
        self.parts = [Part(depth), Part(0)]

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain("sync", reset_less=True)
        fragments = [Fragment.get(part, platform) for part in self.parts]
        m.submodules += fragments
        spread_reset(m, self.reset, *fragments)
        self.fragments = fragments
        return m


def test_everything_is_cleared_in_the_same_cycles():
    whole = Whole(2)
    cleared = [pair for part in whole.parts for pair in part.cleared]
    kept = whole.parts[0].kept

    async def bench(ctx):
        async def expect(counts):
            for count in counts:
                for signal, init in cleared:
                    assert ctx.get(signal) == (init + count) % (1 << len(signal))
                await ctx.tick()

        # Up at first, whatever the reset; what it clears is held.
        await expect([0] * (RESET_LEVELS + 1))
        await expect(range(1, 5))
        ctx.set(whole.reset, 1)
        await expect(range(5, 6 + RESET_LEVELS))
        before = ctx.get(kept)
        ctx.set(whole.reset, 0)
        await expect([0] * (RESET_LEVELS))
        assert ctx.get(kept) == before + RESET_LEVELS
        await expect([0, 1])

    simulate(whole, bench)


@pytest.mark.parametrize("depth", [0, 3])
def test_no_register_clears_many_bits(depth):
    whole = Whole(depth)
    loads = Counter()

    def count(fragment):
        for statement in fragment.statements.get("sync", ()):
            if isinstance(statement, Switch) and statement.test.name.startswith("reset_"):
                loads[statement.test.name] += sum(
                    len(each.lhs) for _, each, _ in statement.cases for each in each
                )
        for subfragment, _, _ in fragment.subfragments:
            count(subfragment)

    Fragment.get(whole, None)
    for fragment in whole.fragments:
        count(fragment)
    assert sum(loads.values()) == sum(len(Cat(signal)) for part in whole.parts for signal, _ in part.cleared)
    assert max(loads.values()) <= LOADS
    # Not more registers than it takes, but for what is left free by signals that stay whole.
    assert len(loads) <= 2 * -(-sum(loads.values()) // LOADS)
