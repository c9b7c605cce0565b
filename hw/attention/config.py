"""Shape of the attention engine, and the widths that follow from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hw.errors import InputError

#: Most keys of a head; widths of running output and running sum allow for it (``docs/attention.md``).
MAX_KEYS = 65536
#: Bits of a probability, 0 ... 2^16.
PROBABILITY_BITS = 17
#: Bits of a logit t, and how many of them are fraction.
LOGIT_BITS = 24
LOGIT_FRACTION_BITS = 12
#: Bits of a whole log2 maximum M.
MAXIMUM_BITS = 13
#: Bits of the running output O (signed) and the running sum l (unsigned).
OUTPUT_BITS = 40
SUM_BITS = 33
#: A rescale by this many places or more leaves zero of any O and l.
MAX_RESCALE = 40
#: Bits of a rescale amount.
RESCALE_BITS = 6
#: Bits of the launch arguments.
MULTIPLIER_BITS = 17
SHIFT_BITS = 6
FRACTION_BITS = 4

_SEGMENTS = 16
_TABLE_BITS = 18


@dataclass(frozen=True, kw_only=True)
class AttentionConfig:
    """Shape of the attention engine; numbers of tokens and heads are launch arguments, not part of it.

    Parameters
    ----------
    rows
        R, query rows held by the arrays: 1 to 64.
    head_dim
        D, lanes of each array and elements of a query, key and value: 32 or 64.
    tile_keys
        T, keys after which partial sums are merged: a power of two from 16 to 128.
    ports_per_stream
        P, memory ports that keys (and again values) are sliced over: a power of two up to ``head_dim / 4``.
    merge_lanes
        Lanes that the merge and the normalizer of a row take a cycle: a power of two up to ``head_dim / 8``,
        and at least ``head_dim / tile_keys`` so that a merge ends within a tile.
    """

    rows: int = 32
    head_dim: int = 64
    tile_keys: int = 64
    ports_per_stream: int = 2
    merge_lanes: int = 2

    def __post_init__(self) -> None:
        for name in ("rows", "head_dim", "tile_keys", "ports_per_stream", "merge_lanes"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise InputError(name, value, "a whole number")
        if not 1 <= self.rows <= 64:
            raise InputError("rows", self.rows, "from 1 to 64")
        if self.head_dim not in (32, 64):
            raise InputError("head_dim", self.head_dim, "32 or 64")
        _check_power("tile_keys", self.tile_keys, 16, 128)
        _check_power("ports_per_stream", self.ports_per_stream, 1, self.head_dim // 4)
        _check_power(
            "merge_lanes", self.merge_lanes, max(1, self.head_dim // self.tile_keys), self.head_dim // 8
        )

    @property
    def row_bits(self) -> int:
        """Bits of one query, key or value."""
        return 8 * self.head_dim

    @property
    def index_bits(self) -> int:
        """Bits of a key's place in its tile."""
        return int(math.log2(self.tile_keys))

    @property
    def score_bits(self) -> int:
        """Bits of a raw score S, signed."""
        return 16 + int(math.log2(self.head_dim))

    @property
    def partial_bits(self) -> int:
        """Bits of a partial sum of one tile, signed."""
        return 24 + self.index_bits

    @property
    def partial_sum_bits(self) -> int:
        """Bits of a tile's sum of probabilities, unsigned: T * 2^16 must fit."""
        return 17 + self.index_bits

    @property
    def merge_steps(self) -> int:
        """Cycles in which the merge (and the normalizer) passes over a row's lanes."""
        return self.head_dim // self.merge_lanes

    @property
    def step_bits(self) -> int:
        """Bits of a merge step's number."""
        return int(math.log2(self.merge_steps))

    def output_beats(self, beat_width: int) -> int:
        """Beats of ``beat_width`` bits that hold one row of int16 outputs."""
        return max(1, 16 * self.head_dim // beat_width)


def exp2_table() -> tuple[tuple[int, int], ...]:
    """Give start Y and drop Z of each of the 16 segments of 2^-x on [0, 1), in units of 2^-18.

    The line of a segment is the chord moved down by half its largest distance from the curve, which is where
    the curve's slope equals the chord's: of all lines it has the smallest largest error.
    """
    table = []
    for segment in range(_SEGMENTS):
        left = 2.0 ** (-segment / _SEGMENTS)
        drop = left - 2.0 ** (-(segment + 1) / _SEGMENTS)
        touch = drop * _SEGMENTS / math.log(2)  # 2^-x where d/dx 2^-x is the chord's slope
        distance = -math.log2(touch) - segment / _SEGMENTS
        gap = left - drop * _SEGMENTS * distance - touch
        table.append((round(2**_TABLE_BITS * (left - gap / 2)), round(2**_TABLE_BITS * drop)))
    return tuple(table)


def _check_power(name: str, value: int, low: int, high: int) -> None:
    if not (low <= value <= high and value & (value - 1) == 0):
        raise InputError(name, value, f"a power of two from {low} to {high}")
