"""Control of the results of a pass that decodes: groups of cells are added to the results of two rows."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.attention.core.result.finals import FinalRead
from hw.attention.core.result.gather import Gather, GatherStep
from hw.attention.core.result.normalize import Normalizer
from hw.attention.core.result.reciprocal import Reciprocal

#: Cycles from a `GatherStep` here to the cells of results: their register, and the delay of the lanes that
#: are read in the same cycle.
STEP_LATENCY = 2
#: Steps of a pass's lanes during which the maxima and sums of the next pass may be read.
_STEPS_AHEAD = 2


class Gathering(wiring.Component):
    """Steps the groups of cells through `Gather`.

    Behaviour
    ---------
    From ``start`` on all maxima follow, then all sums, a group a cycle. The division is `divide_at` cycles
    after ``start``. Lanes follow from `lanes_at` on; each step has a cycle for each group.  The next pass may
    start with one of the last `_STEPS_AHEAD` steps, or later. Its maxima and sums are in the other bank, and
    pass `Gather` beside lanes of the same group.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                #: The sums of a pass are final in all cells.  Only while ``free``.
                "start": In(1),
                "free": Out(1),  #: A pass may start.
                "opens": Out(1),  #: Its lanes are read from the next cycle on.
                #: The last step of its normalization; constant from the cycle after ``opens`` to ``ends``.
                "last_step": In(range(config.merge_steps)),
                "step": Out(GatherStep(config)),  #: To the cells of results, `STEP_LATENCY` cycles ahead.
                "final": Out(FinalRead(config)),  #: To all rows, but for ``bank``.
                "summed": Out(1),  #: The sums are read for the last time.
                "divide": Out(1),  #: The division begins.
                #: The last group of a step is read; its normalization follows, `Gather.lane_latency` cycles
                #: later than in other passes.
                "normalize": Out(1),
                "ends": Out(1),  #: It is the last step.
            }
        )

    @staticmethod
    def divide_at(config: AttentionConfig) -> int:
        """Return the cycles from ``start`` to ``divide``, which reaches the cell a cycle later."""
        return 2 * config.ports + STEP_LATENCY + Gather.total_latency(config) - 1

    @staticmethod
    def lanes_at(config: AttentionConfig) -> int:
        """Return the cycles from ``start`` to the first lanes: shifts are then ready, and the reciprocal is
        by the addition of the last group.
        """
        shifts = 2 * config.ports + Gather.SHIFT_LATENCY
        quotient = Gathering.divide_at(config) + 1 + Reciprocal.latency(config)
        first = Normalizer.RECIPROCAL_SLACK + Gather.lane_latency(config) + config.ports
        return max(shifts, quotient - first)

    @staticmethod
    def starts(config: AttentionConfig, ready: int, *, before: int, steps: int) -> int:
        """Return the first cycle from ``ready`` on in which a pass may start.

        The pass before, of so many ``steps``, started in the cycle ``before``.
        """
        groups, end = config.ports, before + Gathering.lanes_at(config) + steps * config.ports - 1
        free = max(ready, before + 1 + Gathering._busy(config))
        beside = (end - rounds * groups for rounds in range(_STEPS_AHEAD, -1, -1))
        return next((cycle for cycle in beside if cycle >= free), max(free, end + 1))

    @staticmethod
    def _busy(config: AttentionConfig) -> int:
        """Return the cycles after ``start`` in which no other pass may start."""
        return max(Gathering.lanes_at(config), Gathering.divide_at(config))

    def elaborate(self, platform: Any) -> Module:
        """A counter up to the first lanes, then a counter of groups and one of steps."""
        m = Module()
        config, groups = self._config, self._config.ports
        last = self._busy(config)
        at = Signal(range(last + 1))  # cycles since `start`
        group = Signal(range(groups))
        lanes = Signal()
        step = Signal(range(config.merge_steps))
        near = Signal()  # at most `_STEPS_AHEAD` steps follow this one
        find = Signal()
        add = Signal()
        counts: Value = find | add | lanes
        ends_round = counts & (group == groups - 1)
        m.d.comb += [
            self.step.group.eq(group),
            self.step.opens.eq(group == 0),
            self.step.find.eq(find),
            self.step.add.eq(add),
            self.step.lanes.eq(lanes),
            self.final.valid.eq(lanes),
            self.final.step.eq(step),
            self.normalize.eq(lanes & ends_round),
            self.ends.eq(self.normalize & (step == self.last_step)),
            self.free.eq((at == 0) & (~lanes | (near & (group == groups - 1)))),
            self.opens.eq(at == self.lanes_at(config) - 1),
        ]
        m.d.sync += near.eq(step + ends_round + _STEPS_AHEAD >= self.last_step)
        with m.If(counts):
            m.d.sync += group.eq(Mux(ends_round, 0, group + 1))
        with m.If(ends_round):
            m.d.sync += [find.eq(0), add.eq(find)]
        with m.If(at != 0):
            m.d.sync += at.eq(Mux(at == last, 0, at + 1))
        with m.If(self.start):
            m.d.sync += [at.eq(1), find.eq(1)]
        with m.If(self.normalize):
            m.d.sync += [step.eq(step + 1), lanes.eq(~self.ends)]
        with m.If(self.opens):
            m.d.sync += [lanes.eq(1), step.eq(0)]
        # The cells register their reads.
        m.d.comb += [
            self.summed.eq(at == 2 * groups + STEP_LATENCY),
            self.divide.eq(at == self.divide_at(config)),
        ]
        return m
