"""Placing the model of a matrix array: its interface, as values of the component that places it."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, ClockSignal, Const, Instance, Module, Signal, Value

#: Widths of the model's inputs.
_PIXEL_BITS, _STROBE_BITS = 16, 64
#: Fields of a step, the lowest bit first.
_STEP = ("valid", "first", "last", "adopt", "parameters", "two", "shift")
#: Bits of a result, and of the words in which results come.
_RESULT_BITS, _RESULTS_BITS = 16, 64


def matrix(
    m: Module, *, x: tuple[Value, Value], step: Any, strobes: Value, word: Value, pixels: int, latency: int
) -> Value:
    """Place an array of multipliers with weights that stay.

    * ``x``: vectors of int8, the second for the upper half of the columns with ``step.two``.
    * ``step``: a `hw.network.matrix.layouts.MatrixStep`, in the same cycle.
    * ``strobes``, ``word``: a bit for each word of a packet, and the word, 8 bytes for each two columns.
    * ``pixels``: places for sums.

    Returns the results, int16, of the step with ``last`` of ``latency`` cycles ago.
    """
    columns = len(word) // 32
    bits = columns * _RESULT_BITS
    o = Signal(-(-bits // _RESULTS_BITS) * _RESULTS_BITS, name="matrix_o")
    m.submodules.matrix = Instance(
        "LoomMatrix",
        p_INPUTS=len(x[0]) // 8,
        p_COLUMNS=columns,
        p_PIXELS=pixels,
        p_LATENCY=latency,
        i_clk=ClockSignal(),
        i_first=x[0],
        i_second=x[1],
        i_pixel=_wide(step.pixel, _PIXEL_BITS),
        i_step=Cat(step[name] for name in _STEP),
        i_strobes=_wide(strobes, _STROBE_BITS),
        i_word=word,
        o_o=o,
    )
    return o[:bits]


def _wide(value: Value, bits: int) -> Value:
    """Extend an unsigned value to ``bits``."""
    return Cat(value, Const(0, bits - len(value)))
