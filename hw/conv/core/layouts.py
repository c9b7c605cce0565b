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
    """How sums become results: ``clamp(((sum * multiplier + half) >> shift) + post, low, high)``.

    Members
    -------
    zero
        Zero point of the input: what a pixel outside of the map has.
    low, high
        Bounds of a result.
    raw
        No rounding and no bounds: the low 8 bits of ``(sum * multiplier >> shift) + post``.  With 1 and 0 for
        multiplier and post: the bytes of sums themselves.
    """

    def __init__(self) -> None:
        super().__init__({"zero": signed(8), "low": signed(8), "high": signed(8), "raw": 1})


class FillCommand(data.StructLayout):
    """A map that goes into the line buffer, a part of `TapCommand`.

    Members
    -------
    rows, columns, words
        Its size; ``words`` a pixel.  Words come row by row, pixel by pixel, first channels first.
    slots
        Rows that the buffer holds: even; a multiple of ``4 << split`` for a strip.
    row_words
        Words from one row of a bank to the next: ``ceil(columns / 2) * words``; ``columns * words`` for a
        strip.
    strip, split
        See `hw.conv.core.fill`: banks by parity, or row y in bank ``(y >> split) & 3``.
    asked
        Whether words come from memory, so that a token is to be given for each row there is room for.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "rows": SIDE_BITS,
                "columns": SIDE_BITS,
                "words": WORDS_BITS,
                "slots": SLOT_BITS,
                "row_words": range(config.bank_words + 1),
                "strip": 1,
                "split": 2,
                "asked": 1,
            }
        )


class TapCommand(data.StructLayout):
    """A layer that samples the line buffer.

    Members
    -------
    fill : FillCommand
        The map.
    out_rows, out_columns
        Size of the result.
    kernel_rows, kernel_columns
        1 ... 7.
    stride_rows, stride_columns
        1 ... 7.
    dilation_rows, dilation_columns
        1 ... 63.
    pad_rows, pad_columns
        Above and left.
    steps
        Cycles a word: ``ceil(kernel_rows * kernel_columns / T)``; of samples as many as taps.
    first_need
        Rows of the map that must be there before the first row of results, signed; each later row needs
        ``stride_rows`` more, and none needs more than all.
    first_free
        Rows of the map that the first row of results does not need any more, signed; grows likewise.
    offsets : 2
        `Offsets`.
    masked
        Offsets come with masks.
    gather
        Samples with a neighbour in rows outside of ``first_free ... first_need - 1``, which go down the map
        with the rows of results, are read from memory.  Only with `Offsets.FREE`, of one group for all
        channels, and for a map that lies in memory in one part.
    entries
        Entries of offsets that a pixel has, see `OffsetCommand`.
    group_slices
        Slices of L / G lanes that share offsets.
    dot, passes
        Offsets are computed from the map as it comes, so many pairs of numbers a pixel.
    samples, digits
        No sums: the samples leave, each digit of base 256 (`digits` of them) in a pass of its own, as words
        in the order [digit][tap][word of the pixel].  Without offsets, pixels leave as they are.
    settings : Settings
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "fill": FillCommand(config),
                "out_rows": SIDE_BITS,
                "out_columns": SIDE_BITS,
                "kernel_rows": KERNEL_BITS,
                "kernel_columns": KERNEL_BITS,
                "stride_rows": KERNEL_BITS,
                "stride_columns": KERNEL_BITS,
                "dilation_rows": DILATION_BITS,
                "dilation_columns": DILATION_BITS,
                "pad_rows": PAD_BITS,
                "pad_columns": PAD_BITS,
                "steps": 6,
                "first_need": signed(SIDE_BITS + 2),
                "first_free": signed(SIDE_BITS + 2),
                "offsets": 2,
                "masked": 1,
                "gather": 1,
                "entries": range(config.offset_entries + 1),
                "group_slices": WORDS_BITS + (config.generators - 1).bit_length(),
                "dot": 1,
                "passes": range(MAX_TAPS + 1),
                "samples": 1,
                "digits": 3,
                "settings": Settings(),
            }
        )


class OffsetCommand(data.StructLayout):
    """The offsets of a layer, as `hw.conv.core.offset_store` takes them.

    Members
    -------
    pixels
        Of the result.
    entries
        That a pixel has: ``groups * steps``, each of T taps (of samples one tap), or 1 if square.
    low, high
        Bounds that every offset is clamped to.
    dot
        They are computed on chip.
    tap : TapCommand
        The layer, if the engine can gather.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "pixels": 2 * SIDE_BITS,
                "entries": range(config.offset_entries + 1),
                "low": signed(OFFSET_BITS),
                "high": signed(OFFSET_BITS),
                "dot": 1,
                **({"tap": TapCommand(config)} if config.gather_words else {}),
            }
        )


class GatherRequest(data.StructLayout):
    """Pixels of the map that are read one by one: all words of the first, then all of the second.

    Members
    -------
    row, column
        Of the first.
    two
        The one on its right, too.
    ends
        No pixel: later requests are for the next layer that gathers.
    """

    def __init__(self) -> None:
        super().__init__({"row": SIDE_BITS, "column": SIDE_BITS, "two": 1, "ends": 1})


class Offset(data.StructLayout):
    """Offset of a tap: ``dy``, ``dx`` in units of 2^-F pixels, and its mask in units of 1/256."""

    def __init__(self) -> None:
        super().__init__({"dy": signed(OFFSET_BITS), "dx": signed(OFFSET_BITS), "mask": MASK_BITS})


def offset_entry(config: ConvConfig) -> data.ArrayLayout:
    """Give the offsets of T taps; those behind the last tap of a pixel have no meaning."""
    return data.ArrayLayout(Offset(), config.taps)


class TapRead(data.StructLayout):
    """What a lane cell reads for the samples that come two cycles later.

    Members
    -------
    weight
        Address of the weights of T taps, in the half of the layer: ``{step, word}`` counted up by the walker.
    word
        Word of the pixel, for parameters and the weights of a strip.
    half
        Which half of these RAMs the layer has.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__({"weight": range(config.tap_words), "word": range(TAP_LAYER_WORDS), "half": 1})


class Point(data.StructLayout):
    """A sample of one tap: where the four neighbours are among the banks, and how they are weighed.

    Members
    -------
    on
        There is such a tap; otherwise it counts nothing.
    odd_row, odd_column
        Parity of the upper left neighbour: its bank is ``2 * odd_row + odd_column``.
    inside
        Bit ``2 * r + c``: the neighbour r rows below and c columns right is in the map.
    ly, lx
        Fraction of the coordinates.
    mask
        Weight of the sample, if masked.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "on": 1,
                "odd_row": 1,
                "odd_column": 1,
                "inside": 4,
                "ly": config.fraction_bits,
                "lx": config.fraction_bits,
                "mask": MASK_BITS if config.mask else 0,
            }
        )


class StripPoint(data.StructLayout):
    """A step of a strip.

    Members
    -------
    begins
        No step: the next one is the first of its row of results.
    banks
        Of the kernel's rows, the upper one first.
    rows, columns
        Bits of the kernel's rows and columns that are in the map.
    span
        Words between the columns of the kernel: dilation times the words of a pixel.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "begins": 1,
                "banks": data.ArrayLayout(2, 3),
                "rows": 3,
                "columns": 3,
                "span": range(config.strip_words + 1),
            }
        )


class TapControl(data.StructLayout):
    """What the lane cells do with the words of the banks that come in the same cycle.

    Members
    -------
    valid
        There are words.
    first, last
        They are the first or the last of their sum; with ``last`` a result comes, `LaneCell.latency` later.
    masked
        Masks count.
    samples, digit
        The result is this digit of the first tap's sample.
    plain
        The result is the first tap's pixel as it is, or the zero point outside of the map.
    strip
        A step of a strip: every one shifts the window; with ``last`` a result comes.
    settings : Settings
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "valid": 1,
                "first": 1,
                "last": 1,
                "masked": 1,
                "samples": 1,
                "plain": 1,
                "digit": 2,
                "strip": 1,
                "window": StripPoint(config),
                "settings": Settings(),
            }
        )
