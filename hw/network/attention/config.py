"""Sizes of the attention unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hw.attention.config import AttentionConfig
from hw.errors import InputError, check_field_types, check_power_of_two
from hw.network.scratchpad.shape import GranuleShape

#: Lanes, of a byte each, in a granule.
GRANULE_LANES = 16
#: Most granules of a beat of results.
_BEAT_GRANULES = 2


@dataclass(frozen=True, kw_only=True)
class AttentionUnitConfig:
    """Rows and lanes of the core, and the tokens that its buffers hold.

    >>> config = AttentionUnitConfig(shape=GranuleShape())
    >>> config.granules, config.beat_granules, config.core.rows
    (4, 2, 16)
    """

    shape: GranuleShape  #: Of the scratchpad; its granules have 16 bytes.
    rows: int = 16  #: Queries of a pass.
    lanes: int = 64  #: Most elements of a head, a multiple of 16; a key and a value a cycle.
    tile_keys: int = 32  #: Keys after which partial sums are merged.
    merge_lanes: int = 4  #: Lanes a cycle of the merge and of the division.
    probability_bits: Literal[8, 12, 16, 20] = 20  #: Probabilities are in units of ``2^-probability_bits``.
    tokens: int = 512  #: Most queries, and most keys, of a command: a power of two.

    def __post_init__(self) -> None:
        check_field_types(self)
        if self.shape.granule_bits != 8 * GRANULE_LANES:
            raise InputError("granule_bits", self.shape.granule_bits, f"{8 * GRANULE_LANES}")
        if self.granules > self.shape.granules:
            raise InputError("lanes", self.lanes, f"at most {GRANULE_LANES * self.shape.granules}")
        check_power_of_two("tokens", self.tokens, 16, 4096)
        _ = self.core  # checks the other fields

    @property
    def core(self) -> AttentionConfig:
        """Shape of the core: one stream, heads of one part, results of int8."""
        return AttentionConfig(
            rows=self.rows,
            lanes=self.lanes,
            folds=1,
            tile_keys=self.tile_keys,
            streams=1,
            merge_lanes=self.merge_lanes,
            cached_keys=0,
            probability_bits=self.probability_bits,
            output="int8",
        )

    @property
    def granules(self) -> int:
        """Most granules of a head."""
        return self.lanes // GRANULE_LANES

    @property
    def beat_granules(self) -> int:
        """Granules of a beat of results."""
        return min(self.granules, _BEAT_GRANULES)

    def row_beats(self, head_dim: int) -> int:
        """Return the beats of a row of results."""
        return -(-head_dim // (GRANULE_LANES * self.beat_granules))
