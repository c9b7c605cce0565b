"""The schedule of jobs that decode, where it differs from that of others."""

from hw.attention.config import AttentionConfig
from hw.attention.core.command import PART_LATENCY
from hw.attention.core.gathering import Gathering
from hw.attention.core.result.combine import Combine
from hw.attention.core.result.gather import Gather
from hw.attention.core.timing import CoreTiming


class PhaseTiming:
    """Times of jobs that decode, or of jobs that do not; the core runs one kind at a time.

    ``decode``: the kind.
    """

    def __init__(self, config: AttentionConfig, *, decode: bool) -> None:
        self._config, self._timing, self._decode = config, CoreTiming(config), decode
        # Delay of the lanes of all cells against those of all streams.
        self._lanes = Gather.lane_latency(config) - Combine.lane_latency(config) if decode else 0
        #: Sides of keys and values, each with a schedule: one for each stream, or one for all in lockstep.
        self.sides = 1 if decode else config.streams
        #: Delay at the rows of a part of a key against one that a stream broadcasts.
        self.behind = PART_LATENCY - 1 if decode else 0
        self._rounds = config.ports if decode else 1  # cycles of a step

    @property
    def normalize(self) -> int:
        """Return the cycles from the combination of a pass to the first step of its normalization."""
        return Gathering.lanes_at(self._config) if self._decode else self._timing.normalize

    def combines(self, ready: int, *, before: int, steps: int) -> int:
        """Return the first cycle from ``ready`` on in which a pass may be combined.

        The pass before, with ``steps``, was combined in the cycle ``before``.
        """
        if self._decode:
            return Gathering.starts(self._config, ready, before=before, steps=steps)
        return max(ready, before + max(self._timing.interval, steps))

    def read(self, steps: int) -> int:
        """Return the cycles from the combination of a pass until the sums of its streams may be overwritten.

        Without rounds they are read as fast as those of the next pass arrive.
        """
        return self.normalize + (steps * self._rounds - 1 if self._decode else 0)

    def drained(self, steps: int) -> int:
        """Return the cycles from the combination of a pass until all its results may be read."""
        behind = self._timing.drained - self._timing.normalize - self._config.merge_steps
        return self.normalize + steps * self._rounds + behind + self._lanes
