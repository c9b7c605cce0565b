"""Number formats of a launch: multipliers and shifts of its scales (``docs/attention-specification.md``)."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError, check_range

OutputKind = Literal["int8", "int16", "bfloat16"]

_DTYPES: Mapping[OutputKind, type[np.int8] | type[np.int16] | type[np.uint16]] = {
    "int8": np.int8,
    "int16": np.int16,
    "bfloat16": np.uint16,
}

SCORE_FRACTION_BITS = 12
CAP_FRACTION_BITS = 18  # of a score over its cap
SLOPE_FRACTION_BITS = 24
_LARGEST_MULTIPLIER = 2**17 - 1


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """The launch arguments for the scales of the scores."""

    #: Raw score to log2 units (or to caps): ``(S * multiplier) >> shift``, rounded.
    multiplier: int
    shift: int


@dataclass(frozen=True, kw_only=True)
class Output:
    """Format of the results."""

    kind: OutputKind = "int16"  #: "int16", "int8" or "bfloat16"; bfloat16 results are bit patterns in uint16.
    fraction: int = 0  #: g of int16: results are in units of ``v_scale * 2^-g``.
    #: m_o and s_o of int8 and bfloat16: results are ``O / l * m_o * 2^(17 - s_o)``.
    multiplier: int = 0
    shift: int = 0

    def __post_init__(self) -> None:
        if self.kind == "int16":
            check_range("output fraction", self.fraction, 0, 15)
        else:
            check_range("output multiplier", self.multiplier, 2**16, _LARGEST_MULTIPLIER)
            check_range("output shift", self.shift, 19, _largest_shift(self.kind))

    @property
    def dtype(self) -> type[np.int8] | type[np.int16] | type[np.uint16]:
        """NumPy type of the results."""
        return _DTYPES[self.kind]


def _largest_shift(kind: OutputKind) -> int:
    return 47 if kind == "int8" else 126


def scaling(*, softmax_scale: float, q_scale: float, k_scale: float, cap: float | None = None) -> Scaling:
    """Find multiplier and shift of the scores.

    They follow from the factor of the logits and the real values of a step of q and of k. ``cap`` (natural
    units) caps logits, if any.

    Raises `InputError` when the product of the scales is out of the range of multiplier and shift.
    """
    unit = 2**SCORE_FRACTION_BITS * math.log2(math.e) if cap is None else 2**CAP_FRACTION_BITS / cap
    factor = softmax_scale * q_scale * k_scale * unit
    low, high = 2.0**-47, 2.0**16 * (1 - 2.0**-18)
    if not low <= factor < high:
        raise InputError(
            "softmax_scale * q_scale * k_scale",
            softmax_scale * q_scale * k_scale,
            f"from {low / unit:.3g} to {high / unit:.3g}",
        )
    shift = 47
    while round(factor * 2**shift) > _LARGEST_MULTIPLIER:
        shift -= 1
    return Scaling(multiplier=round(factor * 2**shift), shift=shift)


def cap_multiplier(cap: float) -> int:
    """Return c for a largest logit ``cap`` in natural units."""
    unit = math.log2(math.e) * 2**SCORE_FRACTION_BITS
    multiplier = round(cap * unit) if math.isfinite(cap) else 0
    if not 1 <= multiplier < 2**23:
        raise InputError("logit cap", cap, f"from {1 / unit:.3g} to {(2**23 - 1) / unit:.6g}")
    return multiplier


def slope_multiplier(slope: float) -> int:
    """Return a for an ALiBi slope in natural units a key."""
    unit = math.log2(math.e) * 2**SLOPE_FRACTION_BITS
    multiplier = round(slope * unit) if math.isfinite(slope) else -1
    if not 0 <= multiplier < 2**26:
        raise InputError("slope", slope, f"from 0 to {(2**26 - 1) / unit:.6g}")
    return multiplier


def output_scaling(kind: OutputKind, factor: float) -> Output:
    """Return m_o and s_o of int8 and bfloat16 results for ``factor`` = v_scale / output_scale.

    Raises `InputError` when ``factor`` is out of the range of multiplier and shift.
    """
    largest = _largest_shift(kind)
    if kind == "int16" or not 2.0 ** (33 - largest) <= factor < 2.0**15 * (1 - 2.0**-18):
        legal = f"from 2^{33 - largest} to below 2^15, for int8 or bfloat16"
        raise InputError("v_scale / output_scale", factor, legal)
    shift = largest
    while round(factor * 2.0 ** (shift - 17)) > _LARGEST_MULTIPLIER:
        shift -= 1
    return Output(kind=kind, multiplier=round(factor * 2.0 ** (shift - 17)), shift=shift)


def bfloat16_values(patterns: NDArray[np.uint16]) -> NDArray[np.float32]:
    """Return the numbers of bfloat16 bit patterns."""
    return (patterns.astype(np.uint32) << 16).view(np.float32)
