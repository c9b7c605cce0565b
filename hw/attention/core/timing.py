"""When each stage of the core works: sums of the latencies that the stages state."""

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
    """Start of each stage, in cycles from an event before."""

    def __init__(self, config: AttentionConfig) -> None:
        #: From a part of a key on the rows' port: ``accumulate``, and ``first`` for its key's first part.
        self.first = ScoreUnit.first_latency(config)
        #: From the last part of a key: ``key``, its index.  Settings adopted in an earlier cycle apply.
        self.scale = ScoreUnit.latency(config)
        #: From the first part of a pass's first key: ``adopt``.  It is one cycle before ``scale`` of a key of
        #: one part, and behind the last score of the pass before.
        self.adopt = self.scale - 1
        self.cap = self.scale + LogitUnit.cap_latency(config)  #: From the last part of a key: ``cap``.
        #: From the last part of a key: ``write``, its logit goes into the buffer.
        self.write = self.scale + LogitUnit.latency(config)
        # A register: the handshake is late in a cycle, and rows may lie on another die.
        #: From `hw.attention.core.value_side.ValueSide` taking a part of a value: ``read``, its logit leaves
        #: the buffer.  Below, a read is the moment of taking, as nothing stalls behind it.
        self.read = 1
        #: From the last part of a tile's last key: its first logit may be read.
        self.ready = self.write + LogitBuffer.LATENCY - self.read
        self.exponent = self.read + 1  #: From a read: ``exponent``, the logit enters the exponential.
        #: From a read: ``value``, the probability meets the part on the rows' port.
        self.step = self.exponent + Exp2.LATENCY
        # The running output is read a cycle before the tile's sums, as they meet a cycle later.
        #: From a tile's last read to step 0 of ``merge``, at the earliest.
        self.merge = self.step + ValueUnit.LATENCY - 1
        # A tile's rise is kept while the tile passes the exponential.
        #: Fewest cycles from the last read of a tile, or from a later start of its merge, to the first read
        #: of the last key of the next tile.
        self.ends = self.step - self.read + 1
        #: From a pass's last read: its sum is final, plus the delay of its ``merge``.
        self.final = self.merge + Merge.LATENCY + Finals.sum_latency(config)
        #: ``divide``, ``normalize``, ``drained``: from the combination of a pass; with one stream from the
        #: cycle of ``final``, as its sum and its one bank of lanes change again.  Start of the division; step
        #: 0 of the normalization (``final`` and ``normalize`` in the same cycle); the results of a pass of
        #: ``merge_steps`` steps may be read.
        self.divide = Combine.sum_latency(config)
        quotient = self.divide + Reciprocal.latency(config)
        lane_latency = Combine.lane_latency(config)
        self.normalize = quotient - Normalizer.RECIPROCAL_SLACK - lane_latency
        self.drained = self.normalize + lane_latency + config.merge_steps + Normalizer.latency(config)
        #: Fewest cycles between combinations, if the normalization has no more steps.
        self.interval = Reciprocal.latency(config)
