"""Control of combination, division and normalization, which follow when all streams have ended a pass."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import RESULT_BANKS, AttentionConfig
from hw.attention.core.command import UNIT_ELEMENTS, QueryCommand
from hw.attention.core.result.combine import Combine
from hw.attention.core.result.finals import FinalRead
from hw.attention.core.result.normalize import Normalizer, NormalizeStep
from hw.attention.core.result.reciprocal import Divide
from hw.attention.core.row.cell import Timing
from hw.attention.core.value_side import FINAL_BANKS
from hw.lib.delay import delay
from hw.lib.steps import count_steps


class Result(data.StructLayout):
    """Results that lie in the output buffers.

    Members
    -------
    bank
    rows
        How many of them count.
    units
        Elements of each by `UNIT_ELEMENTS`.
    """

    def __init__(self, config: AttentionConfig) -> None:
        command = QueryCommand(config)
        super().__init__(
            {
                "bank": range(RESULT_BANKS),
                "rows": command["rows"].shape,
                "units": command["value_units"].shape,
            }
        )


class Finish(wiring.Component):
    """Steps the results of all rows through combination, division and normalization.

    Parameters
    ----------
    config
        Shape of the engine.

    Members
    -------
    i : In(stream of QueryCommand)
        Each pass, before it is closed.
    closed : In(streams)
        The stream has read the last logit of its pass.
    final, sum_bank
        To the rows of all streams, see `hw.attention.core.row.cell.RowControl`.
    combine, divide, normalize
        To the rows' results, see `hw.attention.core.result.cell.ResultControl`.
    result : Out(stream of Result)
        Valid for a cycle; a queue that takes one cycle gives it when the last result is in its buffer.
    drained : In(1)
        Results of a pass have left their bank.
    bank_freed : Out(1)
        To the streams, see `hw.attention.core.value_side.ValueSide`.

    Behaviour
    ---------
    With one stream everything takes a fixed time from ``closed`` on and cannot wait: `ValueSide` sees to it.
    With several a pass begins here as soon as all streams' sums are final, the divider is free and a bank of
    results is.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "i": In(stream.Signature(QueryCommand(config))),
                "closed": In(config.streams),
                "final": Out(FinalRead(config)),
                "sum_bank": Out(1),
                "combine": Out(1),
                "divide": Out(Divide(config)),
                "normalize": Out(NormalizeStep(config)),
                "result": Out(stream.Signature(Result(config), always_ready=True)),
                "drained": In(1),
                "bank_freed": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, timing = self._config, Timing(self._config)
        begins = Signal()
        if config.streams == 1:
            m.d.comb += [
                begins.eq(delay(m, "closed", self.closed, timing.final)),
                self.bank_freed.eq(self.drained),
            ]
        else:
            self._join(m, begins)
            m.d.comb += self.bank_freed.eq(self.normalize.valid & (self.normalize.step == 0))
        m.d.comb += [self.i.ready.eq(begins), self.combine.eq(begins)]
        m.d.sync += self.sum_bank.eq(self.sum_bank ^ begins)

        scale = self.i.payload.scale
        m.d.comb += [
            self.divide.valid.eq(delay(m, "divide_valid", begins, timing.divide)),
            self.divide.scale.eq(delay(m, "divide_scale", scale, timing.divide, reset=False)),
        ]
        before = delay(m, "before", begins, timing.normalize - 1)
        command = delay(m, "command", self.i.payload, timing.normalize - 1, reset=False)
        current = Signal(QueryCommand(config), reset_less=True)
        with m.If(before):
            m.d.sync += current.eq(command)
        steps = self._steps(current)
        ends = count_steps(m, "normalize", before, (steps - 1)[: len(self.normalize.step)], self.normalize)
        bank = Signal(range(RESULT_BANKS))
        m.d.sync += bank.eq(bank + ends)
        result = Signal(Result(config))
        latency = Combine.lane_latency(config) + Normalizer.latency(config)
        m.d.comb += [
            self.normalize.bank.eq(bank),
            self.normalize.scale.eq(current.scale),
            self.final.valid.eq(self.normalize.valid),
            self.final.bank.eq(bank),
            self.final.step.eq(self.normalize.step),
            result.bank.eq(bank),
            result.rows.eq(current.rows),
            result.units.eq(current.value_units),
            self.result.valid.eq(delay(m, "result_valid", ends, latency)),
            self.result.payload.eq(delay(m, "result", result, latency, reset=False)),
        ]
        return m

    def _steps(self, command: Any) -> Any:
        """Count the steps of a pass's normalization."""
        return command.value_units * (UNIT_ELEMENTS // self._config.merge_lanes)

    def _join(self, m: Module, begins: Signal) -> None:
        """Wait for the streams, for the divider, and for a bank of results."""
        config, timing = self._config, Timing(self._config)
        banks_free = Signal(range(RESULT_BANKS + 1), init=RESULT_BANKS)
        wait = Signal(range(max(timing.interval, config.merge_steps)))
        steps = self._steps(self.i.payload)
        final = delay(m, "final", self.closed, timing.final - 1)
        ready = []
        for n in range(config.streams):
            passes = Signal(range(FINAL_BANKS + 1), name=f"passes_{n}")  # with final sums
            m.d.sync += passes.eq(passes + final[n] - begins)
            ready.append(passes != 0)
        m.d.comb += begins.eq((wait == 0) & (banks_free != 0))
        for condition in ready:
            with m.If(~condition):
                m.d.comb += begins.eq(0)
        m.d.sync += banks_free.eq(banks_free + self.drained - begins)
        with m.If(begins):
            m.d.sync += wait.eq(Mux(steps > timing.interval, steps, timing.interval) - 1)
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)
