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
#: Bits of a result of the array; the drain clamps it to an int8 where it is one.
RESULT_BITS = 16
#: Words of a port that a packet's word may have.
_LINES = (1, 2, 4)


def weight_port_counts(*, columns: int, port_bits: int) -> list[int]:
    """Return the numbers of weight ports of an array: a packet's word has one, two or four words of each.

    >>> weight_port_counts(columns=64, port_bits=256)
    [2, 4, 8]
    """
    packet = columns // CELL_COLUMNS * BEAT_BITS
    return [packet // (port_bits * lines) for lines in reversed(_LINES) if packet >= port_bits * lines]


@dataclass(frozen=True, kw_only=True)
class MatrixConfig:
    """Shape of the matrix unit."""

    inputs: int = 64  #: Inputs of a tile: bytes of a pixel's word. A power of two from 16 to 128.
    columns: int = 64  #: Columns of a tile: results of a pixel. A power of two from 4 to 128.
    block_pixels: int = 512  #: Pixels whose sums a cell holds. A power of two from 32 to 1024.
    ports: int = 8  #: Memory ports of weights.
    port_bits: int = 256  #: Bits of a word of a port; `lines` words of each port are a packet's word.
    tables: int = 64  #: Tables of 256 bytes.

    def __post_init__(self) -> None:
        check_field_types(self)
        check_power_of_two("inputs", self.inputs, 16, 128)
        check_power_of_two("columns", self.columns, 2 * CELL_COLUMNS, 128)
        check_power_of_two("block_pixels", self.block_pixels, 32, 1024)
        check_power_of_two("port_bits", self.port_bits, 64, 512)
        check_power_of_two("tables", self.tables, 2, 256)
        counts = weight_port_counts(columns=self.columns, port_bits=self.port_bits)
        if self.ports not in counts:
            legal = " or ".join(map(str, counts))
            raise InputError("ports", self.ports, f"{legal} of {self.port_bits} bits")

    @property
    def cells(self) -> int:
        """Return the number of cells."""
        return self.columns // CELL_COLUMNS

    @property
    def weight_beats(self) -> int:
        """Return the words of a tile's weights."""
        return self.inputs // BEAT_INPUTS

    @property
    def lines(self) -> int:
        """Return the words of each port in a packet's word."""
        return self.packet_bits // (self.ports * self.port_bits)

    @property
    def packet_bits(self) -> int:
        """Return the bits of a packet's word: a beat for each cell."""
        return self.cells * BEAT_BITS
