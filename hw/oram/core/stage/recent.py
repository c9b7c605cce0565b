"""A ring of recent words, and the newest place with the current one."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.lib.loads import LOADS, copies
from hw.oram.core.bits import any_of, encode, equal_words

#: Places whose matches become a number in one step.
GROUP = 16


class Recent(wiring.Component):
    """The words of the last ``turns`` operations, one of each; several rings share the lookups.

    ``every``: ``equal`` is used, not ``found`` alone.

    Behaviour
    ---------
    A lookup begins in cycle 0 with ``ask``; further ones may follow in the next cycles. Its word may be
    entered into one of the rings (``enter``). That one turns to its next place, compares the old word there
    in cycle 1, and keeps the new one at its end.

    Why
    ---
    A word is the newest of its value until an equal one is entered into any ring. So at most one place
    matches, and its number is an or of all numbers. Every place keeps the bus ``held`` for as long as the
    ring has turned to it: it needs no gate of its own.
    """

    #: Cycles from ``ask`` to ``found``.
    LATENCY: ClassVar = 3

    def __init__(self, *, width: int, turns: int, every: bool = False) -> None:
        self._width, self._turns, self._every = width, turns, every
        super().__init__(
            {
                "ask": In(1),  #: Pulse: ``word`` is looked up.
                "word": In(width),
                "enter": In(1),  #: With ``ask``: this ring turns to its next place, and enters the word.
                #: A cycle after ``ask``: the word is entered into a ring; else that ring's place stays empty.
                "present": In(1),
                "place": Out(turns, init=1),  #: The place the ring has turned to, from cycle 1 on.
                #: In cycle 2: places with an equal word, empty ones included.
                "equal": Out(turns),
                #: ``found``, ``turn``: in cycle 3: this ring has the newest of them, and its place, else 0.
                "found": Out(1),
                "turn": Out(range(turns)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Broadcast the word, compare it with all, encode each group, then the groups."""
        m = Module()
        shares = -(-self._turns // LOADS)
        sent = copies(Signal(self._width, name="sent", reset_less=True), shares)
        held = copies(Signal(self._width, name="held", reset_less=True), shares)
        asked, own, present = (copies(Signal(name=name), shares) for name in ("asked", "own", "present_now"))
        m.d.sync += [copy.eq(self.ask) for copy in asked]
        with m.If(self.ask):
            m.d.sync += [copy.eq(self.word) for copy in sent]
        with m.If(self.enter):
            m.d.sync += [copy.eq(self.word) for copy in held]
            m.d.sync += self.place.eq(Cat(self.place[-1], self.place[:-1]))
        entering = delay(m, "entering", self.enter, 1)
        m.d.sync += [copy.eq(entering) for copy in own]
        m.d.sync += [copy.eq(self.present) for copy in present]

        known = self._known(m)
        found, inner, equals = [], [], []
        compared = delay(m, "compared", self.ask, 2)
        for n, first in enumerate(range(0, self._turns, GROUP)):
            share, places = first // LOADS, slice(first, min(first + GROUP, self._turns))
            place = self.place[places]
            size = len(place)
            words = [Signal(self._width, name=f"word_{n}_{k}", reset_less=True) for k in range(size)]
            with m.If(place.any()):  # for the simulator
                for k, word in enumerate(words):
                    with m.If(place[k]):
                        m.d.sync += word.eq(held[share])
            equal = Signal(size, name=f"equal_now_{n}", reset_less=True)
            wanted = None if known is None else known[places]
            match = equal_words(m, f"equal_{n}", words, sent[share], wanted)
            with m.If(asked[share]):
                m.d.sync += equal.eq(match)
            equals.append(equal)

            newest = Signal(size, name=f"newest_{n}")
            entered = place & own[share].replicate(size)
            replaces = present[share].replicate(size)
            m.d.sync += newest.eq((newest & ~(equal & replaces) & ~entered) | (entered & replaces))
            some = Signal(name=f"some_{n}", reset_less=True)
            number = Signal(range(GROUP), name=f"inner_{n}", reset_less=True)
            with m.If(compared):
                m.d.sync += [some.eq((equal & newest).any()), number.eq(encode(equal & newest))]
            found.append(some)
            inner.append(number)
        m.d.comb += [
            self.equal.eq(Cat(equals)),
            self.found.eq(Cat(found).any()),
            self.turn.eq(Cat(any_of(inner), encode(Cat(found)))),
        ]
        return m

    def _known(self, m: Module) -> Value | None:
        """Return the places that were entered since reset, if they are needed."""
        if not self._every:
            return None
        known = Signal(self._turns)  # the place of before the first is not
        started = Signal()
        with m.If(self.enter):
            m.d.sync += started.eq(1)
        for at in range(self._turns):
            with m.If(self.place[at]):
                m.d.sync += known[at].eq(started)
        return known
