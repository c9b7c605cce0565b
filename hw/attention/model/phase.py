"""What the schedule of jobs that decode has of its own; all else is as for other jobs."""

from __future__ import annotations

from hw.attention.config import AttentionConfig
from hw.attention.core.command import PART_LATENCY
from hw.attention.core.row.cell import Timing


class Phase:
    """Times of jobs that decode, or of jobs that do not, of which there are none together in the engine.

    Parameters
    ----------
    config
        Shape of the engine.
    decode
        Which of the two.

    Members
    -------
    sides
        Sides of keys and values, each with a schedule: one for each stream, or one for all in lockstep.
    behind
        Cycles by which a part of a key that was taken is later at the rows than one from a stream of its own.
    joined
        Cycles by which the sums of all streams are later joined.  Those of P cells meet in the results of a
        row one after the other, first for their maximum and then for their sums.
    rounds
        Cycles of a step of the normalization.
    """

    def __init__(self, config: AttentionConfig, *, decode: bool) -> None:
        ports = config.ports_per_stream
        self._timing, self._decode = Timing(config), decode
        self.sides = 1 if decode else config.streams
        self.behind = PART_LATENCY - 1 if decode else 0
        self.joined = 2 * ports if decode else 0
        self.rounds = ports if decode else 1

    def interval(self, steps: int) -> int:
        """Give the fewest cycles from the combination of a pass, whose normalization takes ``steps`` cycles,
        to that of the next pass.
        """
        if self._decode:
            return self.joined + self._timing.normalize + steps
        return max(self._timing.interval, steps)

    def read(self, steps: int) -> int:
        """Give the cycles from the combination of a pass until the sums of the streams may be overwritten."""
        return self.joined + self._timing.normalize + steps - steps // self.rounds
