"""Sizes of the vector unit."""

from __future__ import annotations

from dataclasses import dataclass

from hw.errors import InputError, check_field_types, check_power_of_two
from hw.network.scratchpad.shape import GranuleShape

#: Lanes, of a byte each, that work as one part: those of a granule.
GRANULE_LANES = 16


@dataclass(frozen=True, kw_only=True)
class VectorConfig:
    """Lanes, and rows of the tables that commands refer to.

    >>> VectorConfig(shape=GranuleShape()).granules
    4
    """

    shape: GranuleShape  #: Of the scratchpad; its granules have 16 bytes.
    lanes: int = 64  #: Bytes a cycle; a granule at least, a word at most.
    taps: int = 512  #: Rows of windows.
    scales: int = 512  #: Factors of means and products.
    tables: int = 64  #: Tables of 256 bytes.
    exponentials: int = 2  #: Tables of 256 exponentials.
    pixels: int = 512  #: Pixels whose statistics are kept.
    channels: int = 512  #: Rows of channels' factors: of a word of int8 each, or of int16.

    def __post_init__(self) -> None:
        check_field_types(self)
        if self.shape.granule_bits != 8 * GRANULE_LANES:
            raise InputError("granule_bits", self.shape.granule_bits, f"{8 * GRANULE_LANES}")
        check_power_of_two("lanes", self.lanes, GRANULE_LANES, GRANULE_LANES * self.shape.granules)
        check_power_of_two("taps", self.taps, 2, 4096)
        check_power_of_two("scales", self.scales, 2, 4096)
        check_power_of_two("tables", self.tables, 2, 256)
        check_power_of_two("exponentials", self.exponentials, 2, 16)
        check_power_of_two("pixels", self.pixels, 2, 512)
        check_power_of_two("channels", self.channels, 2, 4096)

    @property
    def granules(self) -> int:
        """Granules of a step: the parts of the unit."""
        return self.lanes // GRANULE_LANES

    @property
    def softmax_lanes(self) -> int:
        """Channels of a softmax that are worked on in a cycle."""
        return self.lanes // 8
