"""Layouts of the streams between the parts of the map."""

import enum

from amaranth.hdl import unsigned
from amaranth.lib import data

from hw.oram.config import (
    BEAT_BYTES,
    BUCKET_BITMAP_BYTES,
    BUCKET_BYTES,
    RECORD_HEADER_BYTES,
    VERSION_BITS,
    OramConfig,
)


class Code(enum.IntEnum):
    """Operations."""

    NOP = 0
    GET = 1
    PUT = 2
    DELETE = 3
    LOAD = 4  #: Insert a new key. It touches pages in ascending order instead of the key's label.


class Status(enum.IntEnum):
    """Results of an operation."""

    HIT = 0
    MISS = 1
    INSERTED = 2
    FULL = 3
    REJECTED = 4  #: Its tag is wrong; nothing changed.
    DUPLICATE = 5  #: The key of a LOAD exists; nothing changed.
    MALFORMED = 6  #: No such command; nothing changed.


#: Bits of a code and of a status.
CODE_BITS = STATUS_BITS = 3
#: Bits of the number of a page.
PAGE_BITS = 48
#: Bits of a byte address.
ADDRESS_BITS = 64
#: Maximum number of insertions that `touch_layout` counts in ``near``.
NEAREST = 7
#: Bytes of a beat of the ports to HBM: the header of a record.
HBM_BEAT_BYTES = RECORD_HEADER_BYTES


def command_layout(config: OramConfig) -> data.StructLayout:
    """Return an opened command. ``rejected``: its tag is wrong. The value RAM holds its value at
    ``operation``.
    """
    return data.StructLayout(
        {
            "operation": config.operation_bits,
            "code": CODE_BITS,
            "key": config.key_bits,
            "rejected": 1,
            "malformed": 1,
        }
    )


def query_layout(config: OramConfig) -> data.StructLayout:
    """Return a query of the position map: a command with its permuted key and its draws."""
    return data.StructLayout(
        {
            "command": command_layout(config),
            "permuted": config.key_bits,
            "draw": data.ArrayLayout(unsigned(128), config.draws),
        }
    )


def record_layout(config: OramConfig) -> data.StructLayout:
    """Return a label as the position map keeps it: the number of its record.

    Records below ``host_pages`` belong to the page of the same number, others are HBM bins.
    """
    return data.StructLayout({"index": config.record_index_bits})


def entry_layout(config: OramConfig) -> data.StructLayout:
    """Return an entry of the position map: its tag, and the records of the key's labels."""
    return data.StructLayout(
        {
            "tag": config.tag_bits,
            "record": data.ArrayLayout(unsigned(config.record_index_bits), config.label_count),
        }
    )


def bucket_layout(config: OramConfig) -> data.FlexibleLayout:
    """Return a bucket of the position map as it lies in HBM."""
    bits = 8 * config.entry_bytes
    entry = data.FlexibleLayout(bits, {"entry": data.Field(entry_layout(config), 0)})
    entries = data.ArrayLayout(entry, config.bucket_entries)
    return data.FlexibleLayout(
        8 * BUCKET_BYTES,
        {
            #: Bitmap of entries in use, lowest bit first; 16 bits in memory.
            "used": data.Field(unsigned(config.bucket_entries), 0),
            "entries": data.Field(entries, 8 * BUCKET_BITMAP_BYTES),  #: Each begins at a byte.
        },
    )


def bucket_beat_layout(config: OramConfig) -> data.StructLayout:
    """Return a write of a beat of a bucket."""
    return beat_write_layout(line_bits=config.bucket_bits, port_bytes=HBM_BEAT_BYTES, line_bytes=BUCKET_BYTES)


def operation_layout(config: OramConfig) -> data.StructLayout:
    """Return an operation after the position map."""
    labels, items = config.label_count, config.items
    index = unsigned(config.record_index_bits)
    return data.StructLayout(
        {
            #: ``operation``, ``code``, ``key``: as in the command.
            "operation": config.operation_bits,
            "code": CODE_BITS,
            "key": config.key_bits,
            "status": STATUS_BITS,  #: `Status`; final.
            "keep": 1,  #: The item is appended to a fresh record after the last touch.
            #: Of a hit: operations since the last one that kept the item, or 0 if more than the window.
            "age": range(config.window + 1),
            #: ``page_valid``, ``page``: for each label: the operation touches a page of the host, and its
            #: number. For a LOAD it is the next page in order; its second label has none, or a dummy.
            "page_valid": labels,
            "page": data.ArrayLayout(index, labels),
            #: ``record_valid``, ``record``: for each touch: it has a record, and its number. A touch with a
            #: page has the page's own record.
            "record_valid": items,
            "record": data.ArrayLayout(index, items),
            "fresh": data.ArrayLayout(index, labels),  #: For each label: the record that was drawn.
        }
    )


def touch_layout(config: OramConfig) -> data.StructLayout:
    """Return a touch of an operation: a page, a record, both (the page's own record) or neither."""
    index = config.record_index_bits
    return data.StructLayout(
        {
            "operation": config.operation_bits,
            "code": CODE_BITS,
            "key": config.key_bits,
            "status": STATUS_BITS,
            "age": range(config.window + 1),  #: As in `operation_layout`; used with the first touch.
            #: ``first``, ``last``: of the operation's touches. ``fresh`` and ``keep`` are used with the last.
            "first": 1,
            "last": 1,
            "keep": 1,
            "page_valid": 1,
            "record_valid": 1,
            "record": index,
            "fresh": data.ArrayLayout(unsigned(index), config.label_count),
            #: ``forward``, ``place``: an earlier touch of the page is in flight; its place among the touched
            #: pages, modulo ``scoreboard_pages``. ``near``: touched pages from it on, or 0 if more than
            #: `NEAREST`.
            "forward": 1,
            "place": range(config.scoreboard_pages),
            "near": range(NEAREST + 1),
        }
    )


def seal_layout() -> data.StructLayout:
    """Return the input of a page's keystream."""
    return data.StructLayout({"page": PAGE_BITS, "version": VERSION_BITS})


def beat_write_layout(*, line_bits: int, port_bytes: int, line_bytes: int) -> data.StructLayout:
    """Return a write of one beat into a line (bucket or record) in HBM."""
    return data.StructLayout(
        {
            "line": line_bits,  #: Number of the bucket or record.
            #: Number of the beat in its line; a beat has ``port_bytes``.
            "beat": range(max(2, line_bytes // port_bytes)),
            #: ``data``, ``strobe``: the beat, and its byte strobes.
            "data": 8 * port_bytes,
            "strobe": port_bytes,
        }
    )


#: Bits of a beat of a page, and of a record on its way from HBM.
BEAT_BITS = 8 * BEAT_BYTES
