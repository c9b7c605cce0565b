"""A figure with its range: the bounds within which it is expected."""

from __future__ import annotations

from dataclasses import dataclass

from hw.errors import InputError


@dataclass(frozen=True)
class Span:
    """A figure of at least 0, and the ends of its range around it; all three have one unit.

    Sums and multiples of spans have the sums and multiples of their ends: errors are taken to be in one
    direction, which is the safe side.

    Raises `InputError` when the figure is outside of its range.

    >>> Span(2.0, 1.5, 3.0) + 2 * Span(1.0, 0.5, 1.5)
    Span(value=4.0, low=2.5, high=6.0)
    """

    value: float = 0.0
    low: float = 0.0
    high: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.value <= self.high < float("inf"):
            raise InputError("value", self.value, f"from low, {self.low:g}, to high, {self.high:g}; low >= 0")

    def __add__(self, other: Span) -> Span:
        """Return the sum."""
        return Span(self.value + other.value, self.low + other.low, self.high + other.high)

    def __mul__(self, factor: float) -> Span:
        """Return a multiple."""
        return Span(factor * self.value, factor * self.low, factor * self.high)

    __rmul__ = __mul__

    def holds(self, figure: float) -> bool:
        """Tell whether ``figure`` is within the range."""
        return self.low <= figure <= self.high
