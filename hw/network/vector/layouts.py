"""A command of the vector unit in bits, and the rows of its tables."""

from __future__ import annotations

from amaranth.hdl import ShapeLike, signed
from amaranth.lib import data

from hw.lib.arithmetic.float_scale import EXPONENT_BITS, MULTIPLIER_BITS
from hw.lib.arithmetic.sum_exceptions import SumExceptions
from hw.network.normalization import (
    BIAS_BITS,
    FINE_BITS,
    GAIN_BITS,
    MOST_CHANNELS,
    MOST_DROPPED,
    ODD_BITS,
    VALUE_BITS,
)
from hw.network.tables.layouts import RowWrite
from hw.network.vector.config import VectorConfig

#: Bits of counts of rows, columns and words; of taps of a window, down or across; of a softmax's channels.
COUNT_BITS, TAP_BITS, CHANNEL_BITS = 14, 8, 13
#: Shape of rows and columns of an image, which may lie outside.
COORDINATE = signed(16)
#: Bits of the factors of an addition, and least shift of its sum; `SHIFT_BITS` bits count from there.
FACTOR_BITS, LEAST_SHIFT, SHIFT_BITS = 26, 9, 4
#: Of a LayerNorm: bits of its number of channels, of their power of two, of dropped bits, and of its epsilon.
DIVISOR_BITS = MOST_CHANNELS.bit_length()
TWOS_BITS, DROPPED_BITS = 4, MOST_DROPPED.bit_length()
EPSILON_BITS = 2 * (DIVISOR_BITS - 1) + 2 * VALUE_BITS - 4
#: Bits of the number of a word of a LayerNorm's pixel.
WORD_BITS = 8
#: Channels of a granule of int16.
GRANULE_CHANNELS = 8
#: Bits of the steps of a softmax's result, and of an exponential.
STEPS_BITS, EXPONENTIAL_BITS = 27, 20


class TapRow(data.StructLayout):
    """A row of a window: its distance from a pixel, in granules, rows and columns."""

    def __init__(self, config: VectorConfig) -> None:
        address = config.shape.granule_address_bits
        super().__init__({"offset": address, "row": COORDINATE, "column": COORDINATE})


class ScaleRow(data.StructLayout):
    """A factor of `hw.lib.arithmetic.float_scale`."""

    def __init__(self) -> None:
        super().__init__({"multiplier": MULTIPLIER_BITS, "exponent": EXPONENT_BITS})


class Walk(data.StructLayout):
    """A number that follows the loops: its start, and its increment in each loop."""

    def __init__(self, shape: ShapeLike) -> None:
        super().__init__(dict.fromkeys(("start", "row", "outer", "inner", "column"), shape))


class PixelSettings(data.StructLayout):
    """What stays for a command: numbers of its channels, see `hw.network.normalization`."""

    def __init__(self) -> None:
        super().__init__(
            {
                "channels": DIVISOR_BITS,
                "odd": ODD_BITS,
                "twos": TWOS_BITS,
                "dropped": DROPPED_BITS,
                "epsilon": EPSILON_BITS + 1,
            }
        )


class ChannelRow(data.StructLayout):
    """The factors of a channel, see `hw.network.normalization`.

    ``fine`` is modulo 4; where it is -1, the bias has one more.
    """

    def __init__(self) -> None:
        super().__init__({"gain": signed(GAIN_BITS), "fine": FINE_BITS, "bias": signed(BIAS_BITS)})


class ChannelPort(RowWrite):
    """A write port of the factors of channels: those of a granule of int16."""

    def __init__(self, config: VectorConfig) -> None:
        rows = config.channels * config.lanes // GRANULE_CHANNELS
        super().__init__(rows, data.ArrayLayout(ChannelRow(), GRANULE_CHANNELS))


class VectorFields(data.StructLayout):
    """A command.

    Its loops, the outermost first: ``rows``, ``outer``, ``passes``, ``inner``, ``columns``, ``taps``.  The
    last two make a window.  ``outer`` and ``inner`` are words and pixels of a row, or with ``words_inner``
    the other way round.
    """

    def __init__(self, config: VectorConfig) -> None:
        address = config.shape.granule_address_bits
        super().__init__(
            {
                "kind": 4,  #: A `VectorKind`.
                "rows": COUNT_BITS,
                "outer": COUNT_BITS,
                "passes": 2,
                "inner": COUNT_BITS,
                "columns": TAP_BITS,  #: Steps across the window, of one column or of two.
                "taps": TAP_BITS,
                "first": Walk(address),  #: Of the first operand, or the first column of a step.
                "second": Walk(address),
                "target": Walk(address),
                "column": Walk(COORDINATE),  #: Column in the image.
                "stride_y": COUNT_BITS,
                "height": COUNT_BITS,
                "width": COUNT_BITS,
                "words_inner": 1,
                "last_enable": config.granules,  #: Granules of a pixel's last word.
                "first_tap": range(config.taps),
                "reads_second": 1,
                "pairs": 1,  #: The second operand is the window's next column, not a tensor of its own.
                "pair_step": COORDINATE,  #: Columns of the image to it.
                "odd": 1,  #: The last step has one column.
                #: A window begins with the columns that the one before kept; the row's first has no result.
                "reuses": 1,
                "keep_column": TAP_BITS,  #: Step from which on columns are kept.
                "keep_second": 1,  #: Of this step, only the second column.
                "zero_first": 8,
                "zero_second": 8,
                "zero": 8,
                "low": 8,
                "high": 8,
                "factor_first": FACTOR_BITS,
                "factor_second": FACTOR_BITS,
                "shift": SHIFT_BITS,
                "exceptions": SumExceptions(),  #: Of an addition or a product.
                "ties_odd": 1,  #: Of a mean or a product, see `hw.lib.arithmetic.float_scale`.
                "scale": range(config.scales),
                "counted": 1,  #: The scale's row depends on the elements of the window in the image.
                "table": range(config.tables),
                "exponential": range(config.exponentials),
                "channels": CHANNEL_BITS,
                "steps": STEPS_BITS,
                "silent": 1,  #: Windows have no results.
                #: The column is the number of a word of its pixel: of ``last_word``, ``last_read`` is read.
                "counts_words": 1,
                "last_word": WORD_BITS,
                "last_read": config.granules,
                "byte": 1,  #: Results of LayerNorm are int8.
                "pixel": range(config.pixels),  #: The first one's row of statistics.
                "channel_row": range(config.channels),
                "pixel_settings": PixelSettings(),
            }
        )
