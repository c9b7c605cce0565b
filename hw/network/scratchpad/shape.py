"""Shape of a scratchpad in granules."""

from __future__ import annotations

from dataclasses import dataclass

from amaranth.utils import bits_for, exact_log2

from hw.errors import InputError, check_field_types, check_power_of_two, check_range
from hw.lib.memory import RamStyle, check_ram_style

#: Words of a RAM: the depth of one UltraRAM.
MOST_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class GranuleShape:
    """Banks, rows and widths.

    >>> shape = GranuleShape()
    >>> shape.bytes >> 20, shape.address_bits, shape.granule_address_bits
    (4, 16, 18)
    """

    banks: int = 16  #: Banks of a slice; a power of two from 2 to 32.
    rows: int = 4096  #: Words of a bank; a power of two of at least ``banks``.
    granules: int = 4  #: Granules of a word, and slices; a power of two from 2 to 8.
    granule_bits: int = 128  #: Bits of a granule, a multiple of 32.
    memory: RamStyle = "ultra"  #: Kind of RAM.

    def __post_init__(self) -> None:
        check_field_types(self)
        check_power_of_two("banks", self.banks, 2, 32)
        check_power_of_two("rows", self.rows, self.banks, MOST_ROWS)
        check_power_of_two("granules", self.granules, 2, 8)
        check_range("granule_bits", self.granule_bits, 32)
        if self.granule_bits % 32:
            raise InputError("granule_bits", self.granule_bits, "a multiple of 32")
        check_ram_style(self.memory)

    @property
    def words(self) -> int:
        """Words of the scratchpad."""
        return self.banks * self.rows

    @property
    def bytes(self) -> int:
        """Bytes of the scratchpad."""
        return self.words * self.word_bits // 8

    @property
    def word_bits(self) -> int:
        """Bits of a word."""
        return self.granules * self.granule_bits

    @property
    def bank_bits(self) -> int:
        """Bits of the number of a bank."""
        return exact_log2(self.banks)

    @property
    def row_bits(self) -> int:
        """Bits of a row of a bank."""
        return exact_log2(self.rows)

    @property
    def offset_bits(self) -> int:
        """Bits of a granule's place in its word."""
        return exact_log2(self.granules)

    @property
    def address_bits(self) -> int:
        """Bits of the address of a word."""
        return bits_for(self.words - 1)

    @property
    def granule_address_bits(self) -> int:
        """Bits of the address of a granule."""
        return self.address_bits + self.offset_bits

    def bank_of(self, word: int) -> int:
        """Return the bank of a word: neighbours lie in neighbouring banks, and rows are turned.

        >>> [GranuleShape().bank_of(word) for word in (0, 1, 15, 16, 32)]
        [0, 1, 15, 1, 2]
        """
        return (word + word // self.banks) % self.banks
