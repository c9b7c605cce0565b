"""The map's state as bytes: pages of host memory, records and buckets in HBM.

The layouts are in docs/oram.md, Formats.
"""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hw.oram.config import BLOCK_BYTES, BUCKET_BYTES, RECORD_HEADER_BYTES
from sim.golden.oram.gcm import Gcm, seal_pages
from sim.golden.oram.map import Item, ObliviousMap
from sim.golden.oram.position import MapEntry

Bytes = NDArray[np.uint8]

_NUMBER = 8


def page_contents(state: ObliviousMap, pages: Iterable[int]) -> Bytes:
    """Return the plain text of each page, [n, P - 16]."""
    config = state.config
    rows = []
    for page in pages:
        row = bytearray(config.page_bytes)
        slots = state.pages.get(page, [])
        row[BLOCK_BYTES : BLOCK_BYTES + _NUMBER] = _bitmap(slots)
        _put_slots(row, slots, BLOCK_BYTES + _NUMBER, config.page_values_offset)
        rows.append(row[BLOCK_BYTES:])
    return _rows(rows, config.page_bytes - BLOCK_BYTES)


def sealed_pages(state: ObliviousMap, gcm: Gcm, pages: Sequence[int]) -> Bytes:
    """Return the pages in host memory, [n, P]: sealed under their versions."""
    versions = np.array([1 + state.writes.get(page, 0) for page in pages], np.uint64)
    return seal_pages(gcm, np.array(pages, np.uint64), versions, page_contents(state, pages))


def record_images(state: ObliviousMap, records: Iterable[int]) -> tuple[Bytes, NDArray[np.bool_]]:
    """Return records in HBM, [n, record_bytes], and a mask of their defined bytes."""
    config = state.config
    rows, cares = [], []
    for record in records:
        slots = state.records.get(record, [])
        in_page = state.pages.get(record, []) if record < config.host_pages else []
        head = (1 + state.writes.get(record, 0), 0, sum(item is not None for item in in_page), 0)
        row = bytearray(config.record_bytes)
        row[:RECORD_HEADER_BYTES] = b"".join(number.to_bytes(_NUMBER, "little") for number in head)
        row[_NUMBER : 2 * _NUMBER] = _bitmap(slots)
        _put_slots(row, slots, RECORD_HEADER_BYTES, config.record_values_offset)
        care = bytearray(config.record_bytes)
        care[:RECORD_HEADER_BYTES] = b"\1" * RECORD_HEADER_BYTES
        used = [item and Item((1 << 64) - 1, b"\1" * config.value_bytes, 0) for item in slots]
        _put_slots(care, used, RECORD_HEADER_BYTES, config.record_values_offset)
        rows.append(row)
        cares.append(care)
    return _rows(rows, config.record_bytes), _rows(cares, config.record_bytes) > 0


def bucket_images(state: ObliviousMap, table: int, buckets: Iterable[int]) -> tuple[Bytes, NDArray[np.bool_]]:
    """Return buckets of a table in HBM, [n, 128], and a mask of their defined bytes."""
    config, position = state.config, state.position
    rows, cares = [], []
    size = config.entry_bytes
    for bucket in buckets:
        slots: Sequence[MapEntry | None] = position.tables[table].get(bucket, [])
        row, care = bytearray(BUCKET_BYTES), bytearray(BUCKET_BYTES)
        row[:2], care[:2] = _bitmap(slots)[:2], b"\1\1"
        for at, entry in enumerate(slots):
            if entry is not None:
                number = position.tag(table, entry.permuted)
                for part, record in enumerate(entry.records):
                    number |= record << config.tag_bits + part * config.record_index_bits
                place = slice(2 + at * size, 2 + (at + 1) * size)
                row[place], care[place] = number.to_bytes(size, "little"), b"\1" * size
        rows.append(row)
        cares.append(care)
    return _rows(rows, BUCKET_BYTES), _rows(cares, BUCKET_BYTES) > 0


def erased_images(lines: int, line_bytes: int, version: int) -> tuple[Bytes, NDArray[np.bool_]]:
    """Return erased lines of a table, [lines, line_bytes], and a mask of their defined bytes: all of them."""
    row = bytearray(version.to_bytes(line_bytes, "little"))
    return _rows([row] * lines, line_bytes), np.ones((lines, line_bytes), bool)


def _bitmap(slots: Sequence[object | None]) -> bytes:
    return sum((item is not None) << at for at, item in enumerate(slots)).to_bytes(_NUMBER, "little")


def _put_slots(row: bytearray, slots: Sequence[Item | None], keys: int, values: int) -> None:
    """Write keys and values of the slots in use."""
    for at, item in enumerate(slots):
        if item is not None:
            size = len(item.value)
            row[keys + _NUMBER * at : keys + _NUMBER * (at + 1)] = item.key.to_bytes(_NUMBER, "little")
            row[values + size * at : values + size * (at + 1)] = item.value


def _rows(rows: Sequence[bytearray], size: int) -> Bytes:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, size)
