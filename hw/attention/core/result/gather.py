"""Combination of all cells in a job that decodes: the sums of all pairs of rows of all streams, at one M."""

from typing import Any, ClassVar

from amaranth.hdl import Array, Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import MAXIMUM_BITS, RESCALE_BITS, AttentionConfig
from hw.attention.core.result.finals import Final
from hw.lib.arithmetic.adder_tree import adder_tree, tree_levels
from hw.lib.arithmetic.fixed import floor_shift, saturate
from hw.lib.arithmetic.requantize import doubled, rounded
from hw.lib.delay import delay
from hw.lib.loads import LOADS, copies


class GatherStep(data.StructLayout):
    """The step of a group of cells, one of each stream."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "group": range(config.ports),  #: The group of rows ``2 * group`` and ``2 * group + 1``.
                #: ``find``, ``add``, ``lanes``: its maxima update M; its sums, rescaled to M, are added to l;
                #: its lanes, rescaled to M, are added to O.
                "find": 1,
                "add": 1,
                "lanes": 1,
                "opens": 1,  #: It is the first group.
            }
        )


class Gather(wiring.Component):
    """Joins the sums of all cells for a row, a group of cells a cycle.

    Behaviour
    ---------
    All groups in order for ``find``, then for ``add``.  From `SHIFT_LATENCY` cycles after the last ``add``
    on, all groups for ``lanes``, once for each step of lanes; a group a cycle.

    Why
    ---
    In a pass that decodes each cell has seen a share of the keys, with the same queries.  The pass is long
    enough for one group after another to use the same gates.
    """

    #: Cycles from a group's ``add`` to its shifts, which its lanes need.
    SHIFT_LATENCY: ClassVar = 3

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(Final(config)).array(config.ports, config.streams),
                "step": In(GatherStep(config)),  #: A cycle before its sums are on ``i``.
                #: ``sum_c round(l_c, M - M_c)`` over all cells c, from `total_latency` cycles after the last
                #: sums on ``i`` until as many after the next ones.
                "total": Out(config.sum_bits),
                #: ``sum_c round(O_c, M - M_c)``, `lane_latency` cycles after the last group's lanes on ``i``.
                "lanes": Out(data.ArrayLayout(signed(config.output_bits), config.merge_lanes)),
            }
        )

    @staticmethod
    def total_latency(config: AttentionConfig) -> int:
        """Return the cycles from the last ``add`` to ``total``: select, shift, rescale, streams, groups."""
        return 4 + tree_levels(config.streams)

    @staticmethod
    def lane_latency(config: AttentionConfig) -> int:
        """Return the cycles from the last ``step.lanes`` to ``lanes``: select, rescale, streams, groups."""
        return 3 + tree_levels(config.streams)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, streams = self._config, range(self._config.streams)
        levels = tree_levels(config.streams)
        chosen = [self._chosen(m, n) for n in streams]
        here = delay(m, "here", self.step, 1)
        step = delay(m, "step", here, 1)  # of the selected group

        # M, of all groups so far.
        largest = Signal(signed(MAXIMUM_BITS), reset_less=True)
        pair: Value = chosen[0].maximum
        for n in streams[1:]:
            better = Signal(signed(MAXIMUM_BITS), name=f"better_{n}")
            m.d.comb += better.eq(Mux(chosen[n].maximum > pair, chosen[n].maximum, pair))
            pair = better
        with m.If(step.find):
            m.d.sync += largest.eq(Mux(step.opens | (pair > largest), pair, largest))

        # Shifts, kept for the lanes.
        shifts = [
            [Signal(RESCALE_BITS, name=f"shift_{g}_{n}", reset_less=True) for n in streams]
            for g in range(config.ports)
        ]
        fresh = [Signal(RESCALE_BITS, name=f"fresh_{n}", reset_less=True) for n in streams]
        m.d.sync += [fresh[n].eq(saturate(largest - chosen[n].maximum, RESCALE_BITS)) for n in streams]
        later = delay(m, "later", step, 1)
        for g, group in enumerate(shifts):
            with m.If(later.add & (later.group == g)):
                m.d.sync += [shift.eq(new) for shift, new in zip(group, fresh, strict=True)]

        # l.
        totals = [delay(m, f"total_{n}", chosen[n].total, 1, reset=False) for n in streams]
        parts = [self._rescaled(m, f"sum_{n}", totals[n], fresh[n]) for n in streams]
        added = adder_tree(m, "added", parts, config.sum_bits)
        last = delay(m, "added_step", later, 1 + levels)
        total = Signal(config.sum_bits, reset_less=True)
        with m.If(last.add):
            m.d.sync += total.eq(Mux(last.opens, 0, total) + added)
        m.d.comb += self.total.eq(total)

        # O.
        held = [Signal(RESCALE_BITS, name=f"held_{n}", reset_less=True) for n in streams]
        m.d.sync += [held[n].eq(Array(group[n] for group in shifts)[here.group]) for n in streams]
        early = delay(m, "lanes_opens", step.opens, levels, reset=False)
        opens = copies(Signal(name="opens", reset_less=True), config.merge_lanes)
        m.d.sync += [own.eq(early) for own in opens]
        for lane in range(config.merge_lanes):
            parts = [self._rescaled(m, f"lane_{lane}_{n}", chosen[n].lanes[lane], held[n]) for n in streams]
            added = adder_tree(m, f"lane_{lane}_added", parts, config.output_bits)
            output = Signal(signed(config.output_bits), name=f"output_{lane}", reset_less=True)
            m.d.sync += output.eq(Mux(opens[lane], 0, output) + added)
            m.d.comb += self.lanes[lane].eq(output)
        return m

    def _chosen(self, m: Module, n: int) -> Any:
        """Register the sums of a group in stream ``n``."""
        chosen = Signal(Final(self._config), name=f"chosen_{n}", reset_less=True)
        bits = Value.cast(chosen)
        given = Array(Value.cast(group[n]) for group in self.i)
        for low, group in zip(
            range(0, len(bits), LOADS),
            copies(Signal.like(self.step.group, name=f"group_{n}"), -(-len(bits) // LOADS)),
            strict=True,
        ):
            m.d.sync += [
                group.eq(self.step.group),
                bits[low : low + LOADS].eq(Array(words[low : low + LOADS] for words in given)[group]),
            ]
        return chosen

    def _rescaled(self, m: Module, name: str, value: Value, shift: Signal) -> Value:
        """Return ``round(value, shift)`` in the next cycle."""
        halves = Signal(doubled(value).shape(), name=f"{name}_halves", reset_less=True)
        m.d.sync += halves.eq(floor_shift(doubled(value), shift))
        return rounded(halves)
