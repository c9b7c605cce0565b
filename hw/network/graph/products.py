"""Products of two values: onnxruntime's QLinearMul in float32, and the gates' equal to it.

With p the exact product: ``rint(float32(float32(p * scale) + z))``, z being the model's own zero point.

The gates do not round the sum with z to float32.  Results next to a tie may fall to the other side.  So the
scale and exceptions are chosen as those of sums are.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hw.network.graph.network import Value
from hw.network.graph.sums import ALL_PAIRS, MOST_EXCEPTIONS, Integers, exceptions_of, with_exceptions

#: float32 numbers on either side of the scale that are tried where exceptions are not enough.
_REACH = 32


@dataclass(frozen=True, kw_only=True)
class ProductRule:
    """A product by the gates: ``rint(float32((a - a_zero) * (b - b_zero) * scale) + zero)``."""

    scale: float  #: A float32.
    exceptions: tuple[tuple[int, int], ...] = ()  #: Stored a and b whose rounding is inverted.
    unequal: int = 0  #: Pairs of bytes, of 65,536, whose results are not onnxruntime's.

    def results(self, first: Integers, second: Integers, *, zeros: tuple[int, int], zero: int) -> Integers:
        """Return the products of stored operands, not clamped."""
        exact = _scaled((first - zeros[0]) * (second - zeros[1]), np.float32(self.scale)) + zero
        found, floor = (each.astype(np.int64) for each in (np.rint(exact), np.floor(exact)))
        return with_exceptions(found, floor, first, second, self.exceptions)


def product_rule(first: Value, second: Value, result: Value) -> ProductRule:
    """Return the rule of a product."""
    scales = first.scale, second.scale, result.scale
    return _rule(scales, (first.zero, second.zero), result.zero, unsigned=result.unsigned)


@functools.lru_cache(maxsize=1024)
def _rule(
    scales: tuple[float, float, float], zeros: tuple[int, int], zero: int, *, unsigned: bool
) -> ProductRule:
    first, second, result = map(np.float32, scales)
    scale = first * second / result
    if not np.isfinite(scale):
        return ProductRule(scale=float(scale))  # no unit takes it
    a, b = ALL_PAIRS
    own = 128 * unsigned
    with_zero = _scaled((a - zeros[0]) * (b - zeros[1]), scale).astype(np.float32) + np.float32(zero + own)
    wanted = np.clip(np.rint(with_zero).astype(np.int64) - own, -128, 127)

    def unequal(rule: ProductRule) -> int:
        found = rule.results(a, b, zeros=zeros, zero=zero)
        return int(np.count_nonzero(np.clip(found, -128, 127) != wanted))

    rule = ProductRule(scale=float(scale))
    fewest = unequal(rule)
    for other in _near(scale):
        if fewest <= MOST_EXCEPTIONS:
            break
        found = ProductRule(scale=float(other))
        if (differ := unequal(found)) < fewest:
            rule, fewest = found, differ
    if fewest:
        results = functools.partial(rule.results, zeros=zeros, zero=zero)
        rule = replace(rule, exceptions=exceptions_of(results, wanted))
    return replace(rule, unequal=unequal(rule))


def _near(scale: np.float32) -> list[np.float32]:
    """Return the float32 numbers next to a scale, the nearest first."""
    found, below, above = [], scale, scale
    for _ in range(_REACH):
        below, above = np.nextafter(below, np.float32(0)), np.nextafter(above, np.float32(np.inf))
        found += [below, above]
    return [each for each in found if each > 0 and np.isfinite(each)]


def _scaled(products: Integers, scale: np.float32) -> NDArray[np.float64]:
    return (products.astype(np.float32) * scale).astype(np.float64)
