"""Commands of the core's units, and what passes between them.

Every unit has a queue of commands, one for each job that needs it, and works them off in order; a word, an
offset and a weight find their job by their order alone.
"""

from __future__ import annotations

from enum import IntEnum

from amaranth.hdl import signed
from amaranth.lib import data

from hw.conv.config import (
    MASK_BITS,
    MAX_TAPS,
    OFFSET_BITS,
    SIDE_BITS,
    TAP_LAYER_WORDS,
    WORDS_BITS,
    ConvConfig,
)

#: Bits of a number of row slots: a map that lies in the line buffer whole may have one more than rows.
SLOT_BITS = SIDE_BITS + 1
#: Bits of a kernel's side and of a stride, of a dilation, and of the padding above and left.
KERNEL_BITS, DILATION_BITS, PAD_BITS = 3, 6, 7


class Offsets(IntEnum):
    """Where a tap is sampled besides the regular grid."""

    NONE = 0
    FREE = 1  # each tap by an offset of its own
    SQUARE = 2  # tap (i, j) by (i - (K - 1) / 2, j - (K - 1) / 2) times one offset for each pixel


class Settings(data.StructLayout):
    """How sums become results: ``clamp(((sum * multiplier + half) >> shift) + post, low, high)``."""

    def __init__(self) -> None:
        super().__init__(
            {
                "zero": signed(8),  #: Zero point of the input: what a pixel outside of the map has.
                #: ``low``, ``high``: bounds of a result.
                "low": signed(8),
                "high": signed(8),
                #: No rounding and no bounds: the low 8 bits of ``(sum * multiplier >> shift) + post``.  With
                #: 1 and 0 for multiplier and post: the bytes of sums themselves.
                "raw": 1,
            }
        )


class FillCommand(data.StructLayout):
    """A map that goes into the line buffer, a part of `TapCommand`."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                #: ``rows``, ``columns``, ``words``: its size; ``words`` a pixel.  Words come row by row,
                #: pixel by pixel, first channels first.
                "rows": SIDE_BITS,
                "columns": SIDE_BITS,
                "words": WORDS_BITS,
                #: Rows that the buffer holds: even; a multiple of ``4 << split`` for a strip.
                "slots": SLOT_BITS,
                #: Words from one row of a bank to the next: ``ceil(columns / 2) * words``; ``columns *
                #: words`` for a strip.
                "row_words": range(config.bank_words + 1),
                #: ``strip``, ``split``: see `hw.conv.core.fill`: banks by parity, or row y in bank ``(y >>
                #: split) & 3``.
                "strip": 1,
                "split": 2,
                #: Whether words come from memory, so that a token is to be given for each row there is room
                #: for.
                "asked": 1,
            }
        )


class TapCommand(data.StructLayout):
    """A layer that samples the line buffer."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "fill": FillCommand(config),  #: The map.
                #: ``out_rows``, ``out_columns``: size of the result.
                "out_rows": SIDE_BITS,
                "out_columns": SIDE_BITS,
                #: ``kernel_rows``, ``kernel_columns``: 1 ... 7.
                "kernel_rows": KERNEL_BITS,
                "kernel_columns": KERNEL_BITS,
                #: ``stride_rows``, ``stride_columns``: 1 ... 7.
                "stride_rows": KERNEL_BITS,
                "stride_columns": KERNEL_BITS,
                #: ``dilation_rows``, ``dilation_columns``: 1 ... 63.
                "dilation_rows": DILATION_BITS,
                "dilation_columns": DILATION_BITS,
                #: ``pad_rows``, ``pad_columns``: above and left.
                "pad_rows": PAD_BITS,
                "pad_columns": PAD_BITS,
                #: Cycles a word: ``ceil(kernel_rows * kernel_columns / T)``; of samples as many as taps.
                "steps": 6,
                #: Rows of the map that must be there before the first row of results, signed; each later row
                #: needs ``stride_rows`` more, and none needs more than all.
                "first_need": signed(SIDE_BITS + 2),
                #: Rows of the map that the first row of results does not need any more, signed; grows
                #: likewise.
                "first_free": signed(SIDE_BITS + 2),
                "offsets": 2,  #: `Offsets`.
                "masked": 1,  #: Offsets come with masks.
                #: Samples with a neighbour in rows outside of ``first_free ... first_need - 1``, which go
                #: down the map with the rows of results, are read from memory.  Only with `Offsets.FREE`, of
                #: one group for all channels, and for a map that lies in memory in one part.
                "gather": 1,
                #: Entries of offsets that a pixel has, see `OffsetCommand`.
                "entries": range(config.offset_entries + 1),
                #: Slices of L / G lanes that share offsets.
                "group_slices": WORDS_BITS + (config.generators - 1).bit_length(),
                #: ``dot``, ``passes``: offsets are computed from the map as it comes, so many pairs of
                #: numbers a pixel.
                "dot": 1,
                "passes": range(MAX_TAPS + 1),
                #: ``samples``, ``digits``: no sums: the samples leave, each digit of base 256 (`digits` of
                #: them) in a pass of its own, as words in the order [digit][tap][word of the pixel].  Without
                #: offsets, pixels leave as they are.
                "samples": 1,
                "digits": 3,
                "settings": Settings(),
            }
        )


class OffsetCommand(data.StructLayout):
    """The offsets of a layer, as `hw.conv.core.offset_store` takes them."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "pixels": 2 * SIDE_BITS,  #: Of the result.
                #: That a pixel has: ``groups * steps``, each of T taps (of samples one tap), or 1 if square.
                "entries": range(config.offset_entries + 1),
                #: ``low``, ``high``: bounds that every offset is clamped to.
                "low": signed(OFFSET_BITS),
                "high": signed(OFFSET_BITS),
                "dot": 1,  #: They are computed on chip.
                #: The layer, if the engine can gather.
                **({"tap": TapCommand(config)} if config.gather_words else {}),
            }
        )


class GatherRequest(data.StructLayout):
    """Pixels of the map that are read one by one: all words of the first, then all of the second."""

    def __init__(self) -> None:
        super().__init__(
            {
                #: ``row``, ``column``: of the first.
                "row": SIDE_BITS,
                "column": SIDE_BITS,
                "two": 1,  #: The one on its right, too.
                "ends": 1,  #: No pixel: later requests are for the next layer that gathers.
            }
        )


class Offset(data.StructLayout):
    """Offset of a tap: ``dy``, ``dx`` in units of 2^-F pixels, and its mask in units of 1/256."""

    def __init__(self) -> None:
        super().__init__({"dy": signed(OFFSET_BITS), "dx": signed(OFFSET_BITS), "mask": MASK_BITS})


def offset_entry(config: ConvConfig) -> data.ArrayLayout:
    """Return the offsets of T taps; those behind the last tap of a pixel have no meaning."""
    return data.ArrayLayout(Offset(), config.taps)


class TapRead(data.StructLayout):
    """What a lane cell reads for the samples that come two cycles later."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                #: Address of the weights of T taps, in the half of the layer: ``{step, word}`` counted up by
                #: the walker.
                "weight": range(config.tap_words),
                #: Word of the pixel, for parameters and the weights of a strip.
                "word": range(TAP_LAYER_WORDS),
                "half": 1,  #: Which half of these RAMs the layer has.
            }
        )


class Point(data.StructLayout):
    """A sample of one tap: where the four neighbours are among the banks, and how they are weighed."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "on": 1,  #: There is such a tap; otherwise it counts nothing.
                #: ``odd_row``, ``odd_column``: parity of the upper left neighbour: its bank is ``2 * odd_row
                #: + odd_column``.
                "odd_row": 1,
                "odd_column": 1,
                #: Bit ``2 * r + c``: the neighbour r rows below and c columns right is in the map.
                "inside": 4,
                #: ``ly``, ``lx``: fraction of the coordinates.
                "ly": config.fraction_bits,
                "lx": config.fraction_bits,
                "mask": MASK_BITS if config.mask else 0,  #: Weight of the sample, if masked.
            }
        )


class StripPoint(data.StructLayout):
    """A step of a strip."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "begins": 1,  #: No step: the next one is the first of its row of results.
                "banks": data.ArrayLayout(2, 3),  #: Of the kernel's rows, the upper one first.
                #: ``rows``, ``columns``: bits of the kernel's rows and columns that are in the map.
                "rows": 3,
                "columns": 3,
                #: Words between the columns of the kernel: dilation times the words of a pixel.
                "span": range(config.strip_words + 1),
            }
        )


class TapControl(data.StructLayout):
    """What the lane cells do with the words of the banks that come in the same cycle."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "valid": 1,  #: There are words.
                #: ``first``, ``last``: they are the first or the last of their sum; with ``last`` a result
                #: comes, `LaneCell.latency` later.
                "first": 1,
                "last": 1,
                "masked": 1,  #: Masks count.
                #: ``samples``, ``digit``: the result is this digit of the first tap's sample.
                "samples": 1,
                #: The result is the first tap's pixel as it is, or the zero point outside of the map.
                "plain": 1,
                "digit": 2,
                "strip": 1,  #: A step of a strip: every one shifts the window; with ``last`` a result comes.
                "window": StripPoint(config),
                "settings": Settings(),
            }
        )
