"""Recent words that equal the current one."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out


class Recent(wiring.Component):
    """A content-addressed log: each operation compares and enters at most one word of each kind.

    ``kinds``, ``turns``: it holds the words of the last ``turns`` operations, ``kinds`` of each.
    """

    def __init__(self, *, width: int, kinds: int, turns: int) -> None:
        self._kinds, self._turns = kinds, turns
        super().__init__(
            {
                #: ``enter``, ``kind``, ``turn``: a word of this operation. It replaces the word of ``turns``
                #: operations ago.
                "enter": In(1),
                "kind": In(range(max(2, kinds))),
                "turn": In(range(turns)),
                #: The word is entered; else it is only compared, and its place stays empty.
                "present": In(1),
                "word": In(width),
                #: A cycle later: places with an equal word, empty places included; a kind's places are
                #: adjacent.
                "equal": Out(kinds * turns),
                #: Two cycles later: the place of these that was entered last, if any.
                "newest": Out(kinds * turns),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A word is the newest of its value until an equal one is entered."""
        m = Module()
        places = [(kind, turn) for kind in range(self._kinds) for turn in range(self._turns)]
        equal = Signal(len(places), reset_less=True)
        found = Signal(len(places), reset_less=True)
        newest = Signal(len(places))
        next_newest = Signal(len(places))
        here = Signal(len(places))
        here_before = Signal(len(places))
        entered = Signal()
        present = Signal()
        m.d.comb += here.eq(
            Cat(self.enter & (self.kind == kind) & (self.turn == turn) for kind, turn in places)
        )
        m.d.sync += [here_before.eq(here), entered.eq(self.enter), present.eq(self.enter & self.present)]
        for at in range(len(places)):
            word = Signal.like(self.word, name=f"word_{at}", reset_less=True)
            m.d.sync += equal[at].eq(word == self.word)
            with m.If(here[at]):
                m.d.sync += word.eq(self.word)
        with m.If(present):
            m.d.comb += next_newest.eq(newest & ~equal | here_before)
        with m.Else():
            m.d.comb += next_newest.eq(newest & ~here_before)
        m.d.sync += [newest.eq(next_newest), found.eq(equal & newest & entered.replicate(len(places)))]
        m.d.comb += [self.equal.eq(equal), self.newest.eq(found)]
        return m
