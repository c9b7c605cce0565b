"""Shape of the matrix unit."""

from __future__ import annotations

from dataclasses import dataclass

from hw.errors import InputError, check_field_types, check_power_of_two

#: Columns of a cell: those that share multipliers.
CELL_COLUMNS = 2
#: Inputs whose weights arrive in one beat of a cell, for all of its columns.
BEAT_INPUTS = 4
#: Bits of a beat of a cell.
BEAT_BITS = 8 * BEAT_INPUTS * CELL_COLUMNS


@dataclass(frozen=True, kw_only=True)
class MatrixConfig:
    """Shape of the matrix unit."""

    inputs: int = 64  #: Inputs of a tile: bytes of a pixel's word. A power of two from 16 to 128.
    columns: int = 64  #: Columns of a tile: results of a pixel. A power of two from 4 to 128.
    block_pixels: int = 512  #: Pixels whose sums a cell holds. A power of two from 32 to 1024.
    ports: int = 8  #: Memory ports of weights, each with an equal share of a packet's word.

    def __post_init__(self) -> None:
        check_field_types(self)
        check_power_of_two("inputs", self.inputs, 16, 128)
        check_power_of_two("columns", self.columns, 2 * CELL_COLUMNS, 128)
        check_power_of_two("block_pixels", self.block_pixels, 32, 1024)
        if self.ports < 1 or self.cells % self.ports:
            raise InputError("ports", self.ports, f"a divisor of {self.cells} cells")

    @property
    def cells(self) -> int:
        """Return the number of cells."""
        return self.columns // CELL_COLUMNS

    @property
    def weight_beats(self) -> int:
        """Return the words of a tile's weights."""
        return self.inputs // BEAT_INPUTS

    @property
    def packet_bits(self) -> int:
        """Return the bits of a packet's word: a beat for each cell."""
        return self.cells * BEAT_BITS
