"""The command of a pixel feed, and the rows of its tile table."""

from __future__ import annotations

from amaranth.hdl import signed
from amaranth.lib import data
from amaranth.utils import bits_for

from hw.network.matrix.layouts import SHIFT_BITS
from hw.network.scratchpad.shape import GranuleShape

#: Largest height and width of an input or output.
MOST_SIDE = 4096
#: Largest offset of a tap, in rows or columns.
MOST_TAP = 127
#: Entries of the tile table, and most k tiles of a command.
TABLE_ENTRIES = 512
#: Most blocks, and most n tiles, of a command.
MOST_COUNT = (1 << 16) - 1
#: Most pixels that one feed reads of a block.
MOST_STEPS = 512

_COORDINATE = signed(bits_for(MOST_SIDE + MOST_TAP) + 1)


class TileEntry(data.StructLayout):
    """A k tile: the granules of its words, relative to a pixel's first one."""

    def __init__(self, shape: GranuleShape) -> None:
        tap = range(MOST_TAP + 1)
        super().__init__(
            {
                "offset": shape.granule_address_bits,  #: Granules from the pixel's first to the word's.
                "row": tap,  #: Rows from the pixel's first to the word's.
                "column": data.ArrayLayout(tap, shape.granules),  #: Columns likewise, of each granule.
                "valid": shape.granules,  #: Granules that exist.
                "shift": SHIFT_BITS,  #: Places by which the words' dot products are shifted to the left.
            }
        )


class Place(data.StructLayout):
    """A pixel's first granule, with its row and column in the input, or a difference of two such."""

    def __init__(self, shape: GranuleShape) -> None:
        address = shape.granule_address_bits
        super().__init__({"address": address, "row": _COORDINATE, "column": _COORDINATE})


class FeedCommand(data.StructLayout):
    """The pixels of a layer that one feed reads, and the order of its tiles."""

    def __init__(self, shape: GranuleShape) -> None:
        side, steps, count = range(MOST_SIDE + 1), range(MOST_STEPS + 1), range(MOST_COUNT + 1)
        super().__init__(
            {
                "start": Place(shape),  #: The first pixel's.
                "step": Place(shape),  #: From a pixel to the next.
                "turn": Place(shape),  #: Added if the next pixel is beyond its row's end.
                "x_start": side,  #: The first pixel's column in the output.
                "x_step": side,  #: From a pixel's column to the next one's, less than ``x_width``.
                "x_width": side,  #: Columns of the output.
                "height": side,  #: Rows of the input.
                "width": side,  #: Columns of the input.
                "steps": steps,  #: Pixels of a block, at least 1.
                "last_steps": steps,  #: Pixels of the last block, at least 1.
                "blanks": 1,  #: The last pixel of the last block is none.
                "blocks": count,  #: At least 1.
                "n_tiles": count,  #: At least 1.
                "group_tiles": count,  #: N tiles that read the same channels, at least 1.
                "group_pitch": shape.granule_address_bits,  #: Granules from a group's channels to the next.
                "k_tiles": range(TABLE_ENTRIES + 1),  #: Entries of the table, at least 1.
                "zero": 8,  #: Byte outside the input.
            }
        )
