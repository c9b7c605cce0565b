"""The command of a pixel feed, its tile table, and how a layer becomes both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import signed
from amaranth.lib import data
from amaranth.utils import bits_for

from hw.errors import InputError, check_range
from hw.network.scratchpad.shape import GranuleShape

#: Largest height and width of an input or output.
MOST_SIDE = 4096
#: Largest offset of a tap, in rows or columns.
MOST_TAP = 127
#: Largest pads before the input.
MOST_PAD = 1023
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


@dataclass(frozen=True, kw_only=True)
class FeedLayer:
    """Where a layer's input lies, and in which order its pixels are read.

    The pixels of the output are numbered row by row.  At ``feeds`` = 2, feed 0 reads the even ones and feed 1
    the odd ones.  A block is ``feeds * steps`` pixels.  For each block, for each n tile, for each k tile, a
    feed sends a word for each of its pixels of the block.
    """

    base: int  #: Granule of row 0, column 0, channel 0.
    pixel_pitch: int  #: Granules from a pixel to the next.
    row_pitch: int  #: Granules from a row to the next.
    height: int  #: Rows of the input.
    width: int  #: Columns of the input.
    out_height: int  #: Rows of the output.
    out_width: int  #: Columns of the output.
    strides: tuple[int, int] = (1, 1)  #: Rows and columns of the input from an output to the next.
    pads: tuple[int, int] = (0, 0)  #: Rows above and columns left of the input.
    zero: int = 0  #: Value outside the input: the zero point.
    feeds: int = 1  #: Pixels a cycle, 1 or 2.
    steps: int = MOST_STEPS  #: Pixels of a block that each feed reads.
    k_tiles: int = 1  #: Entries of the layer's table.
    n_tiles: int = 1  #: Sweeps of the k tiles over a block.
    group_tiles: int = 1  #: N tiles that read the same channels.
    group_pitch: int = 0  #: Granules from the channels of a group of n tiles to the next.

    def __post_init__(self) -> None:
        for name in ("height", "width", "out_height", "out_width"):
            check_range(name, getattr(self, name), 1, MOST_SIDE)
        for name, value in (("strides", self.strides), ("pads", self.pads)):
            for each in value:
                check_range(name, each, int(name == "strides"), MOST_PAD)
        for name, most in (
            ("feeds", 2),
            ("steps", MOST_STEPS),
            ("k_tiles", TABLE_ENTRIES),
            ("n_tiles", MOST_COUNT),
            ("group_tiles", MOST_COUNT),
        ):
            check_range(name, getattr(self, name), 1, most)
        check_range("zero", self.zero, -128, 127)
        for name, strides in (("out_height", self.strides[0]), ("out_width", self.strides[1])):
            if (getattr(self, name) - 1) * strides > MOST_SIDE:
                raise InputError(
                    name, getattr(self, name), f"at most {MOST_SIDE // strides + 1} at its stride"
                )

    @property
    def pixels(self) -> int:
        """Pixels of the output."""
        return self.out_height * self.out_width

    @property
    def words(self) -> int:
        """Words that each feed sends."""
        return -(-self.pixels // self.feeds) * self.n_tiles * self.k_tiles

    def blocks(self) -> Iterator[range]:
        """Yield the numbers of the pixels of each block; the last block may end with one that is none."""
        pixels = -(-self.pixels // self.feeds) * self.feeds
        block = self.feeds * self.steps
        for first in range(0, pixels, block):
            yield range(first, min(first + block, pixels))

    def command(self, shape: GranuleShape, *, feed: int) -> dict[str, Any]:
        """Return the command of a feed.

        >>> layer = FeedLayer(
        ...     base=0, pixel_pitch=4, row_pitch=20, height=5, width=5, out_height=5, out_width=5,
        ...     pads=(1, 1), feeds=2,
        ... )
        >>> command = layer.command(GranuleShape(), feed=1)
        >>> command["start"]["column"], command["step"]["address"], command["steps"], command["blanks"]
        (0, 8, 512, 1)
        """

        def place(rows: int, columns: int) -> dict[str, int]:
            address = rows * self.row_pitch + columns * self.pixel_pitch
            return {"address": address, "row": rows, "column": columns}

        def modulo(place: dict[str, int]) -> dict[str, int]:
            return place | {"address": place["address"] % (shape.words * shape.granules)}

        (down, right), (above, left) = self.strides, self.pads
        y, x = divmod(feed, self.out_width)
        y_step, x_step = divmod(self.feeds, self.out_width)
        start = place(y * down - above, x * right - left)
        blocks = list(self.blocks())
        return {
            "start": modulo(start | {"address": start["address"] + self.base}),
            "step": modulo(place(y_step * down, x_step * right)),
            "turn": modulo(place(down, -self.out_width * right)),
            "x_start": x,
            "x_step": x_step,
            "x_width": self.out_width,
            "height": self.height,
            "width": self.width,
            "steps": self.steps,
            "last_steps": len(blocks[-1]) // self.feeds,
            "blanks": int(blocks[-1][feed - self.feeds] >= self.pixels),
            "blocks": len(blocks),
            "n_tiles": self.n_tiles,
            "group_tiles": self.group_tiles,
            "group_pitch": self.group_pitch,
            "k_tiles": self.k_tiles,
            "zero": self.zero % 256,
        }
