"""Commands of the core's units, and the data between them.

Every unit has a queue of commands, one for each of its jobs, and executes them in order.  Words, offsets and
weights carry no tag: their order alone assigns them to a job.
"""

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

#: Bits of a number of row slots: a map held whole may have one slot more than rows.
SLOT_BITS = SIDE_BITS + 1
#: Bits of a kernel's side and of a stride, of a dilation, and of the padding above and left.
KERNEL_BITS, DILATION_BITS, PAD_BITS = 3, 6, 7


class Offsets(IntEnum):
    """The displacement of a tap from the regular grid."""

    NONE = 0
    FREE = 1  # each tap has an offset of its own
    SQUARE = 2  # one offset a pixel: tap (i, j) moves by it times (i - (K - 1) / 2, j - (K - 1) / 2)


class Settings(data.StructLayout):
    """The scale of sums to results: ``clamp(((sum * multiplier + half) >> shift) + post, low, high)``."""

    def __init__(self) -> None:
        super().__init__(
            {
                "zero": signed(8),  #: Zero point of the input: the value of pixels outside the map.
                #: ``low``, ``high``: bounds of a result.
                "low": signed(8),
                "high": signed(8),
                #: No rounding and no bounds: the low 8 bits of ``(sum * multiplier >> shift) + post``.
                #: Multiplier 1 and post 0 select a byte of the sum.
                "raw": 1,
            }
        )


class FillCommand(data.StructLayout):
    """A map that is written to the line buffer; part of `TapCommand`."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                #: ``rows``, ``columns``, ``words``: size of the map; ``words`` of a pixel.  Words arrive row
                #: by row, pixel by pixel, first channels first.
                "rows": SIDE_BITS,
                "columns": SIDE_BITS,
                "words": WORDS_BITS,
                #: Rows that the buffer holds: even, and a multiple of ``4 << split`` for a strip.
                "slots": SLOT_BITS,
                #: Words from one row of a bank to the next: ``ceil(columns / 2) * words``; ``columns *
                #: words`` for a strip.
                "row_words": range(config.bank_words + 1),
                #: ``strip``, ``split``: see `hw.conv.core.depthwise.fill`: banks by parity, or row y in bank
                #: ``(y >> split) & 3``.
                "strip": 1,
                "split": 2,
                #: Words are read from memory: the unit returns a token for each row that it has room for.
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
                #: ``pad_rows``, ``pad_columns``: above and left of the map.
                "pad_rows": PAD_BITS,
                "pad_columns": PAD_BITS,
                #: Cycles a word: ``ceil(kernel_rows * kernel_columns / T)``; one for each tap where samples
                #: leave.
                "steps": 6,
                #: Rows of the map that the first row of results needs, signed.  Each later row needs
                #: ``stride_rows`` more, up to all rows.
                "first_need": signed(SIDE_BITS + 2),
                #: Rows of the map that the first row of results no longer needs, signed; grows by
                #: ``stride_rows``.
                "first_free": signed(SIDE_BITS + 2),
                "offsets": 2,  #: `Offsets`.
                "masked": 1,  #: Offsets have masks beside them.
                #: Samples with a neighbour outside the rows ``first_free ... first_need - 1`` are read from
                #: memory; that window moves down with the rows of results.  Only with `Offsets.FREE`, one
                #: group for all channels, and a map that lies in memory in one part.
                "gather": 1,
                #: Entries of offsets of a pixel, see `OffsetCommand`.
                "entries": range(config.offset_entries + 1),
                #: Slices of L / G lanes that share offsets.
                "group_slices": WORDS_BITS + (config.generators - 1).bit_length(),
                #: ``dot``, ``passes``: offsets are computed from the map, ``passes`` pairs of numbers a
                #: pixel.
                "dot": 1,
                "passes": range(MAX_TAPS + 1),
                #: ``samples``, ``digits``: samples leave instead of sums, in ``digits`` of base 256, a pass
                #: for each.  Their words are in the order [digit][tap][word of the pixel].  Without offsets,
                #: pixels leave unchanged.
                "samples": 1,
                "digits": 3,
                "settings": Settings(),
            }
        )


class OffsetCommand(data.StructLayout):
    """The offsets of a layer, as `hw.conv.core.depthwise.offset_store` takes them."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "pixels": 2 * SIDE_BITS,  #: Pixels of the result.
                #: Entries of a pixel: ``groups * steps`` of T taps each (of one tap for samples), or 1 if
                #: square.
                "entries": range(config.offset_entries + 1),
                #: ``low``, ``high``: bounds to which every offset is clamped.
                "low": signed(OFFSET_BITS),
                "high": signed(OFFSET_BITS),
                "dot": 1,  #: Offsets are computed on chip.
                #: The layer, if the engine can gather.
                **({"tap": TapCommand(config)} if config.gather_words else {}),
            }
        )


class GatherRequest(data.StructLayout):
    """Pixels of the map that are read one by one: all words of the first, then all of the second."""

    def __init__(self) -> None:
        super().__init__(
            {
                #: ``row``, ``column``: of the first pixel.
                "row": SIDE_BITS,
                "column": SIDE_BITS,
                "two": 1,  #: The pixel to its right is read, too.
                "ends": 1,  #: No pixel: later requests belong to the next layer that gathers.
            }
        )


class Offset(data.StructLayout):
    """Offset of a tap: ``dy``, ``dx`` in units of 2^-F pixels, and its mask in units of 1/256."""

    def __init__(self) -> None:
        super().__init__({"dy": signed(OFFSET_BITS), "dx": signed(OFFSET_BITS), "mask": MASK_BITS})


def offset_entry(config: ConvConfig) -> data.ArrayLayout:
    """Return the layout of the offsets of T taps; those after a pixel's last tap are undefined."""
    return data.ArrayLayout(Offset(), config.taps)


class TapRead(data.StructLayout):
    """The reads of a lane cell for the samples two cycles later."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                #: Address of the weights of T taps, within the layer's half: ``{step, word}``, counted up by
                #: the walker.
                "weight": range(config.tap_words),
                #: Word of the pixel, for parameters and for the weights of a strip.
                "word": range(TAP_LAYER_WORDS),
                "half": 1,  #: The layer's half of these RAMs.
            }
        )


class SamplePoint(data.StructLayout):
    """A sample of one tap: the banks of its four neighbours, and their weights."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "on": 1,  #: The tap exists; otherwise it adds nothing.
                #: ``odd_row``, ``odd_column``: parity of the upper left neighbour, whose bank is ``2 *
                #: odd_row + odd_column``.
                "odd_row": 1,
                "odd_column": 1,
                #: Bit ``2 * r + c``: the neighbour r rows below and c columns to the right is in the map.
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
                "begins": 1,  #: Not a step: the next one is the first of its row of results.
                "banks": data.ArrayLayout(2, 3),  #: Banks of the kernel's rows, the upper one first.
                #: ``rows``, ``columns``: bits of the kernel's rows and columns that are in the map.
                "rows": 3,
                "columns": 3,
                #: Words between the columns of the kernel: dilation times the words of a pixel.
                "span": range(config.strip_words + 1),
            }
        )


class TapControl(data.StructLayout):
    """Control of the lane cells for the words of the banks in the same cycle."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "valid": 1,  #: Words are valid.
                #: ``first``, ``last``: the first or the last words of their sum; ``last`` produces a result
                #: `LaneCell.latency` cycles later.
                "first": 1,
                "last": 1,
                "masked": 1,  #: Masks are multiplied in.
                #: ``samples``, ``digit``: the result is this digit of the first tap's sample.
                "samples": 1,
                #: The result is the first tap's pixel unchanged, or the zero point outside the map.
                "plain": 1,
                "digit": 2,
                "strip": 1,  #: A step of a strip: each shifts the window; ``last`` produces a result.
                "window": StripPoint(config),
                "settings": Settings(),
            }
        )
