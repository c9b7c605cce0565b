"""Commands of the pointwise unit: blocks of maps, sweeps, and the order of results."""

from amaranth.lib import data

from hw.conv.config import SIDE_BITS, ConvConfig
from hw.conv.core.layouts import Settings


class BlockCommand(data.StructLayout):
    """A map that goes to the pointwise array, or past it as the bypass, in blocks of pixels."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                #: ``block``, ``last_block``: pixels of a block, and of the last one: 1 ... ``block_pixels``.
                "block": range(config.block_pixels + 1),
                "last_block": range(config.block_pixels + 1),
                "blocks": 2 * SIDE_BITS,
                "words": range(config.block_words + 1),  #: Words, L channels each, of a pixel.
                #: Words are read from memory: a token is sent for each block that there is room for.
                "asked": 1,
            }
        )


class SweepCommand(data.StructLayout):
    """A pointwise layer, as the array sees it."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "blocks": BlockCommand(config),
                "out_words": range(config.block_words + 1),  #: Words, L channels each, of an output pixel.
                "settings": Settings(),
            }
        )


class DrainCommand(data.StructLayout):
    """The order in which the results of a pointwise layer leave, and what joins them."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "blocks": 2 * SIDE_BITS,
                #: ``rows``, ``last_rows``: rows of the map in a block, and in the last one.  In blocks that
                #: are not whole rows, whose pixels leave in order, each pixel counts as a row of one column.
                "rows": range(config.block_pixels + 1),
                "last_rows": range(config.block_pixels + 1),
                "columns": range(config.block_pixels + 1),  #: Pixels of a row.
                #: Words of a part of a pixel, counted as in `TileHeader.out_word`.
                "words": range(config.block_words + 1),
                "parts": 2,  #: 1, or 2: halves of the channels, each padded to words.
                "split": 1,  #: Each row leaves part by part; otherwise each pixel does.
                "double": 1,  #: Each pixel and each row leave twice: nearest neighbour upsampling.
                "shuffle": 1,  #: Channels alternate with those of the bypass, which come first.
                #: Words of a part that leave: ``words``; after a shuffle ``2 * words`` or one less.
                "part_words": range(config.block_words + 1),
            }
        )
