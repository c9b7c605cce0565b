"""Number formats of tensors: reals to the engine's integers (``docs/conv-specification.md``)."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hw.conv.config import BIAS_BITS, MULTIPLIER_BITS, OFFSET_BITS, SHIFT_BITS
from hw.errors import InputError

Int = NDArray[np.int64]
Float = NDArray[np.floating[Any]]

#: Largest weight, of either sign, for the bits of a weight.
LARGEST_WEIGHT = {8: 127, 4: 7}
_LARGEST_SHIFT = 2**SHIFT_BITS - 1


def quantized_map(x: Float) -> tuple[NDArray[np.int8], float, int]:
    """Quantize a map per tensor: ``x = (q - zero) * scale`` to the nearest, 0.0 exactly.

    Returns q, the scale and the zero, such that the range of int8 covers ``x`` and 0.
    """
    _check_finite("x", x)
    low, high = min(0.0, float(x.min(initial=0))), max(0.0, float(x.max(initial=0)))
    scale = (high - low) / 255 or 1.0
    zero = int(np.clip(round(-128 - low / scale), -128, 127))
    return np.clip(np.rint(x / scale) + zero, -128, 127).astype(np.int8), scale, zero


def quantized_weights(w: Float, bits: Literal[4, 8] = 8) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Quantize weights ``[Cout, ...]`` per output channel, symmetric: int8 and the scales ``[Cout]``.

    The range is -127 ... 127 for 8 ``bits``, -7 ... 7 for 4; a channel of zeros has the scale 1.
    """
    _check_finite("w", w)
    largest = np.abs(w.astype(np.float64)).reshape(len(w), -1).max(axis=1)
    scales = np.where(largest > 0, largest / LARGEST_WEIGHT[bits], 1.0)
    return np.rint(w / scales.reshape(-1, *[1] * (w.ndim - 1))).astype(np.int8), scales


def check_weights(w: NDArray[np.int8], bits: Literal[4, 8]) -> None:
    """Raise `InputError` if a weight of ``bits`` is out of range: int8, or -7 ... 7."""
    low, high = (-7, 7) if bits == 4 else (-128, 127)
    for extreme in (w.min(initial=0), w.max(initial=0)):
        if not low <= extreme <= high:
            raise InputError("w", int(extreme), f"from {low} to {high} with weights of {bits} bits")


def quantized_offsets(offset: Float, fraction_bits: int, bound: int | None = None) -> NDArray[np.int16]:
    """Return ``floor(v * 2^F + 1/2)``, clamped to ``bound`` pixels if there is one.

    Raises `InputError` for NaN, for a bound beyond int16 and, without a bound, for values beyond int16.
    """
    if np.isnan(offset).any():
        raise InputError("offset", math.nan, "a number")
    values = np.floor(offset.astype(np.float64) * 2.0**fraction_bits + 0.5)
    most = 2.0 ** (OFFSET_BITS - 1) - 1
    if bound is not None:
        reach = float(bound << fraction_bits)
        if reach > most:
            raise InputError("bound", bound, f"at most {int(most) >> fraction_bits}")
        values = np.clip(values, -reach, reach)
    for extreme in (values.min(initial=0), values.max(initial=0)):
        if not -most - 1 <= extreme <= most:
            legal = f"from {(-most - 1) / 2**fraction_bits} to {most / 2**fraction_bits}"
            raise InputError("offset", float(extreme) / 2**fraction_bits, legal)
    return values.astype(np.int16)


def quantized_mask(mask: Float) -> NDArray[np.uint8]:
    """Return masks in units of 1/256, to the nearest; 1 becomes 255.

    Raises `InputError` for values outside 0 ... 1.
    """
    _check_finite("mask", mask)
    for extreme in (float(mask.min(initial=0)), float(mask.max(initial=0))):
        if not 0 <= extreme <= 1:
            raise InputError(
                "mask", extreme, "from 0 to 1; of masks up to 2 take half, and twice the weights"
            )
    return np.minimum(np.floor(mask.astype(np.float64) * 256 + 0.5), 255).astype(np.uint8)


def quantized_bias(bias: Float, unit: NDArray[np.float64] | float) -> Int:
    """Return a bias in units of ``unit``, the real value of 1 in a channel's sum."""
    _check_finite("bias", bias)
    values = np.rint(bias.astype(np.float64) / unit)
    if np.abs(values).max(initial=0) >= 2.0 ** (BIAS_BITS - 1):
        raise InputError("bias", float(np.abs(bias).max()), f"below 2^{BIAS_BITS - 1} units of the sums")
    return values.astype(np.int64)


def channel_scales(factors: NDArray[np.float64]) -> tuple[Int, Int]:
    """Return multipliers of 16 bits and shifts: ``multiplier * 2^-shift`` nearest to ``factors``."""
    mantissas, exponents = np.frexp(factors)
    multipliers = np.rint(np.ldexp(mantissas, MULTIPLIER_BITS))
    full = multipliers == 2**MULTIPLIER_BITS
    multipliers = np.where(full, multipliers / 2, multipliers)
    shifts = MULTIPLIER_BITS - exponents - full
    for n in np.flatnonzero((shifts < 0) | (shifts > _LARGEST_SHIFT) | ~(factors > 0)):
        legal = f"from 2^{MULTIPLIER_BITS - 1 - _LARGEST_SHIFT} to 2^{MULTIPLIER_BITS} - 1"
        raise InputError("scale of a channel", float(factors[n]), legal)
    return multipliers.astype(np.int64), shifts.astype(np.int64)


def _check_finite(name: str, values: Float) -> None:
    wrong = values[~np.isfinite(values)]
    if wrong.size:
        raise InputError(name, float(wrong.flat[0]), "finite")
