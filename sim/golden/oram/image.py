"""The map's state as bytes and back: pages of host memory, records and buckets in HBM.

The layouts are in docs/oram.md, Formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hw.oram.config import BLOCK_BYTES, BUCKET_BYTES, RECORD_HEADER_BYTES, OramConfig
from sim.golden.oram.gcm import Gcm, open_pages, seal_pages
from sim.golden.oram.map import Item, ObliviousMap
from sim.golden.oram.position import MapEntry

Bytes = NDArray[np.uint8]
#: Slots of a page or a list: key and value, or None.
Slots = list[tuple[int, bytes] | None]
#: Slots of a bucket: tag and records, or None.
Bucket = list[tuple[int, tuple[int, ...]] | None]

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


def open_page(config: OramConfig, gcm: Gcm, page: int, version: int, sealed: Bytes) -> Slots:
    """Return the slots of a sealed page [P].

    Raises
    ------
    ValueError
        When its tag is wrong.
    """
    number, versions = np.array([page], np.uint64), np.array([version], np.uint64)
    (content,), (genuine,) = open_pages(gcm, number, versions, sealed[None])
    if not genuine:
        raise ValueError(f"page {page} is not the one that was written as version {version}")
    row = bytes(BLOCK_BYTES) + content.tobytes()
    bitmap = _number(row, BLOCK_BYTES)
    return _take_slots(config, row, bitmap, config.slots, BLOCK_BYTES + _NUMBER, config.page_values_offset)


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


def parse_record(config: OramConfig, image: Bytes) -> tuple[int, int, Slots]:
    """Return the version of its page, the items in its page, and the slots of a record [record_bytes]."""
    row = image.tobytes()
    bitmap = _number(row, _NUMBER)
    slots = _take_slots(
        config, row, bitmap, config.list_slots, RECORD_HEADER_BYTES, config.record_values_offset
    )
    return _number(row, 0), _number(row, 2 * _NUMBER), slots


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


def parse_bucket(config: OramConfig, image: Bytes) -> Bucket:
    """Return the slots of a bucket [128]."""
    row, size, width = image.tobytes(), config.entry_bytes, config.record_index_bits
    bitmap = int.from_bytes(row[:2], "little")
    slots: Bucket = []
    for at in range(config.bucket_entries):
        number = int.from_bytes(row[2 + at * size : 2 + (at + 1) * size], "little")
        records = number >> config.tag_bits
        found = tuple(records >> part * width & (1 << width) - 1 for part in range(config.label_count))
        slots.append((number & (1 << config.tag_bits) - 1, found) if bitmap >> at & 1 else None)
    return slots


def _bitmap(slots: Sequence[object | None]) -> bytes:
    return sum((item is not None) << at for at, item in enumerate(slots)).to_bytes(_NUMBER, "little")


def _number(row: bytes, at: int) -> int:
    return int.from_bytes(row[at : at + _NUMBER], "little")


def _put_slots(row: bytearray, slots: Sequence[Item | None], keys: int, values: int) -> None:
    """Write keys and values of the slots in use."""
    for at, item in enumerate(slots):
        if item is not None:
            size = len(item.value)
            row[keys + _NUMBER * at : keys + _NUMBER * (at + 1)] = item.key.to_bytes(_NUMBER, "little")
            row[values + size * at : values + size * (at + 1)] = item.value


def _take_slots(config: OramConfig, row: bytes, bitmap: int, slots: int, keys: int, values: int) -> Slots:
    size = config.value_bytes
    return [
        (_number(row, keys + _NUMBER * at), row[values + size * at : values + size * (at + 1)])
        if bitmap >> at & 1
        else None
        for at in range(slots)
    ]


def _rows(rows: Sequence[bytearray], size: int) -> Bytes:
    return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, size)
