"""The newest of the last operations with the same bucket."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import check_range
from hw.lib.delay import delay
from hw.lib.loads import LOADS, copies
from hw.oram.core.bits import any_of, encode, equal_words

#: Places whose matches become a number in one step.
_GROUP = 16
#: Places compared with one copy of the number: each loads it twice.
_SHARE = LOADS // 2


class RecentBuckets(wiring.Component):
    """A ring of the last operations' buckets, and the newest place with the bucket of the next one.

    ``bits``: of a bucket's number. ``places``: of the ring, at least 2.

    Behaviour
    ---------
    Operation n has place n modulo ``places``. Its match follows ``step`` by `LATENCY` cycles; steps are at
    least `SPACING` apart. The oldest place, which the operation takes itself, never matches.

    Why
    ---
    A place is forgotten when a later operation has the same bucket. So at most one matches, and its number is
    an or of all numbers. The oldest place follows the bus until an operation takes it: no place needs a gate
    of its own.
    """

    LATENCY: ClassVar = 4
    SPACING: ClassVar = 3

    def __init__(self, *, bits: int, places: int) -> None:
        check_range("places", places, 2)
        self._bits, self._places = bits, places
        super().__init__(
            {
                "clear": In(1),  #: Forgets all.
                "step": In(1),  #: An operation arrives.
                "number": In(bits),  #: Its bucket, with ``step``.
                "found": Out(1),  #: One of the last ``places`` - 1 operations had the same bucket.
                "place": Out(range(places)),  #: The newest of these.
                "same": Out(1),  #: It is the previous operation.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Broadcast the number, compare with all, encode each group, then the groups."""
        m = Module()
        step = delay(m, "step", self.step, 2)
        first_of = range(0, self._places, _GROUP)
        numbers = copies(Signal(self._bits, name="sent", reset_less=True), -(-self._places // _SHARE))
        with m.If(self.step):
            m.d.sync += [sent.eq(self.number) for sent in numbers]
        steps = copies(Signal(name="taken"), -(-self._places // _SHARE))
        m.d.sync += [taken.eq(self.step) for taken in steps]
        before = Signal()  # the last place of the previous group takes the operation

        some = Signal(len(first_of), reset_less=True)
        inner = [Signal(range(_GROUP), name=f"inner_{n}", reset_less=True) for n in range(len(first_of))]
        turns: list[Signal] = []
        for n, first in enumerate(first_of):
            size = min(_GROUP, self._places - first)
            at = first // _SHARE
            turn = Signal(size, name=f"turn_{n}", init=int(n == 0))
            last = turns[-1][-1] if turns else before
            with m.If(steps[at]):
                m.d.sync += turn.eq(Cat(last, turn[:-1]))
            turns.append(turn)
            match = self._match(m, n, turn, numbers[at], steps[at], step)
            m.d.sync += [some[n].eq(match.any()), inner[n].eq(encode(match))]
        m.d.comb += before.eq(turns[-1][-1])
        m.d.sync += [
            self.found.eq(some.any()),
            self.place.eq(Cat(any_of(inner), encode(some))),
        ]
        self._previous(m)
        return m

    def _match(self, m: Module, n: int, turn: Signal, number: Value, taken: Value, step: Value) -> Signal:
        """Keep the buckets of a group, and return its matches, registered."""
        size = len(turn)
        valid = Signal(size, name=f"valid_{n}")
        match = Signal(size, name=f"match_{n}", reset_less=True)
        kept = [Signal(self._bits, name=f"number_{n}_{k}", reset_less=True) for k in range(size)]
        equal = equal_words(m, f"equal_{n}", kept, number, valid & ~turn)
        with m.If(taken):
            m.d.sync += [match.eq(equal), valid.eq(valid | turn)]
        with m.If(turn.any()):  # for the simulator
            for k, old in enumerate(kept):
                with m.If(turn[k]):
                    m.d.sync += old.eq(number)
        with m.If(step):
            m.d.sync += valid.eq(valid & ~match)
        with m.If(self.clear):
            m.d.sync += valid.eq(0)
        return match

    def _previous(self, m: Module) -> None:
        """Compare with the previous operation alone."""
        known = Signal()
        number = Signal(self._bits, reset_less=True)
        same = Signal(reset_less=True)
        with m.If(self.step):
            m.d.sync += [known.eq(1), number.eq(self.number), same.eq(known & (number == self.number))]
        with m.If(self.clear):
            m.d.sync += known.eq(0)
        m.d.comb += self.same.eq(delay(m, "same", same, self.LATENCY - 1, reset=False))
