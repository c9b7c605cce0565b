"""When each stage of the core works: one home for the times of its stages, summed from their latencies."""

from __future__ import annotations

from hw.attention.config import AttentionConfig
from hw.attention.core.result.combine import Combine
from hw.attention.core.result.finals import Finals
from hw.attention.core.result.normalize import Normalizer
from hw.attention.core.result.reciprocal import Reciprocal
from hw.attention.core.row.exp2 import Exp2
from hw.attention.core.row.logit import LogitUnit
from hw.attention.core.row.maximum import LogitBuffer
from hw.attention.core.row.merge import Merge
from hw.attention.core.row.score import ScoreUnit
from hw.attention.core.row.value import ValueUnit


class CoreTiming:
    """When each stage works."""

    def __init__(self, config: AttentionConfig) -> None:
        #: From a part of a key on the rows' port: ``accumulate``, and ``first`` for its key's first part.
        self.first = ScoreUnit.first_latency(config)
        #: From the last part of a key: ``key``, its index.  Settings that were adopted in the cycle before,
        #: or earlier, count.
        self.scale = ScoreUnit.latency(config)
        #: From the first part of a pass's first key: ``adopt``.  It comes one cycle before ``scale`` would
        #: for a key of one part, behind the last score of the pass before in any case.
        self.adopt = self.scale - 1
        self.cap = self.scale + LogitUnit.cap_latency(config)  #: From the last part of a key: ``cap``.
        #: From the last part of a key: ``write``, its logit goes into the buffer.
        self.write = self.scale + LogitUnit.latency(config)
        # A register: whether a part is taken is known late in a cycle, and rows may lie on another die.
        #: From when `hw.attention.core.value_side.ValueSide` takes a part of a value: ``read``, the logit
        #: leaves the buffer.  The following call this moment the read, as nothing can wait behind it.
        self.read = 1
        #: From the last part of a tile's last key: its first logit may be read.
        self.ready = self.write + LogitBuffer.LATENCY - self.read
        self.exponent = self.read + 1  #: From a read: ``exponent``, the logit enters the exponential.
        #: From a read: ``value``, the probability meets the part, which is on the rows' port.
        self.step = self.exponent + Exp2.LATENCY
        # The running output may be read before the tile's sums are there: they meet a cycle later.
        #: From a tile's last read to step 0 of ``merge``, which may be later.
        self.merge = self.step + ValueUnit.LATENCY - 1
        # A tile's rise is kept while the tile goes through the exponential.
        #: Fewest cycles from the last read of a tile, or from the start of its merge if that is later, to the
        #: first read of the last key of the next.
        self.ends = self.step - self.read + 1
        #: From a pass's last read: its sum is final, and it may be combined with those of other streams; as
        #: much later as ``merge`` is.
        self.final = self.merge + Merge.LATENCY + Finals.sum_latency(config)
        #: ``divide``, ``normalize``, ``drained``: from there: with several streams from ``combine``, when all
        #: have got there, with one stream from the very cycle of ``final``, as its sum and its one bank of
        #: lanes go on changing.  Start of the division; step 0 of the normalization (``final`` and
        #: ``normalize`` in the same cycle); for a pass of ``merge_steps`` steps, all its results may be read.
        self.divide = Combine.sum_latency(config)
        quotient = self.divide + Reciprocal.latency(config)
        lane_latency = Combine.lane_latency(config)
        self.normalize = quotient - Normalizer.RECIPROCAL_SLACK - lane_latency
        self.drained = self.normalize + lane_latency + config.merge_steps + Normalizer.latency(config)
        #: Fewest cycles from there to the same of the next pass, if the normalization has not more steps.
        self.interval = Reciprocal.latency(config)
