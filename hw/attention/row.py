"""Everything of one query row: the cell that the core places R times."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import MULTIPLIER_BITS, SHIFT_BITS, AttentionConfig
from hw.attention.exp2 import Exp2
from hw.attention.maximum import LogitBuffer, LogitRead, LogitWrite
from hw.attention.merge import Merge, MergeStep
from hw.attention.normalize import Normalizer, NormalizeStep
from hw.attention.output import OutputBuffer, OutputRead
from hw.attention.reciprocal import Reciprocal
from hw.attention.score import ScoreUnit
from hw.attention.value import ValueUnit


class RowControl(data.StructLayout):
    """What every row does in a cycle, each member for the stage it belongs to.

    Members
    -------
    swap : 1
        See `ScoreUnit`.
    multiplier, shift
        See `ScoreUnit`.
    write, read
        See `LogitBuffer`.
    exponent : 1
        A logit read one cycle ago is on the way to the exponential.
    first, last : 1
        See `ValueUnit`.
    merge
        See `Merge`.
    divide : 1
        Start of the reciprocal.
    normalize
        See `Normalizer`.
    drain
        See `OutputBuffer`.
    """

    def __init__(self, config: AttentionConfig, beat_width: int) -> None:
        super().__init__(
            {
                "swap": 1,
                "multiplier": MULTIPLIER_BITS,
                "shift": SHIFT_BITS,
                "write": LogitWrite(config),
                "read": LogitRead(config),
                "exponent": 1,
                "first": 1,
                "last": 1,
                "merge": MergeStep(config),
                "divide": 1,
                "normalize": NormalizeStep(config),
                "drain": OutputRead(config, beat_width),
            }
        )


class Timing:
    """When each stage works, in cycles after the key or the value was on the row's port.

    Members
    -------
    scale
        From a key: its multiplier and shift.
    write
        From a key: its logit goes into the buffer.
    ready
        From a tile's last key: its first logit may be read.
    exponent
        From a read: the logit enters the exponential.
    value
        From a read: the value row of the same key.
    merge
        From a tile's last read: step 0 of its merge.
    divide
        From a query tile's last read: the sum is final.
    normalize
        From a query tile's last read: step 0 of the normalization.
    drained
        From a query tile's last read: all its results may be read.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self.scale = ScoreUnit.scale_latency(config)
        self.write = ScoreUnit.latency(config)
        self.ready = self.write + LogitBuffer.LATENCY
        self.exponent = 1
        self.value = self.exponent + Exp2.LATENCY
        # The running output may be read before the tile's sums are there: they meet a cycle later.
        self.merge = self.value + ValueUnit.LATENCY - 1
        self.divide = self.merge + Merge.LATENCY
        self.normalize = self.divide + Reciprocal.LATENCY - Normalizer.RECIPROCAL_SLACK
        self.drained = self.normalize + config.merge_steps + Normalizer.LATENCY


class AttentionRow(wiring.Component):
    """One query row.

    Parameters
    ----------
    config
        Shape of the engine.
    beat_width
        Bits of an output beat.

    Members
    -------
    control : In(RowControl)
        The same for all rows.
    load : In(1)
        ``query`` is this row's.
    query, key, value : In(D x int8)
    o : Out(beat_width)
        See `OutputBuffer`.

    Behaviour
    ---------
    A row has no handshake: what happens when is said by ``control``, and each stage takes the cycles that
    `Timing` says.  Rows differ in their data only.
    """

    def __init__(self, config: AttentionConfig, *, beat_width: int) -> None:
        self._config = config
        self._beat_width = beat_width
        elements = data.ArrayLayout(signed(8), config.head_dim)
        super().__init__(
            {
                "control": In(RowControl(config, beat_width)),
                "load": In(1),
                "query": In(elements),
                "key": In(elements),
                "value": In(elements),
                "o": Out(beat_width),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Join the units."""
        m = Module()
        config, control = self._config, self.control
        m.submodules.score = score = ScoreUnit(config)
        m.submodules.logits = logits = LogitBuffer(config)
        m.submodules.exp2 = exp2 = Exp2()
        m.submodules.values = values = ValueUnit(config)
        m.submodules.merge = merge = Merge(config)
        m.submodules.reciprocal = reciprocal = Reciprocal()
        m.submodules.normalizer = normalizer = Normalizer(config)
        m.submodules.output = output = OutputBuffer(config, beat_width=self._beat_width)
        m.d.sync += values.step.eq(control.merge.step)
        m.d.comb += [
            score.query.eq(self.query),
            score.load.eq(self.load),
            score.swap.eq(control.swap),
            score.key.eq(self.key),
            score.multiplier.eq(control.multiplier),
            score.shift.eq(control.shift),
            logits.i.eq(score.logit),
            logits.write.eq(control.write),
            logits.read.eq(control.read),
            exp2.i.eq(logits.o),
            exp2.maximum.eq(logits.maximum),
            exp2.valid.eq(control.exponent),
            values.probability.eq(exp2.o),
            values.value.eq(self.value),
            values.first.eq(control.first),
            values.last.eq(control.last),
            values.rise.eq(logits.rise),
            merge.control.eq(control.merge),
            merge.partial.eq(values.partial),
            merge.partial_sum.eq(values.partial_sum),
            merge.rise.eq(values.finished_rise),
            reciprocal.i.eq(merge.total),
            reciprocal.start.eq(control.divide),
            normalizer.i.eq(merge.o),
            normalizer.control.eq(control.normalize),
            normalizer.zeros.eq(reciprocal.zeros),
            normalizer.reciprocal.eq(reciprocal.o),
            output.i.eq(normalizer.o),
            output.read.eq(control.drain),
            self.o.eq(output.o),
        ]
        return m
