"""The slots that recent operations filled."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.lib.loads import LOADS, copies
from hw.oram.core.bits import any_of, select_many

#: Operations whose slots are selected in one step: six LUTs select them, and one joins these.
_GROUP = 18


class FilledSlots(wiring.Component):
    """The slot of the item that each of the last ``turns`` operations appended, and those of one record.

    ``slots``: of a record. ``labels``: fresh records of an operation.

    Behaviour
    ---------
    Operations are at least four cycles apart, and are written in their order: at most two have been entered
    and not written. An operation is hidden from the one after the next on.
    """

    #: Cycles from ``ask`` to ``unseen``.
    LATENCY: ClassVar = 3

    def __init__(self, *, slots: int, turns: int, labels: int) -> None:
        self._slots, self._turns, self._labels = slots, turns, labels
        super().__init__(
            {
                #: ``ask``, ``equal``: pulse, and for each label the operations with the record as that one.
                "ask": In(1),
                "equal": In(turns).array(labels),
                "unseen": Out(slots),  #: Slots that they filled; constant until the next one's.
                #: With ``ask``: the operation takes the place that the rings turn to; its slot is not known.
                "enter": In(1),
                "place": In(turns).array(labels),
                #: ``written``, ``appended``: the oldest operation without a slot: one, or none.
                "written": In(1),
                "appended": In(slots).array(labels),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A place has its slot one-hot: it is cleared, then written."""
        m = Module()
        shares = -(-self._turns // LOADS)
        selects = delay(m, "selects", self.ask, 1)
        combines = delay(m, "combines", selects, 1)
        waits = Signal()
        clear = Signal()
        m.d.comb += clear.eq((self.enter | waits) & ~self.written)
        m.d.sync += waits.eq((self.enter | waits) & self.written)
        clears, writes = (copies(Signal(name=name), shares) for name in ("clears", "writes"))
        m.d.sync += [copy.eq(clear) for copy in clears]
        m.d.sync += [copy.eq(self.written) for copy in writes]
        # The place that is written next; the first operation takes place 1.
        oldest = Signal(self._turns, init=1 << 1 % self._turns)
        with m.If(writes[0]):
            m.d.sync += oldest.eq(Cat(oldest[-1], oldest[:-1]))

        parts = []
        for label in range(self._labels):
            equal = Signal(self._turns, name=f"equal_{label}", reset_less=True)
            with m.If(self.ask):
                m.d.sync += equal.eq(self.equal[label])
            filled = [
                Signal(self._slots, name=f"filled_{label}_{turn}", reset_less=True)
                for turn in range(self._turns)
            ]
            bus = copies(Signal(self._slots, name=f"bus_{label}", reset_less=True), shares)
            m.d.sync += [copy.eq(self.appended[label] & self.written.replicate(self._slots)) for copy in bus]
            for turn, slot in enumerate(filled):
                share = turn // LOADS
                takes = (self.place[label][turn] & clears[share]) | (oldest[turn] & writes[share])
                with m.If(takes):
                    m.d.sync += slot.eq(bus[share])
            for first in range(0, self._turns, _GROUP):
                part = Signal(self._slots, name=f"part_{label}_{first}", reset_less=True)
                group = slice(first, min(first + _GROUP, self._turns))
                chosen = select_many(m, f"chosen_{label}_{first}", equal[group], filled[group])
                with m.If(selects):
                    m.d.sync += part.eq(chosen)
                parts.append(part)
        with m.If(combines):
            m.d.sync += self.unseen.eq(any_of(parts))
        return m
