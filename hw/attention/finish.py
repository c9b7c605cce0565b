"""What follows the end of a tile: merge, and for the last tile of a query tile division and normalization."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.attention.delay import delay
from hw.attention.merge import MergeStep
from hw.attention.normalize import Normalizer, NormalizeStep
from hw.attention.row import Timing
from hw.attention.values import TileEnd


class Result(data.StructLayout):
    """Results that lie in the output buffers: their ``bank``, and how many ``rows`` of them count."""

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__({"bank": 1, "rows": range(config.rows + 1)})


class Finish(wiring.Component):
    """Steps all rows through merge and normalization.

    Parameters
    ----------
    config
        Shape of the engine.

    Members
    -------
    end : In(TileEnd)
        At least `hw.attention.values.spacing` cycles from one to the next.
    merge, divide, normalize
        To the rows, each at its stage (`Timing`).
    result : Out(stream of Result)
        Valid for a cycle; a queue that takes one cycle gives it when the last result is in its buffer.

    Behaviour
    ---------
    Fixed times from ``end`` on; nothing can wait.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "end": In(TileEnd(config)),
                "merge": Out(MergeStep(config)),
                "divide": Out(1),
                "normalize": Out(NormalizeStep(config)),
                "result": Out(stream.Signature(Result(config), always_ready=True)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, timing = self._config, Timing(self._config)
        # A step counter shows step 0 in the cycle after its start.
        before_merge = delay(m, "end", self.end, timing.merge - 1)
        _, merging = self._steps(m, "merge", before_merge.valid, self.merge)
        with m.If(before_merge.valid):
            m.d.sync += merging.eq(before_merge)
        m.d.comb += [self.merge.opens.eq(merging.opens), self.merge.closes.eq(merging.closes)]

        dividing = delay(m, "closed", before_merge, timing.divide - (timing.merge - 1))
        m.d.comb += self.divide.eq(dividing.valid & dividing.closes)

        before_normalize = delay(m, "divided", dividing, timing.normalize - 1 - timing.divide)
        closes = before_normalize.valid & before_normalize.closes
        last_step, normalizing = self._steps(m, "normalize", closes, self.normalize)
        with m.If(closes):
            m.d.sync += normalizing.eq(before_normalize)
        result = Signal(Result(config))
        m.d.comb += [
            self.normalize.bank.eq(normalizing.bank),
            self.normalize.fraction.eq(normalizing.output_fraction),
            result.bank.eq(normalizing.bank),
            result.rows.eq(normalizing.rows),
            self.result.valid.eq(delay(m, "result_valid", last_step, Normalizer.LATENCY)),
            self.result.payload.eq(delay(m, "result", result, Normalizer.LATENCY, reset=False)),
        ]
        return m

    def _steps(self, m: Module, name: str, start: Any, control: Any) -> tuple[Any, Any]:
        """Count ``control.step`` up after ``start``; give its last step, and a place for the tile's flags."""
        steps = self._config.merge_steps
        running = Signal(name=f"{name}_running")
        step = Signal(range(steps), name=f"{name}_step")
        last = running & (step == steps - 1)
        with m.If(start):
            m.d.sync += [running.eq(1), step.eq(0)]
        with m.Elif(running):
            m.d.sync += [running.eq(~last), step.eq(step + 1)]
        m.d.comb += [control.valid.eq(running), control.step.eq(step)]
        return last, Signal(TileEnd(self._config), name=f"{name}_tile", reset_less=True)
