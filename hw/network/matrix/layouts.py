"""Layouts of the matrix unit: words of a packet, and the control of a pixel."""

from __future__ import annotations

from amaranth.hdl import signed
from amaranth.lib import data

from hw.lib.arithmetic.float_scale import EXPONENT_BITS, MULTIPLIER_BITS, SUM_BITS
from hw.network.matrix.config import BEAT_BITS, BEAT_INPUTS, CELL_COLUMNS, MatrixConfig


class WeightBeat(data.ArrayLayout):
    """A beat of weights: for each column of a cell those of `BEAT_INPUTS` inputs.

    The first beat has the last inputs of the tile: the cell uses them first.
    """

    def __init__(self) -> None:
        super().__init__(data.ArrayLayout(signed(8), BEAT_INPUTS), CELL_COLUMNS)


class ScaleBeat(data.StructLayout):
    """A beat of parameters, one for each column of a cell, after the weights of an n tile's first k tile."""

    def __init__(self) -> None:
        super().__init__(
            {
                "bias": signed(SUM_BITS),
                #: ``multiplier``, ``exponent``: of the scale, see `hw.lib.arithmetic.float_scale`.
                "multiplier": MULTIPLIER_BITS,
                "exponent": EXPONENT_BITS,
            }
        )


class ZeroBeat(data.ArrayLayout):
    """The last beat of parameters: the zero points of a cell's columns."""

    def __init__(self) -> None:
        super().__init__(signed(8), CELL_COLUMNS)


#: Bits of a shift of dot products.
SHIFT_BITS = 3
#: Beats of parameters.
PARAMETER_BEATS = CELL_COLUMNS + 1
assert ScaleBeat().size <= BEAT_BITS


def packet_beats(config: MatrixConfig, *, parameters: bool) -> int:
    """Return the words of a packet."""
    return config.weight_beats + PARAMETER_BEATS * parameters


class Packet(data.StructLayout):
    """Contents of the next packet beside weights."""

    def __init__(self) -> None:
        super().__init__({"parameters": 1})  #: Biases, scales and zero points of the columns.


class MatrixStep(data.StructLayout):
    """Control of a pixel, or of two at once."""

    def __init__(self, config: MatrixConfig) -> None:
        super().__init__(
            {
                "valid": 1,  #: There is a pixel.
                "pixel": range(config.block_pixels),  #: The place of its sums.
                "first": 1,  #: Its sums begin with the biases: the first k tile.
                "last": 1,  #: Its sums become results: the last k tile.
                "adopt": 1,  #: The weights that were loaded are used from this pixel on.
                "parameters": 1,  #: With ``adopt``: so are the parameters.
                #: The cells of the upper half take the second word, and not the first.
                "two": 1,
                "shift": SHIFT_BITS,  #: Places by which its dot products are shifted to the left.
            }
        )


class SumControl(data.StructLayout):
    """Control of a cell's sums and scales, each field in a cycle of its own, see `MatrixCell`."""

    def __init__(self, config: MatrixConfig) -> None:
        super().__init__(
            {
                "read": range(config.block_pixels),  #: The pixel whose sums are read.
                "first": 1,  #: Its sums begin with the biases.
                "parameters": 1,  #: It is the first with the parameters that were loaded.
                "shift": SHIFT_BITS,  #: Places by which its dot products are shifted to the left.
                "write": 1,  #: ``pixel``'s sums are written.
                "pixel": range(config.block_pixels),
            }
        )
