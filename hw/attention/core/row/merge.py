"""Merge: adds a finished tile to the running output and sum, which are rescaled by shifts."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import MAXIMUM_BITS, RESCALE_BITS, AttentionConfig
from hw.lib.arithmetic.fixed import floor_shift
from hw.lib.arithmetic.requantize import doubled, rounded_sum
from hw.lib.delay import payload_register
from hw.lib.memory import ports, uninitialised


class MergeStep(data.StructLayout):
    """One step of a merge."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "begins": 1,  #: Step 0 is in the next cycle.
                "valid": 1,
                #: Lanes from ``step * merge_lanes`` on; steps rise from 0 and end with the lanes in use.
                "step": range(config.merge_steps),
                "opens": 1,  #: The tile is the first of its query tile: the running output is 0.
                "closes": 1,  #: The tile is the last one: the result is final.
                #: For a tile that closes: bank of finals for the result; unused with one stream.
                "bank": 1,
            }
        )


class FinalLanes(data.StructLayout):
    """Final outputs of some lanes, before normalization."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "valid": 1,
                #: ``bank``, ``step``: bank of finals of the row, and merge step that has these lanes.
                "bank": 1,
                "step": range(config.merge_steps),
                "lanes": data.ArrayLayout(signed(config.output_bits), config.merge_lanes),
            }
        )


class Merge(wiring.Component):
    """Running output O and running sum l of a row.

    Behaviour
    ---------
    A step a cycle: read, shift, add, write: ``O = round(O, rise) + partial``.  The same lane may follow
    `LATENCY` + 1 cycles later.
    """

    #: Cycles from a step to its result.
    LATENCY = 3

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "control": In(MergeStep(config)),
                #: Partial sums of the lanes of the step *before* this cycle's.
                "partial": In(data.ArrayLayout(signed(config.partial_bits), config.merge_lanes)),
                #: Sum of probabilities of the tile, from the cycle after step 0 on.
                "partial_sum": In(config.partial_sum_bits),
                #: Rise of the maximum with the tile, from the cycle after step 0 on.  One copy is for half of
                #: the lanes, one for the others and the sum.
                "rise": In(RESCALE_BITS).array(2),
                #: M with the tile, as ``rise``; used with several streams only.
                "reached": In(signed(MAXIMUM_BITS)),
                "maximum": Out(signed(MAXIMUM_BITS)),  #: M of ``total``, with several streams only.
                #: Running sum l, with this tile from `LATENCY` cycles after step 0 on.
                "total": Out(config.sum_bits),
                "o": Out(FinalLanes(config)),  #: Final lanes, `LATENCY` cycles after their step.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        m.submodules.outputs = outputs = uninitialised(
            width=config.output_bits * config.merge_lanes, depth=config.merge_steps, ram_style="distributed"
        )
        put, get = ports(outputs)
        controls = [self.control]
        for n in range(Merge.LATENCY):
            following = Signal(MergeStep(config), name=f"control_{n + 1}")
            m.d.sync += following.eq(controls[-1])
            controls.append(following)
        shift, _, write = controls[1:]
        m.d.comb += get.addr.eq(self.control.step)

        lanes = payload_register(m, self.o.lanes)
        # Equal registers that tools must not merge: for half of the lanes, and for the others and the sum.
        opens = [Signal(name=f"opens_{n}", reset_less=True, attrs={"keep": 1}) for n in range(2)]
        m.d.sync += [register.eq(self.control.opens) for register in opens]
        for lane in range(config.merge_lanes):
            half = 2 * lane // config.merge_lanes
            read = get.data.word_select(lane, config.output_bits).as_signed()
            partial = Signal(signed(config.partial_bits), name=f"partial_{lane}", reset_less=True)
            halves = self._halves(m, f"output_{lane}", read, opens[half], self.rise[half])
            m.d.sync += [partial.eq(self.partial[lane]), lanes[lane].eq(rounded_sum(halves, partial))]
        m.d.comb += [
            self.o.valid.eq(write.valid & write.closes),
            self.o.bank.eq(write.bank),
            self.o.step.eq(write.step),
            put.en.eq(write.valid & ~write.closes),
            put.addr.eq(write.step),
            put.data.eq(lanes.as_value()),
        ]

        partial_sum = Signal.like(self.partial_sum, reset_less=True)
        add_sum = Signal()
        m.d.sync += [add_sum.eq(shift.valid & (shift.step == 0)), partial_sum.eq(self.partial_sum)]
        total = payload_register(m, self.total, name="total_held")
        halves = self._halves(m, "total", total, opens[1], self.rise[1])
        with m.If(add_sum):
            m.d.sync += total.eq(rounded_sum(halves, partial_sum))
        if config.streams > 1:
            reached = Signal.like(self.reached, name="reached_held", reset_less=True)
            maximum = payload_register(m, self.maximum, name="maximum_held")
            m.d.sync += reached.eq(self.reached)
            with m.If(add_sum):
                m.d.sync += maximum.eq(reached)
        return m

    def _halves(self, m: Module, name: str, value: Value, opens: Signal, rise: Value) -> Signal:
        """Return ``2 value`` shifted by ``rise`` in the next cycle, or 0 where a query tile opens."""
        halves = Signal(doubled(value).shape(), name=f"{name}_halves", reset_less=True)
        m.d.sync += halves.eq(Mux(opens, 0, floor_shift(doubled(value), rise)))
        return halves
