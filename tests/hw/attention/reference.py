"""The formats of ``docs/attention-specification.md``, a value at a time: the reference of unit tests."""

import math

import numpy as np


def rounded(value, places):
    """To nearest, ties up."""
    return (value + (1 << places >> 1)) >> places


def saturated(value, bits):
    return max(-(1 << (bits - 1)), min((1 << (bits - 1)) - 1, value))


def scaled(score, multiplier, shift):
    return saturated(rounded(score * multiplier, shift), 24)


def tanh_line(segment):
    """A and E of a segment: the chord of tanh, raised by half its largest distance from the curve."""
    z = np.linspace(segment / 128, (segment + 1) / 128, 2001)
    left, right = math.tanh(segment / 128), math.tanh((segment + 1) / 128)
    gap = (np.tanh(z) - np.interp(z, z[[0, -1]], [left, right])).max()
    return min(round(2**19 * (left + gap / 2)), 2**19 - 1), round(2**19 * (right - left))


def capped(x, cap, lines):
    magnitude = min(abs(x), 2**21 - 1)
    start, gain = lines[magnitude >> 11]
    tanh = min(rounded((start << 11) + gain * (magnitude & 2047), 13), 2**17 - 1)
    return rounded((tanh if x >= 0 else -tanh) * cap, 17)


def sloped(t, slope, distance):
    return saturated(t - rounded(slope * abs(distance), 12), 24)


def exp2_line(segment, segments):
    """Y and Z of a segment: the chord of 2^-x, lowered by half its largest distance from the curve."""
    x = np.linspace(segment / segments, (segment + 1) / segments, 20001)
    left, right = 2.0 ** -x[0], 2.0 ** -x[-1]
    gap = (np.interp(x, x[[0, -1]], [left, right]) - 2.0**-x).max()
    return round(2**18 * (left - gap / 2)), round(2**18 * (left - right))


def probability(below, bits, lines):
    """p of a logit ``below`` the maximum, in units of 2^-bits."""
    exponent, fraction = below >> 12, below & 4095
    if exponent >= bits + 2:
        return 0
    within = 12 - (len(lines).bit_length() - 1)
    start, drop = lines[fraction >> within]
    y = start - rounded(drop * (fraction & (2**within - 1)), within)
    return rounded(4 * y, exponent + 20 - bits)


def reciprocal(total, bits):
    """r of a sum of 17 + B bits, B being ``bits``."""
    return (2**33 - 1) // ((total << (17 + bits - total.bit_length())) >> bits)


def normalized(output, total, bits, form, scale):
    """Return a result as its bits: two's complement, or those of a bfloat16."""
    width = 8 if form == "int8" else 16
    if total == 0:
        return 0
    length = total.bit_length()
    z = rounded(output, length - 18) if length >= 18 else output << (18 - length)
    r = reciprocal(total, bits)
    if form == "int16":
        return saturated(rounded(z * r, 34 - scale["fraction"]), 16) % 2**16
    product = z * rounded(r * scale["multiplier"], 17)
    if form == "int8":
        return saturated(rounded(product, scale["shift"]), width) % 2**width
    return bfloat16(product, scale["shift"])


def bfloat16(value, shift):
    """The bfloat16 nearest to ``value * 2^-shift``, by way of every candidate near it."""
    if value == 0:
        return 0
    exponent = abs(value).bit_length() - 8
    low = abs(value) >> exponent if exponent >= 0 else abs(value) << -exponent
    # Twice the distance from the lower candidate, in units of the distance between the two.
    twice = 2 * (abs(value) - (low << exponent)) if exponent > 0 else 0
    unit = 1 << max(exponent, 0)
    significand = low + (twice > unit or (twice == unit and low % 2 == 1))
    if significand == 256:
        significand, exponent = 128, exponent + 1
    return (value < 0) << 15 | (127 + exponent + 7 - shift) << 7 | significand - 128


class Row:
    """Maximum, output and sum of a row over the tiles of one stream."""

    def __init__(self, elements):
        self.maximum, self.total = -4096, 0
        self.output = [0] * elements

    def merge(self, logits, visible, values, bits, lines):
        """Take a tile: t and visibility of each key, and its value."""
        seen = [t for t, sees in zip(logits, visible, strict=True) if sees]
        maximum = max([self.maximum, *((t + 4095) >> 12 for t in seen)])
        rise = min(63, maximum - self.maximum)
        p = [
            probability((maximum << 12) - t, bits, lines) if sees else 0
            for t, sees in zip(logits, visible, strict=True)
        ]
        sums = np.array(p, object) @ np.array(values, object)
        self.output = [rounded(o, rise) + int(s) for o, s in zip(self.output, sums, strict=True)]
        self.total = rounded(self.total, rise) + sum(p)
        self.maximum = maximum

    @staticmethod
    def combined(rows):
        """Return output and sum of several streams."""
        maximum = max(row.maximum for row in rows)
        shifts = [min(63, maximum - row.maximum) for row in rows]
        output = [
            sum(rounded(row.output[d], shift) for row, shift in zip(rows, shifts, strict=True))
            for d in range(len(rows[0].output))
        ]
        return output, sum(rounded(row.total, shift) for row, shift in zip(rows, shifts, strict=True))
