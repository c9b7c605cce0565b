"""LayerNorm in integers: its formula, the table of reciprocal roots, and the factors of channels.

Of a pixel with n int16 values s, ``n = odd * 2^twos`` as `split_channels` returns it, and d `dropped_bits`:

1. ``S = sum(s)``, ``Q = sum(s^2)``, ``W = n Q - S^2 + E``.  E stands for epsilon, see `epsilon_units`.
2. ``W = w * 4^e`` with w from 1 to below 4.  r is about ``2^(20 - d) / sqrt(w)``, from a table: `root`.
3. ``x = e - twos - d``, at least -4.  ``j = ceil(x / 5)``, from 0 to 3.
   ``R = floor(odd * r * 2^(5 j - x))``, ``T = floor(S * r * 2^(5 j - x - twos))``.
4. ``z = floor((s R - T + h) / 32^j)`` is the normalized value with 20 fraction bits.  h is half of ``32^j``,
   or 0 without j.
5. ``y = floor((z * gain + 2^14 (floor(z / 2^16) * fine + bias)) / 2^shift)``, clamped.  Gain, fine and bias
   are those of the channel: `channel_rows`.

Why
---
``s R - T`` is ``(n s - S) r`` times a power of two, but needs no product of s and n.  R and T are made once
a pixel.  R is exact unless values deviate by thousands, so a row of equal values becomes exactly 0.  Shifts
by multiples of 5 are one level of choices in each lane.  ``fine``, from -1 to 2, counts quarters of the
gain's last bit: without it one in 10^4 results would differ from float's.  The bias holds the half that
rounds y.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from hw.errors import InputError, check_range

#: Bits of a value; most values of a pixel; bits of their sum, signed, of the sum of their squares, and of W.
VALUE_BITS, MOST_CHANNELS, SUM_BITS, SQUARES_BITS, SPREAD_BITS = 16, 1024, 26, 41, 52
#: Bits of r; of R and T, signed.
ROOT_BITS, SLOPE_BITS, TERM_BITS = 20, 27, 43
#: Least x, steps of j, and most of them.
LEAST_EXPONENT, STEP, MOST_STEPS = -4, 5, 3
#: Bits of z, and of its fraction.
Z_BITS, Z_PLACES = 27, 20
#: Bits of a gain and of a bias, signed; zeros below the bias; least shift of y, and bits beyond it.
GAIN_BITS, BIAS_BITS, BIAS_PLACES, LEAST_SHIFT, SHIFT_BITS = 18, 30, 14, 20, 4
#: Bits of a gain's quarters, and bits of z that these do not meet.
FINE_BITS, COARSE_PLACES = 2, BIAS_PLACES + 2
#: Bits of y before its clamp.
RESULT_BITS = BIAS_BITS + BIAS_PLACES
#: Rows of the table for w below 2, and for the others; bits of the place in a row.
ROOT_ROWS, REST_BITS = 512, 14
#: Bits of a row's value, those behind r's point, and bits of its slope.
ROOT_VALUE_BITS, ROOT_PLACES, ROOT_SLOPE_BITS = 23, 3, 13
#: Bits of the odd factor, and most bits dropped.
ODD_BITS, MOST_DROPPED = 6, 4
#: Fraction bits with which the table is computed.
_GUARD = 24


@dataclass(frozen=True, kw_only=True)
class ChannelRows:
    """The gain and the bias of each channel, and the shift of their sum."""

    gains: tuple[int, ...]
    fines: tuple[int, ...]  #: Quarters of a gain's last bit, -1 to 2.
    biases: tuple[int, ...]  #: In units of ``2^BIAS_PLACES``.
    shift: int

    def __post_init__(self) -> None:
        check_range("channels of a LayerNorm", len(self.gains), 1, MOST_CHANNELS)
        for values in (self.fines, self.biases):
            check_range("channels of a LayerNorm", len(values), len(self.gains), len(self.gains))
        check_range("fine gain", min(self.fines), -1)
        check_range("fine gain", max(self.fines), -1, 2)
        check_range("shift of a LayerNorm", self.shift, LEAST_SHIFT, LEAST_SHIFT + (1 << SHIFT_BITS) - 1)
        for name, values, bits in (("gain", self.gains, GAIN_BITS), ("bias", self.biases, BIAS_BITS)):
            for value in (min(values), max(values)):
                check_range(name, value, -(1 << bits - 1), (1 << bits - 1) - 2)


def split_channels(channels: int) -> tuple[int, int]:
    """Return a number of channels as a factor and a power of two; the factor is odd unless it is 4.

    >>> split_channels(384), split_channels(1024), split_channels(312)
    ((3, 7), (4, 8), (39, 3))
    """
    check_range("channels of a LayerNorm", channels, 4, MOST_CHANNELS)
    odd, twos = channels, 0
    while odd % 2 == 0 and odd > 4:
        odd, twos = odd // 2, twos + 1
    if odd >> ODD_BITS:
        raise InputError("channels of a LayerNorm", channels, "a power of two times a number below 64")
    return odd, twos


def dropped_bits(odd: int) -> int:
    """Return the bits that r has less than `ROOT_BITS`, so that ``odd * r`` has two more.

    With 16 bits of r, for factors from 33 on, 2 in 10^4 results of int8 differ from float's.

    >>> [dropped_bits(odd) for odd in (3, 4, 5, 7, 9, 39)]
    [0, 0, 1, 1, 2, 4]
    """
    return max(0, (odd - 1).bit_length() - 2)


def epsilon_units(epsilon: float, channels: int, scale: float) -> int:
    """Return E: ``epsilon * n^2 / scale^2``, at least 1; ``scale`` is that of the values."""
    found = max(1, round(epsilon * (channels / scale) ** 2))
    check_range("epsilon of a LayerNorm in units of its values", found, 1, most_epsilon(channels))
    return found


def most_epsilon(channels: int) -> int:
    """Return the largest E: a quarter of the largest spread."""
    return channels**2 << 2 * VALUE_BITS - 4


@functools.cache
def root_table() -> tuple[tuple[int, int], ...]:
    """Return value and slope of each row: the chord of ``2^23 / sqrt(w)``, lowered by half of its error."""

    def exact(w: int) -> int:
        # w in units of 1/1024
        return math.isqrt((1 << 2 * (ROOT_VALUE_BITS + _GUARD) + 10) // w)

    def rounded(value: int) -> int:
        return value + (1 << _GUARD - 1) >> _GUARD

    rows = []
    for half in range(2):
        for n in range(ROOT_ROWS):
            first, width = (ROOT_ROWS + n << 1) << half, 2 << half
            ends = exact(first), exact(first + width)
            error = sum(ends) // 2 - exact(first + width // 2)
            rows.append((rounded(ends[0] - error // 2), rounded(ends[0] - ends[1])))
    # The first root is 2^20, less one.
    most = (1 << ROOT_VALUE_BITS) - (1 << ROOT_PLACES - 1) - 1
    return tuple((min(value, most), slope) for value, slope in rows)


def root(spread: int, dropped: int) -> tuple[int, int]:
    """Return r and e of W.

    >>> root(1, 0), root(4, 0), root(2 * 4**20, 0)
    ((1048575, 0), (1048575, 1), (741455, 20))
    """
    places = (spread.bit_length() - 1) // 2
    lifted = spread << SPREAD_BITS - 2 - 2 * places
    upper = lifted >> SPREAD_BITS - 1
    below = SPREAD_BITS - 2 + upper - 9  # the row's bits end here
    row = upper * ROOT_ROWS + (lifted >> below) % ROOT_ROWS
    rest = (lifted >> below - REST_BITS) % (1 << REST_BITS)
    value, slope = root_table()[row]
    cut = REST_BITS + ROOT_PLACES + dropped
    return (value << REST_BITS) - slope * rest + (1 << cut - 1) >> cut, places


def channel_rows(gains: Sequence[float], biases: Sequence[float], *, bits: int, zero: int = 0) -> ChannelRows:
    """Return the rows for gains and biases in units of the result, which has 8 or 16 bits.

    The shift is the largest with which all fit.
    """
    most = max(map(abs, gains))
    room = GAIN_BITS - 1 - max(0, math.ceil(math.log2(most)) if most else 0)
    # A result beyond twice the range has room, too.
    shift = min(Z_PLACES + room, RESULT_BITS - 1 - bits, LEAST_SHIFT + (1 << SHIFT_BITS) - 1)
    places, bound = shift - Z_PLACES, (1 << GAIN_BITS - 1) - 1
    if places < 0:
        raise InputError("gain of a LayerNorm in units of its result", most, f"at most {bound}")
    quarters = [max(-4 * bound, min(round(gain * 2.0 ** (places + FINE_BITS)), 4 * bound)) for gain in gains]
    limit = (1 << BIAS_BITS - 1) - 2
    return ChannelRows(
        gains=tuple(each + 1 >> FINE_BITS for each in quarters),
        fines=tuple((each + 1) % 4 - 1 for each in quarters),
        biases=tuple(
            max(-limit, min(round((bias + zero + 0.5) * 2.0 ** (shift - BIAS_PLACES)), limit))
            for bias in biases
        ),
        shift=shift,
    )
