"""Idle times: whether an operation is alone, which follows from public times."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import check_range
from hw.oram.config import OramConfig
from hw.oram.core.touch.credits import Credits


class Alone(wiring.Component):
    """Finds operations that are accepted while HBM has nothing to do.

    ``rest``: X, least cycles from the last admission to the acceptance of an operation that is alone, at
    least 4.

    Behaviour
    ---------
    Operation n is alone if all earlier ones were admitted, and if a(n) is at least X after the last q(j).
    The first one after reset is alone.

    Why
    ---
    After X cycles all writes of earlier operations are answered. So HBM's queues are empty, and a read waits
    for a refresh at most. Acceptance and admission are public.
    """

    #: Cycles of the rest outside of the counter: from q(j) to its pulse, and to the flip-flop.
    _AROUND: ClassVar = 2

    def __init__(self, config: OramConfig, *, rest: int) -> None:
        check_range("rest", rest, 4)
        self._rest = rest
        super().__init__(
            {
                "accepted": In(1),  #: Pulse in the cycle after a(n).
                "turned": In(1),  #: Pulse in the cycle after the admission of an operation's last touch.
                "alone": Out(1),  #: With ``accepted``: the operation is alone.
            }
        )
        self.under_way = Credits(config.accepted + config.issued + 1, full=False)

    def elaborate(self, platform: Any) -> Module:
        """Count operations, and the cycles since the last admission."""
        m = Module()
        m.submodules.under_way = under_way = self.under_way
        wait = Signal(range(self._rest))
        rested = Signal(init=1)
        m.d.comb += [
            under_way.give.eq(self.accepted),
            under_way.take.eq(self.turned),
            self.alone.eq(self.accepted & rested & ~under_way.some),
        ]
        with m.If(self.turned):
            m.d.sync += [wait.eq(self._rest - self._AROUND), rested.eq(0)]
        with m.Elif(~rested):
            m.d.sync += [wait.eq(wait - 1), rested.eq(wait == 0)]
        return m
