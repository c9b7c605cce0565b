"""The command of a row cutter or packer."""

from amaranth.lib import data

from hw.errors import check_power_of_two, check_whole


class RowsCommand(data.StructLayout):
    """Contiguous rows of one size.

    ``unit_bits``: bits of a unit; every row is a whole number of units.

    >>> RowsCommand(most_rows=1024, most_units=32, unit_bits=128).size
    17
    """

    def __init__(self, *, most_rows: int, most_units: int, unit_bits: int) -> None:
        for name, value in (("most_rows", most_rows), ("most_units", most_units)):
            check_whole(name, value, 1)
        check_power_of_two("unit_bits", unit_bits)
        self.unit_bits = unit_bits
        self.most_rows = most_rows
        super().__init__(
            {
                "rows": range(most_rows + 1),  #: Number of rows: 1 ... ``most_rows``.
                "units": range(most_units + 1),  #: Units of a row: 1 ... ``most_units``.
            }
        )

    def check_width(self, data_width: int) -> None:
        """Raise `InputError` unless a word of ``data_width`` bits is a power of two of units."""
        check_power_of_two("data_width", data_width, self.unit_bits)
