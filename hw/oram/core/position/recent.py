"""The newest of the last operations with the same bucket."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import check_range
from hw.lib.arbiter import lowest
from hw.oram.core.bits import encode, named, select

#: Operations compared in one step: a LUT selects by three bits.
_GROUP = 8


class RecentBuckets(wiring.Component):
    """Bucket numbers of recent operations, newest first, and the first that equals the next one.

    ``bits``: of a bucket's number. ``depth``: operations it remembers, at least 1.

    Behaviour
    ---------
    ``found`` and ``age`` follow ``step`` by `LATENCY` cycles.
    """

    LATENCY: ClassVar = 3

    def __init__(self, *, bits: int, depth: int) -> None:
        check_range("depth", depth, 1)
        self._bits, self._depth = bits, depth
        super().__init__(
            {
                "clear": In(1),  #: Forgets all.
                "step": In(1),  #: An operation arrives; at most one a cycle.
                "number": In(bits),  #: Its bucket, with ``step``.
                "found": Out(1),  #: One of the last ``depth`` operations had the same bucket.
                "age": Out(range(depth)),  #: The newest of these: 0 is the previous operation.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Compare with all, find the first match of each group, then the first group."""
        m = Module()
        entered = Signal(self._depth)
        numbers = [Signal(self._bits, name=f"number_{n}", reset_less=True) for n in range(self._depth)]
        with m.If(self.step):
            m.d.sync += entered.eq(Cat(1, entered))
            m.d.sync += [old.eq(new) for old, new in zip(numbers, [self.number, *numbers[:-1]], strict=True)]
        with m.If(self.clear):
            m.d.sync += entered.eq(0)
        same = Signal(self._depth, reset_less=True)
        m.d.sync += same.eq(Cat(entered[n] & (old == self.number) for n, old in enumerate(numbers)))

        groups = [same[first : first + _GROUP] for first in range(0, self._depth, _GROUP)]
        some_of = Signal(len(groups), reset_less=True)
        first_of = [Signal(range(_GROUP), name=f"first_{n}", reset_less=True) for n in range(len(groups))]
        m.d.sync += some_of.eq(Cat(group.any() for group in groups))
        for n, group in enumerate(groups):
            m.d.sync += first_of[n].eq(encode(named(m, f"first_of_{n}", lowest(group))))
        first_group = named(m, "first_group", lowest(some_of))
        m.d.sync += [
            self.found.eq(some_of.any()),
            self.age.eq(Cat(select(first_group, first_of), encode(first_group))),
        ]
        return m
