"""Control of combination, division and normalization, after all streams have ended a pass."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import RESULT_BANKS, AttentionConfig
from hw.attention.core.command import UNIT_ELEMENTS, QueryCommand
from hw.attention.core.gathering import Gathering
from hw.attention.core.result.combine import Combine
from hw.attention.core.result.finals import FinalRead
from hw.attention.core.result.gather import Gather, GatherStep
from hw.attention.core.result.normalize import Normalizer, NormalizeStep
from hw.attention.core.result.reciprocal import Divide
from hw.attention.core.timing import CoreTiming
from hw.attention.core.value_side import FINAL_BANKS
from hw.lib.delay import delay
from hw.lib.steps import count_steps


class Finish(wiring.Component):
    """Steps the results of all rows through combination, division and normalization.

    Behaviour
    ---------
    With one stream all follows ``closed`` after fixed times and never stalls: `ValueSide` ensures it.  With
    several streams a pass begins here once the sums of all streams are final, and the divider and a bank of
    results are free. A pass that decodes waits for stream 0 alone, and until `Gathering` is free.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        members = {
            #: Each pass with tiles, before it is closed.
            "i": In(stream.Signature(QueryCommand(config))),
            "closed": In(config.streams),  #: The merge of the last tile of a pass begins in the stream.
            #: ``final``, ``sum_bank``: to the rows of all streams, see
            #: `hw.attention.core.row.cell.RowControl`.
            "final": Out(FinalRead(config)),
            "sum_bank": Out(1),
            #: ``combine``, ``divide``, ``normalize``: to the rows' results, see
            #: `hw.attention.core.result.cell.ResultControl`.
            "combine": Out(1),
            "divide": Out(Divide(config)),
            "normalize": Out(NormalizeStep(config)),
            #: Bank of the output buffers with the results of a pass; ``valid`` for one cycle.  A queue with a
            #: latency of one cycle offers the bank when the last result is in it.
            "result": Out(stream.Signature(range(RESULT_BANKS), always_ready=True)),
            "drained": In(1),  #: The results of a pass have left their bank.
            "bank_freed": Out(1),  #: To the streams, see `hw.attention.core.value_side.ValueSide`.
        }
        if config.decodes:
            members |= {
                #: ``decode``, ``restart``, ``gather``: see `hw.attention.core.core.AttentionCore`;
                #: ``gather`` goes to the results of the first rows.
                "decode": In(1),
                "restart": In(1),
                "gather": Out(GatherStep(config)),
            }
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, timing = self._config, CoreTiming(self._config)
        begins = Signal()
        if config.decodes:
            m.submodules.gathering = gathering = Gathering(config)
        if config.streams == 1:
            m.d.comb += [
                begins.eq(delay(m, "closed", self.closed, timing.final)),
                self.bank_freed.eq(self.drained),
            ]
        else:
            self._join(m, begins, [gathering.free] if config.decodes else [])
            m.d.comb += self.bank_freed.eq(self.normalize.valid & (self.normalize.step == 0))
        m.d.comb += [self.i.ready.eq(begins), self.combine.eq(begins)]
        m.d.sync += self.sum_bank.eq(self.sum_bank ^ begins)

        scale = self.i.payload.scale
        m.d.comb += [
            self.divide.valid.eq(delay(m, "divide_valid", begins, timing.divide)),
            self.divide.scale.eq(delay(m, "divide_scale", scale, timing.divide, reset=False)),
        ]
        streamed = begins & ~self.decode if config.decodes else begins
        before = delay(m, "before", streamed, timing.normalize - 1)
        command = delay(m, "command", self.i.payload, timing.normalize - 1, reset=False)
        current = Signal(QueryCommand(config), reset_less=True)
        with m.If(before):
            m.d.sync += current.eq(command)
        last_step = (self._steps(current) - 1)[: len(self.normalize.step)]
        ends: Value = count_steps(m, "normalize", before, last_step, self.normalize)
        m.d.comb += [self.final.valid.eq(self.normalize.valid), self.final.step.eq(self.normalize.step)]
        if config.decodes:
            ends = self._gather(m, gathering, begins & self.decode, current, last_step, ends)
        bank = Signal(range(RESULT_BANKS))
        m.d.sync += bank.eq(bank + ends)
        latency = Combine.lane_latency(config) + Normalizer.latency(config)
        m.d.comb += [
            self.normalize.bank.eq(bank),
            self.normalize.scale.eq(current.scale),
            self.final.bank.eq(bank),
            self.result.valid.eq(delay(m, "result_valid", ends, latency)),
            self.result.payload.eq(delay(m, "result", bank, latency, reset=False)),
        ]
        if config.decodes:
            with m.If(self.restart):
                m.d.sync += [self.sum_bank.eq(0), bank.eq(0)]
        return m

    def _gather(
        self, m: Module, gathering: Gathering, start: Value, current: Any, last_step: Value, ends: Value
    ) -> Value:
        """Step a pass that decodes through `Gathering`; return the end of any pass's normalization."""
        config = self._config
        later = Gather.lane_latency(config) - Combine.lane_latency(config)
        ended = delay(m, "gathered", gathering.ends, later)
        # The command of the pass that started last, while lanes of the one before may be read.  The bank
        # changes behind a pass's last lanes, and before the first ones of the next pass.
        coming = Signal(QueryCommand(config), reset_less=True)
        m.d.comb += [
            gathering.start.eq(start),
            gathering.last_step.eq(last_step),
            self.gather.eq(gathering.step),
        ]
        with m.If(start):
            m.d.sync += coming.eq(self.i.payload)
        with m.If(gathering.opens):
            m.d.sync += current.eq(coming)
        with m.If(self.decode):
            m.d.sync += self.sum_bank.eq(self.sum_bank ^ gathering.summed)
            m.d.comb += [
                self.combine.eq(0),
                self.divide.valid.eq(gathering.divide),
                self.divide.scale.eq(coming.scale),
                self.normalize.valid.eq(gathering.normalize),
                self.normalize.step.eq(gathering.final.step),
                self.final.valid.eq(gathering.final.valid),
                self.final.step.eq(gathering.final.step),
                self.bank_freed.eq(gathering.ends),
            ]
        return Mux(self.decode, ended, ends)

    def _steps(self, command: Any) -> Any:
        """Return the steps of a pass's normalization."""
        return command.value_units * (UNIT_ELEMENTS // self._config.merge_lanes)

    def _join(self, m: Module, begins: Signal, free: list[Value]) -> None:
        """Wait for the streams, for the divider, for a bank of results, and for the conditions ``free``."""
        config, timing = self._config, CoreTiming(self._config)
        banks_free = Signal(range(RESULT_BANKS + 1), init=RESULT_BANKS)
        wait = Signal(range(max(timing.interval, config.merge_steps)))
        steps = self._steps(self.i.payload)
        final = delay(m, "final", self.closed, timing.final - 1)
        ready = list(free)
        for n in range(config.streams):
            passes = Signal(range(FINAL_BANKS + 1), name=f"passes_{n}")  # with final sums
            leaves: Value = begins
            final_sums: Value = passes != 0
            if config.decodes and n:
                leaves, final_sums = begins & ~self.decode, final_sums | self.decode
            m.d.sync += passes.eq(passes + final[n] - leaves)
            ready.append(final_sums)
        m.d.comb += begins.eq((wait == 0) & (banks_free != 0))
        for condition in ready:
            with m.If(~condition):
                m.d.comb += begins.eq(0)
        m.d.sync += banks_free.eq(banks_free + self.drained - begins)
        with m.If(begins):
            m.d.sync += wait.eq(Mux(steps > timing.interval, steps, timing.interval) - 1)
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)
