"""Jobs in memory: the fields of a descriptor, and their offsets."""

import functools
from collections.abc import Mapping

from hw.conv.config import ConvConfig
from hw.lib.descriptors.fields import pack_fields

#: Bytes from one descriptor to the next.
DESCRIPTOR_BYTES = 1024

#: Values of ``flags``.
DEPTHWISE, POINTWISE = 1 << 0, 1 << 1  # the job has such a layer
#: Both: the depthwise layer follows the pointwise one; otherwise the reverse.
POINTWISE_FIRST = 1 << 2
#: Its maps are read after all results of earlier jobs are in memory.
AFTER = 1 << 3
STRIP, SAMPLES, MASKED, GATHER = 1 << 4, 1 << 5, 1 << 6, 1 << 7
#: Offsets: free or square; computed by the dot unit instead of read.
FREE, SQUARE, DOT = 1 << 8, 1 << 9, 1 << 10
BYPASS, SPLIT, DOUBLE = 1 << 11, 1 << 12, 1 << 13
TAP_RAW, POINT_RAW = 1 << 14, 1 << 15

_SCALARS = (
    "flags",
    # hw.conv.core.layouts.TapCommand
    *("rows", "columns", "words", "slots", "row_words", "split"),
    *("out_rows", "out_columns", "kernel_rows", "kernel_columns", "stride_rows", "stride_columns"),
    *("dilation_rows", "dilation_columns", "pad_rows", "pad_columns", "steps", "first_need", "first_free"),
    *("group_slices", "digits", "tap_zero", "tap_low", "tap_high"),
    # OffsetCommand; entries in all, and 16-bit units of an entry in memory
    *("offset_pixels", "offset_entries", "offset_low", "offset_high", "offset_total_entries", "offset_units"),
    "offset_passes",
    # SweepCommand
    *("block", "last_block", "blocks", "block_words", "out_words", "point_low", "point_high"),
    # DrainCommand
    *("drain_rows", "drain_last_rows", "drain_columns", "drain_words", "drain_parts", "part_words"),
    # Words into the job, from one unit to the other, and out of the job.
    *("in_total_words", "middle_total_words", "out_total_words"),
    # Of the movers: chunks of pixels, one DMA command each; ``token_chunks`` of them share a token.  Words
    # are those of a pixel.
    *("in_rows", "in_chunks", "in_pixels", "in_last_pixels", "in_token_chunks", "in_words"),
    # The bypass has one part in memory and is cut into `bypass_parts` of `bypass_channels`.
    *("bypass_rows", "bypass_chunks", "bypass_pixels", "bypass_last_pixels", "bypass_token_chunks"),
    *(
        "bypass_in_words",
        "bypass_total_words",
        "bypass_total_pixels",
        "bypass_parts",
        "bypass_channels",
        "bypass_words",
    ),
    # Rows, and parts of pixels of each.
    *("out_map_rows", "out_map_parts", "out_map_words"),
    *("weight_bytes", "tile_bytes", "tile_repeats", "offset_bytes"),
)
#: Byte offsets from the base pointers of weights and of offsets.
_ADDRESSES = ("weights", "tiles", "offsets")
#: For each port, from its base pointer on.
_MAPS = {
    "in": ("address", "pitch", "bytes", "last_bytes", "units"),
    "bypass": ("address", "pitch", "bytes", "last_bytes", "units"),
    "out": ("address", "pitch", "bytes", "units"),
}
_SIGNED = ("first_need", "first_free", "tap_zero", "tap_low", "tap_high", "offset_low", "offset_high",
           "point_low", "point_high")  # fmt: skip


@functools.cache
def fields(config: ConvConfig) -> dict[str, tuple[int, int]]:
    """Return byte offset and size of every field, all little endian; of ports: ``in_address_0`` ..."""
    sizes = dict.fromkeys(_ADDRESSES, 8)
    for port in range(config.ports):
        sizes |= {f"{side}_address_{port}": 8 for side in _MAPS}
    sizes |= dict.fromkeys(_SCALARS, 4)
    for port in range(config.ports):
        sizes |= {f"{side}_{name}_{port}": 4 for side, names in _MAPS.items() for name in names[1:]}
    places, offset = {}, 0
    for name, size in sizes.items():
        places[name] = (offset, size)
        offset += size
    return places


def used_bytes(config: ConvConfig) -> int:
    """Count the bytes of a descriptor that are read: a multiple of 64."""
    return -(-sum(size for _, size in fields(config).values()) // 64) * 64


def pack_descriptor(config: ConvConfig, values: Mapping[str, int]) -> bytes:
    """Return the `DESCRIPTOR_BYTES` bytes of a descriptor.

    ``values``: by the names of `fields`; a missing value is 0.  Raises `InputError` for an
    unknown field, or a value that does not fit.
    """
    return pack_fields(fields(config), values, descriptor_bytes=DESCRIPTOR_BYTES, signed=_SIGNED)
