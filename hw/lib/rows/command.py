"""What a cutter or a packer is told of rows."""

from __future__ import annotations

from amaranth.lib import data

from hw.errors import InputError


class RowsCommand(data.StructLayout):
    """Rows that lie behind each other in memory, all of one size.

    ``unit_bits``: bits of a unit, of which every row is a whole number.
    """

    def __init__(self, *, most_rows: int, most_units: int, unit_bits: int) -> None:
        for name, value in (("most_rows", most_rows), ("most_units", most_units)):
            if not isinstance(value, int) or value < 1:
                raise InputError(name, value, "a whole number of at least 1")
        if not isinstance(unit_bits, int) or unit_bits < 1 or unit_bits & (unit_bits - 1):
            raise InputError("unit_bits", unit_bits, "a power of two")
        self.unit_bits = unit_bits
        self.most_rows = most_rows
        super().__init__(
            {
                "rows": range(most_rows + 1),  #: How many: 1 ... ``most_rows``.
                "units": range(most_units + 1),  #: Of each: 1 ... ``most_units``.
            }
        )

    def check_width(self, data_width: int) -> None:
        """Raise `InputError` unless a word of ``data_width`` bits has a power of two of whole units."""
        if not isinstance(data_width, int) or data_width < self.unit_bits or data_width & (data_width - 1):
            raise InputError("data_width", data_width, f"a power of two of at least {self.unit_bits}")
