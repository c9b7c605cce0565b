"""K tiles of a convolution: which taps and channels the granules of each word are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hw.errors import check_range
from hw.network.matrix.feed_command import MOST_TAP


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
    check_range("kernel", (rows - 1) * down, 0, MOST_TAP)
    check_range("kernel", (columns - 1) * right, 0, MOST_TAP)
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
