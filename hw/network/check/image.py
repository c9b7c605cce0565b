"""The check of an image: no row of a RAM arrives behind the opening and a record that refers to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from amaranth.lib import data

from hw.network.check.clocks import OrderError
from hw.network.commands import VectorKind
from hw.network.config import NetworkConfig
from hw.network.program.image import opening_records
from hw.network.program.records import (
    EXPONENTIAL_ROWS,
    FIRST_RAM,
    RECORD_BYTES,
    SLOTS_LAYOUT,
    TABLE_BITS,
    TABLE_ROWS,
    TableNumber,
    row_layout,
)

#: Rows of a RAM: its number, the first row, and how many.
Rows = tuple[TableNumber, int, int]

_REFERRING = (TableNumber.WEIGHTS, TableNumber.DRAIN, TableNumber.LOOPS)


def check_image(image: bytes, config: NetworkConfig) -> None:
    """Raise `OrderError` unless each row of a RAM is there before a command that may read it starts.

    Rows of the opening are.  Others come before all records that refer to them, which the kernel executes as
    they arrive.  The check trusts the bits of the image, and no one who made them.
    """
    opening = RECORD_BYTES * opening_records(image)
    layouts = {number: row_layout(number, config) for number in _REFERRING}
    # Of each row of a RAM, the first record that refers to it.
    most = {
        number: np.full(1 << SLOTS_LAYOUT["first"].width, len(image))
        for number in TableNumber
        if number >= FIRST_RAM
    }
    for at in range(0, len(image), RECORD_BYTES):
        bits = int.from_bytes(image[at : at + RECORD_BYTES], "little")
        number = TableNumber(bits & (1 << TABLE_BITS) - 1)
        if number >= FIRST_RAM:
            first, count = _slots(bits >> TABLE_BITS)
            reader = int(most[number][first : first + count].min())
            if at >= opening and reader < at:
                raise OrderError(
                    f"record {at // RECORD_BYTES} has rows of {number.name} behind record "
                    f"{reader // RECORD_BYTES}, which refers to them"
                )
        elif number in layouts:
            layout = layouts[number]
            row = layout.from_bits(bits >> TABLE_BITS & (1 << layout.size) - 1)
            for ram, first, count in _read(number, row, config):
                own = most[ram][first : first + count]
                own[own > at] = at


def _slots(bits: int) -> tuple[int, int]:
    row = SLOTS_LAYOUT.from_bits(bits & (1 << SLOTS_LAYOUT.size) - 1)
    return row.first, row.count


def _read(number: TableNumber, row: data.Const[Any], config: NetworkConfig) -> Iterator[Rows]:
    """Yield the rows that a record refers to."""
    if number is TableNumber.WEIGHTS:
        yield TableNumber.TAPS, row.taps.first, row.taps.count
    elif number is TableNumber.DRAIN:
        if row.drain.settings.maps:
            yield TableNumber.TABLES, TABLE_ROWS * row.table, TABLE_ROWS
    else:
        yield TableNumber.VECTOR_TAPS, row.first_tap, row.taps
        if row.kind in (VectorKind.MEAN, VectorKind.MULTIPLY):
            # Of a window, a row for each number of its elements.
            elements = row.taps * row.columns * (1 + row.pairs)
            yield TableNumber.SCALES, row.scale, elements if row.counted else 1
        if row.kind == VectorKind.TABLE:
            yield TableNumber.TABLES, TABLE_ROWS * row.table, TABLE_ROWS
        if row.kind == VectorKind.SOFTMAX:
            yield TableNumber.EXPONENTIALS, EXPONENTIAL_ROWS * row.exponential, EXPONENTIAL_ROWS
        if row.kind == VectorKind.NORM:
            yield TableNumber.CHANNELS, config.lanes * row.channel_row, config.lanes * row.outer
