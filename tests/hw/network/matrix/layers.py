"""Layers for tests of the pixel feed: commands and tiles by shape, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hw.network.matrix.feed_command import MOST_STEPS
from hw.network.scratchpad.shape import GranuleShape


@dataclass(frozen=True, kw_only=True)
class KernelGranule:
    """A granule of a word: a tap of the kernel, and channels of it."""

    row: int  #: Row of the tap in the kernel.
    column: int  #: Column of the tap in the kernel.
    channels: int  #: Granule of the pixel.


@dataclass(frozen=True, kw_only=True)
class KernelTile:
    """A k tile: one word for each pixel."""

    offset: int  #: Granules from the pixel's first to the word's.
    row: int  #: Rows from the pixel's first to the word's.
    columns: tuple[int, ...]  #: Columns likewise, of each granule.
    granules: tuple[KernelGranule | None, ...]  #: None for one that does not exist.

    def entry(self, *, addresses: int) -> dict[str, Any]:
        """Return the entry of the tile table, in a scratchpad of a number of granules."""
        return {
            "offset": self.offset % addresses,
            "row": self.row,
            "column": list(self.columns),
            "valid": sum((granule is not None) << n for n, granule in enumerate(self.granules)),
            "shift": (self.row + self.offset) % 8,
        }


def kernel_tiles(
    *,
    kernel: tuple[int, int],
    dilations: tuple[int, int] = (1, 1),
    granules: int,
    pixel_pitch: int,
    row_pitch: int,
    word: int = 4,
) -> list[KernelTile]:
    """Return the k tiles of a kernel over ``granules`` granules of each pixel; a word has ``word`` granules.

    Words run over neighbouring taps of a row where these lie side by side in the scratchpad.

    >>> [tile.offset for tile in kernel_tiles(kernel=(2, 3), granules=1, pixel_pitch=1, row_pitch=9)]
    [0, 9]
    >>> [tile.offset for tile in kernel_tiles(kernel=(1, 2), granules=5, pixel_pitch=8, row_pitch=64)]
    [0, 4, 8, 12]
    """
    rows, columns = kernel
    down, right = dilations
    joined = right == 1 and pixel_pitch == granules
    tiles = []
    for row in range(rows):
        taps = [
            [KernelGranule(row=row, column=column, channels=n) for n in range(granules)]
            for column in range(columns)
        ]
        # Granules that follow each other in the scratchpad.
        runs = [[granule for tap in taps for granule in tap]] if joined else taps
        for run, at in [(each, at) for each in runs for at in range(0, len(each), word)]:
            found: list[KernelGranule | None] = [*run[at : at + word]]
            found += [None] * (word - len(found))
            tiles.append(
                KernelTile(
                    offset=row * down * row_pitch + run[0].column * right * pixel_pitch + at,
                    row=row * down,
                    columns=tuple(granule.column * right if granule else 0 for granule in found),
                    granules=tuple(found),
                )
            )
    return tiles


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
