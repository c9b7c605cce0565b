"""Gathers of a program: numbers in place of the rows, and tables behind all else in the region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from hw.errors import InputError
from hw.network.compile.compile import Compiled
from hw.network.compile.form import GRANULE, WORD_BYTES, Form
from hw.network.graph.network import Gather, Value
from hw.network.program.program import Gathered, Home
from hw.network.program.records import GATHER_BITS, GATHER_ROW_BITS


class Gathers:
    """The gathers of a compiled network.

    Numbers lie in the home of the rows that they choose, which nothing else needs.

    Raises `InputError` for a table whose rows are no whole words, or with more rows than every kernel reads.
    """

    def __init__(self, compiled: Compiled, homes: Sequence[Home]) -> None:
        self.rows: dict[str, Gathered] = {}  #: Of each read transfer, by the value of the rows.
        #: Homes of the numbers, and of the tables.
        self.numbers: list[Home] = []
        self.tables: list[Home] = []
        self.contents: dict[str, NDArray[Any]] = {}  #: Elements of the tables.
        found = {home.value.name: home for home in homes}
        self._end = _words(max((home.address + home.size_bytes for home in homes), default=0))
        for name, gather in compiled.steps.gathers.items():
            if name in found:
                self._add(gather, compiled.steps.values[gather.inputs[0]], found[name])

    def _add(self, gather: Gather, numbers: Value, home: Home) -> None:
        rows, channels = gather.table.shape
        count = home.form.width
        granules = home.form.granules * GRANULE
        field = f"table of operator {gather.name!r}"
        if granules % WORD_BYTES:
            raise InputError(f"channels of the {field}", channels, f"a multiple of {WORD_BYTES // 2}")
        for what, value, bits in (
            (f"rows of the {field}", rows, GATHER_ROW_BITS),
            (f"rows of operator {gather.name!r}", count, GATHER_BITS),
        ):
            if value >= 1 << bits:
                raise InputError(what, value, f"less than {1 << bits}")
        table = self._table(gather, rows)
        self.rows[gather.output] = Gathered(rows=count, table=table.address // WORD_BYTES, table_rows=rows)
        form = Form.plain((1, 1, count), bits=32)
        self.numbers.append(Home(value=numbers, form=form, address=home.address, first_row=0, rows=1))

    def _table(self, gather: Gather, rows: int) -> Home:
        """Place a table once, for all gathers that read it."""
        for home in self.tables:
            if self.contents[home.value.name] is gather.table:
                return home
        shape = (1, *gather.table.shape)
        value = Value(name=f"{gather.name}:table", shape=shape, scale=1.0, zero=0, bits=16)
        form = Form.plain(shape, bits=16)
        home = Home(value=value, form=form, address=self._end * WORD_BYTES, first_row=0, rows=1)
        self._end += _words(home.size_bytes)
        self.tables.append(home)
        self.contents[value.name] = gather.table
        return home


def _words(size_bytes: int) -> int:
    return -(-size_bytes // WORD_BYTES)
