"""Sums of two values: onnxruntime's QLinearAdd rounds in float32, and integers reach the same results.

With a, b the stored integers as the model has them, and r the ratios of scales to the result's, in float32:
``rint(fma(a, r_a, fma(b, r_b, z - fma(r_a, z_a, r_b * z_b))))``.

The gates have ``a * first + b * second``, and round it once.  Results next to a tie may fall to the other
side.  Factors near the ratios are searched for the fewest such pairs of bytes.  A sum's exceptions are pairs
whose rounding the gates invert.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hw.errors import InputError
from hw.network.graph.integers import rounded_shift
from hw.network.graph.network import Value

#: Fraction bits of the factors of a sum of two values, and bits of a factor.
SUM_FRACTION_BITS, ADD_BITS = 24, 26
#: Least and most shift of a sum or mean of int16, and bits of all factors of a mean together.
WIDE_SHIFTS, MEAN_BITS = (20, 35), 30
#: Pairs of bytes of a sum whose rounding is inverted, at most.
MOST_EXCEPTIONS = 2
#: Distances of factors from the ratios, in the search and where too many pairs are left.
_NEAR, _WIDE = 2, 8
#: Differing pairs that are tried as exceptions.
_MOST_TRIED = 64
#: A bound of float32's error, in units of the factors' last bit.
_ERROR = 1 << 12

Integers = NDArray[np.int64]
#: All pairs of stored bytes: a down, b across.
ALL_PAIRS = (np.arange(-128, 128)[:, None], np.arange(-128, 128)[None, :])
#: Scale, zero point, and whether the model's elements are uint8.
_Quantization = tuple[float, int, bool]


@dataclass(frozen=True, kw_only=True)
class SumRule:
    """A sum in integers: ``((a - a_zero) * first + (b - b_zero) * second) / 2^shift + zero``, to even."""

    first: int
    second: int
    shift: int
    exceptions: tuple[tuple[int, int], ...] = ()  #: Stored a and b whose rounding is inverted.
    unequal: int = 0  #: Pairs of bytes, of 65,536, whose results are not float32's.

    @property
    def swapped(self) -> SumRule:
        """The same sum with its operands in the other order."""
        pairs = tuple((second, first) for first, second in self.exceptions)
        return replace(self, first=self.second, second=self.first, exceptions=pairs)

    def results(self, first: Integers, second: Integers, *, zeros: tuple[int, int], zero: int) -> Integers:
        """Return the sums of stored operands, not clamped."""
        total = (first - zeros[0]) * self.first + (second - zeros[1]) * self.second + (zero << self.shift)
        found, floor = rounded_shift(total, self.shift), total >> self.shift
        return with_exceptions(found, floor, first, second, self.exceptions)


def with_exceptions(
    found: Integers, floor: Integers, first: Integers, second: Integers, exceptions: Sequence[tuple[int, int]]
) -> Integers:
    """Return results, with the rounding from ``floor`` inverted where operands are an exception."""
    for pair in exceptions:
        here = (first == pair[0]) & (second == pair[1])
        found = np.where(here, 2 * floor + 1 - found, found)
    return found


def exceptions_of(
    results: Callable[[Integers, Integers], Integers], wanted: Integers
) -> tuple[tuple[int, int], ...]:
    """Return pairs of bytes whose results differ from ``wanted`` by their rounding, as many as gates take.

    ``results``: returns the results of stored operands, not clamped. ``wanted``: clamped, of all pairs.
    """
    pairs = np.argwhere(np.clip(results(*ALL_PAIRS), -128, 127) != wanted)
    found: list[tuple[int, int]] = []
    for row, column in pairs[:_MOST_TRIED]:
        got = int(results(np.array(row - 128), np.array(column - 128)))
        # Clamped results do not show their rounding.
        if abs(got - wanted[row, column]) == 1 and len(found) < MOST_EXCEPTIONS:
            found.append((int(row) - 128, int(column) - 128))
    return tuple(found)


def sum_shift(first: float, second: float, scale: float) -> int:
    """Return the shift of a sum, from scales of operands and result.

    It is `SUM_FRACTION_BITS`, less where a factor would exceed `ADD_BITS` bits.  No unit takes one below 1.
    """
    most = max(first, second)
    if most / scale >= 1 << ADD_BITS:
        return 0
    ratio = float(np.float32(most) / np.float32(scale))
    return min(SUM_FRACTION_BITS, ADD_BITS - math.frexp(ratio)[1])


def sum_rule(first: Value, second: Value, result: Value, *, last: int = 0) -> SumRule:
    """Return the rule of a sum.

    ``last``: the operand, 0 or 1, that onnxruntime adds last; it is a of the formula.
    """
    operands = [(value.scale, value.zero, value.unsigned) for value in (first, second)]
    found = _rule(operands[last], operands[1 - last], (result.scale, result.zero, result.unsigned))
    return found.swapped if last else found


def wide_sum_rule(first: Value, second: Value, result: Value) -> SumRule:
    """Return the rule of a sum of int16: factors nearest to the ratios of scales.

    Raises `InputError` for a result that is much finer than an operand.
    """
    shift = sum_shift(first.scale, second.scale, result.scale)
    return _wide_rule([each.scale / result.scale for each in (first, second)], shift, result)


def wide_mean_rule(operand: Value, result: Value, *, count: int) -> SumRule:
    """Return the rule of a mean of int16: that of the sum of ``count`` of them, beside nothing."""
    whole = operand.scale / result.scale
    room = (MEAN_BITS - math.frexp(whole)[1], ADD_BITS - math.frexp(whole / count)[1])
    return _wide_rule([whole / count, 0.0], min(WIDE_SHIFTS[1], *room), result)


def _wide_rule(ratios: list[float], shift: int, result: Value) -> SumRule:
    if shift < WIDE_SHIFTS[0]:
        legal = f"less than 2^{ADD_BITS - WIDE_SHIFTS[0]} times as fine as its operands'"
        raise InputError(f"scale of value {result.name!r}", result.scale, legal)
    # A factor just below a power of two may round up to it.
    first, second = (min(round(each * 2.0**shift), (1 << ADD_BITS) - 1) for each in ratios)
    return SumRule(first=first, second=second, shift=shift)


@functools.lru_cache(maxsize=1024)
def _rule(first: _Quantization, second: _Quantization, result: _Quantization) -> SumRule:
    shift = sum_shift(first[0], second[0], result[0])
    if shift < 1:
        return SumRule(first=0, second=0, shift=shift)
    ratios = [float(np.float32(each[0]) / np.float32(result[0])) for each in (first, second)]
    rule = SumRule(first=round(ratios[0] * 2.0**shift), second=round(ratios[1] * 2.0**shift), shift=shift)
    zeros, zero = (first[1], second[1]), result[1]
    wanted = _float32_results(first, second, result)

    def unequal(each: SumRule) -> int:
        found = each.results(*ALL_PAIRS, zeros=zeros, zero=zero)
        return int(np.count_nonzero(np.clip(found, -128, 127) != wanted))

    if unequal(rule):
        for reach in (_NEAR, _WIDE):
            rule = _searched(rule, wanted, zeros, zero, reach)
            if unequal(rule) <= MOST_EXCEPTIONS:
                break
        results = functools.partial(rule.results, zeros=zeros, zero=zero)
        rule = replace(rule, exceptions=exceptions_of(results, wanted))
    return replace(rule, unequal=unequal(rule))


def _searched(rule: SumRule, wanted: Integers, zeros: tuple[int, int], zero: int, reach: int) -> SumRule:
    """Return the factors within ``reach`` of a rule's with the fewest differing pairs."""
    stored = np.arange(-128, 128)
    total = (
        (stored[:, None] - zeros[0]) * rule.first + (stored - zeros[1]) * rule.second + (zero << rule.shift)
    )
    half, one = 1 << rule.shift - 1, 1 << rule.shift
    # Other pairs have their result with all of these factors.
    margin = 255 * 2 * reach + _ERROR
    rest = (total + half) & (one - 1)
    found = np.clip(rounded_shift(total, rule.shift), -128, 127)
    rows, columns = np.nonzero((rest <= margin) | (rest >= one - margin) | (found != wanted))
    total, wanted = total[rows, columns], wanted[rows, columns]
    a, b = rows - 128 - zeros[0], columns - 128 - zeros[1]
    steps = sorted(
        itertools.product(range(-reach, reach + 1), repeat=2),
        key=lambda step: (max(map(abs, step)), sum(map(abs, step))),
    )
    best, fewest = rule, len(total) + 1
    for i, j in steps:
        first, second = rule.first + i, rule.second + j
        if not (min(first, second) >= 0 and max(first, second) < 1 << ADD_BITS):
            continue
        results = np.clip(rounded_shift(total + a * i + b * j, rule.shift), -128, 127)
        differ = int(np.count_nonzero(results != wanted))
        if differ < fewest:
            best, fewest = replace(rule, first=first, second=second), differ
        if not differ:
            break
    return best


def _float32_results(first: _Quantization, second: _Quantization, result: _Quantization) -> Integers:
    """Return onnxruntime's results, as stored, for all pairs of stored bytes."""
    scales = [np.float32(each[0]) for each in (first, second, result)]
    # uint8 elements are 128 more than stored ones.
    offsets = [128 * each[2] for each in (first, second, result)]
    zeros = [each[1] + offset for each, offset in zip((first, second, result), offsets, strict=True)]
    ratios = [scales[0] / scales[2], scales[1] / scales[2]]
    stored = np.arange(-128, 128)
    a, b = (stored + offsets[0])[:, None], (stored + offsets[1])[None, :]
    fixed = np.float32(zeros[2]) - _fma(ratios[0], zeros[0], ratios[1] * np.float32(zeros[1]))
    found = np.rint(_fma(a, ratios[0], _fma(b, ratios[1], fixed))).astype(np.float64)
    return np.clip(found - offsets[2], -128, 127).astype(np.int64)


def _fma(first: object, second: object, third: object) -> NDArray[np.float32]:
    """Return ``first * second + third``, rounded once to float32."""
    product = np.asarray(first, np.longdouble) * np.asarray(second, np.longdouble)
    return np.asarray(product + np.asarray(third, np.longdouble)).astype(np.float32)
