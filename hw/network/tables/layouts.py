"""Rows of tables, as the loader writes them and as lanes keep them."""

from __future__ import annotations

from amaranth.hdl import ShapeLike
from amaranth.lib import data, wiring
from amaranth.lib.wiring import Out

#: Bytes of a table: a result for each int8.
TABLE_BYTES = 256
#: Words of a table as it is stored; word n holds the results of bytes n, n + 64, n + 128 and n + 192.
TABLE_WORDS = 64
#: Words that the store takes at once, and their groups in a table.
GROUP_WORDS = 8
TABLE_GROUPS = TABLE_WORDS // GROUP_WORDS


class RowWrite(wiring.Signature):
    """A write port of a table, seen from its user."""

    def __init__(self, rows: int, shape: ShapeLike) -> None:
        super().__init__({"enable": Out(1), "row": Out(range(rows)), "data": Out(shape)})


class GroupWrite(RowWrite):
    """A write port of the store of so many tables."""

    def __init__(self, tables: int) -> None:
        super().__init__(TABLE_GROUPS * tables, data.ArrayLayout(32, GROUP_WORDS))


class TableWrite(data.StructLayout):
    """A word of the table in lanes: results n, n + 64, n + 128 and n + 192."""

    def __init__(self) -> None:
        super().__init__({"enable": 1, "row": range(TABLE_WORDS), "data": 32})


def table_words(table: bytes) -> list[int]:
    """Return a table, the results of bytes -128 to 127, as the words in which a unit stores it.

    >>> [hex(word) for word in table_words(bytes(range(256)))[:2]]
    ['0xc0804000', '0xc1814101']
    """
    return [
        sum(table[n + TABLE_WORDS * part] << 8 * part for part in range(len(table) // TABLE_WORDS))
        for n in range(TABLE_WORDS)
    ]
