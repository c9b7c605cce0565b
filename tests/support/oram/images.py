"""Bytes of the map's state back to slots: pages of host memory, records and buckets in HBM.

`sim.golden.oram.image` makes these bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from hw.oram.config import BLOCK_BYTES, RECORD_HEADER_BYTES, OramConfig
from hw.oram.driver.buffers import board_arguments, swap_halves
from sim.golden.oram.gcm import Gcm, page_ivs
from sim.golden.oram.image import Bytes

#: Slots of a page or a list: key and value, or None.
Slots = list[tuple[int, bytes] | None]
#: Slots of a bucket: tag and records, or None.
Bucket = list[tuple[int, tuple[int, ...]] | None]

Words = NDArray[np.uint64]

_NUMBER = 8


def open_pages(gcm: Gcm, pages: Words, versions: Words, sealed: Bytes) -> tuple[Bytes, NDArray[np.bool_]]:
    """Undo `sim.golden.oram.gcm.seal_pages`: return the plain texts, and whether each page is genuine."""
    tags, padding, ciphertexts = np.split(sealed, [gcm.tag_bytes, BLOCK_BYTES], axis=1)
    ivs = page_ivs(pages, versions)
    content, _ = gcm.seal(ivs, ciphertexts)  # counter mode undoes itself
    right = (gcm.seal(ivs, content)[1] == tags).all(axis=1)
    return content, right & ~padding.any(axis=1)


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


def is_erased(config: OramConfig, buffers: Mapping[str, Bytes]) -> bool:
    """Return whether every byte of HBM's buffers is that of an erased table."""
    right = []
    for name, structure in board_arguments(config).items():
        lines = swap_halves(structure, buffers[name].reshape(-1, structure.line_bytes))
        line = np.zeros(structure.line_bytes, np.uint8)
        line[0] = name.startswith("records")  # version 1
        right.append(bool((lines == line).all()))
    assert len(right) == config.position_ports + config.record_ports
    return all(right)


def parse_record(config: OramConfig, image: Bytes) -> tuple[int, int, Slots]:
    """Return the version of its page, the items in its page, and the slots of a record [record_bytes]."""
    row = image.tobytes()
    bitmap = _number(row, _NUMBER)
    slots = _take_slots(
        config, row, bitmap, config.record_slots, RECORD_HEADER_BYTES, config.record_values_offset
    )
    return _number(row, 0), _number(row, 2 * _NUMBER), slots


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


def _number(row: bytes, at: int) -> int:
    return int.from_bytes(row[at : at + _NUMBER], "little")


def _take_slots(config: OramConfig, row: bytes, bitmap: int, slots: int, keys: int, values: int) -> Slots:
    size = config.value_bytes
    return [
        (_number(row, keys + _NUMBER * at), row[values + size * at : values + size * (at + 1)])
        if bitmap >> at & 1
        else None
        for at in range(slots)
    ]
