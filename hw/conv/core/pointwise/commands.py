"""Commands of the pointwise unit: blocks that come, sweeps, and results that leave."""

from __future__ import annotations

from amaranth.lib import data

from hw.conv.config import SIDE_BITS, ConvConfig
from hw.conv.core.layouts import Settings


class BlockCommand(data.StructLayout):
    """A map that goes to the pointwise array, or past it as the bypass, in blocks of pixels.

    Members
    -------
    block, last_block
        Pixels of a block, and of the last one: 1 ... ``block_pixels``.
    blocks
        How many.
    words
        Words of a pixel.
    asked
        Whether words come from memory, so that a token is to be given for each block there is room for.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "block": range(config.block_pixels + 1),
                "last_block": range(config.block_pixels + 1),
                "blocks": 2 * SIDE_BITS,
                "words": range(config.block_words + 1),
                "asked": 1,
            }
        )


class SweepCommand(data.StructLayout):
    """A pointwise layer, as the array sees it.

    Members
    -------
    blocks : BlockCommand
    out_words
        Words of a pixel of the result.
    settings : Settings
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "blocks": BlockCommand(config),
                "out_words": range(config.block_words + 1),
                "settings": Settings(),
            }
        )


class DrainCommand(data.StructLayout):
    """The order in which the results of a pointwise layer leave, and what joins them.

    Members
    -------
    blocks
        How many blocks.
    rows, last_rows
        Rows of the map in a block, and in the last one.  Blocks that are no whole rows, whose pixels leave as
        they came, have pixels for rows, and one column.
    columns
        Pixels of a row.
    words
        Words of a part of a pixel, as `TileHeader.out_word` counts them.
    parts
        1, or 2: halves of the channels, each padded to words.
    split
        Each row leaves part by part; otherwise each pixel does.
    double
        Each pixel and each row leave twice: nearest neighbour upsampling.
    shuffle
        Channels alternate with those of the bypass, which come first.
    part_words
        Words of a part that leave: ``words``, or if shuffled ``2 * words`` or one less.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "blocks": 2 * SIDE_BITS,
                "rows": range(config.block_pixels + 1),
                "last_rows": range(config.block_pixels + 1),
                "columns": range(config.block_pixels + 1),
                "words": range(config.block_words + 1),
                "parts": 2,
                "split": 1,
                "double": 1,
                "shuffle": 1,
                "part_words": range(config.block_words + 1),
            }
        )
