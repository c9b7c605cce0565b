"""FPGA resources: those of a device or a user region, and those that an engine needs."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from hw.errors import check_range, check_whole

#: Names of resources in reports and messages.
IN_PRINT = {"lut": "LUT", "ff": "FF", "dsp": "DSP", "bram36": "BRAM36", "uram": "URAM"}
#: Largest shares of a user region that can be expected to place and route; FINN's limits (Xilinx/finn
#: src/finn/util/platforms.py).
MOST_SHARES = {"lut": 0.7, "ff": 0.5, "dsp": 0.8, "bram36": 0.8, "uram": 0.8}
#: Bits of a word of either RAM at its widest; words of a block RAM of that width, and of an UltraRAM.
RAM_BITS, BLOCK_WORDS, ULTRA_WORDS = 72, 512, 4096


def rams(bits: int, words: int, most: int = BLOCK_WORDS) -> int:
    """Count the RAMs of ``most`` words for a memory of ``words`` of ``bits``."""
    return -(-bits // RAM_BITS) * -(-words // most)


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Counts of the five resources that limit a design."""

    lut: int  #: Six-input look-up tables.
    ff: int  #: Flip-flops.
    dsp: int  #: DSP48E2 slices.
    bram36: int  #: Block RAMs of 36 Kibit.
    uram: int  #: UltraRAMs of 288 Kibit.

    def __post_init__(self) -> None:
        for name, count in self.items():
            check_whole(name, count, 0)

    def items(self) -> tuple[tuple[str, int], ...]:
        """Return (name, count) pairs in the order of the fields."""
        return tuple((field.name, getattr(self, field.name)) for field in fields(self))

    def __add__(self, other: Resources) -> Resources:
        """Return the sum."""
        return Resources(**{name: count + getattr(other, name) for name, count in self.items()})

    def first_over(self, available: Resources) -> str | None:
        """Return the first resource that exceeds ``available``; None when all fit."""
        for (name, need), (_, have) in zip(self.items(), available.items(), strict=True):
            if need > have:
                return name
        return None

    def over_shares(self, available: Resources) -> tuple[str, ...]:
        """Return the resources that exceed `MOST_SHARES` of ``available``."""
        have = dict(available.items())
        return tuple(name for name, need in self.items() if need > MOST_SHARES[name] * have[name])

    def dies(self, available: Resources, count: int) -> int:
        """Return the fewest of ``count`` dies that hold this within `MOST_SHARES`; more than ``count`` if it
        does not fit.  Each die has an even share of ``available``.
        """
        have = dict(available.items())
        shares = [
            need / (MOST_SHARES[name] * have[name]) if have[name] else math.inf
            for name, need in self.items()
            if need
        ]
        most = max(shares, default=0.0)
        return count + 1 if math.isinf(most) else max(1, math.ceil(count * most))


@dataclass(frozen=True, kw_only=True)
class RamWords:
    """RAMs of each kind that read or write a word in a busy cycle."""

    bram36: float = 0.0  #: Block RAMs.
    uram: float = 0.0  #: UltraRAMs.

    def __post_init__(self) -> None:
        for field in fields(self):
            check_range(field.name, getattr(self, field.name), 0)


@dataclass(frozen=True)
class Gates:
    """LUT, FF and DSP of a part.  Estimates are multiples and sums of such parts, which may have fractions.

    >>> (Gates(100, 50) + 2 * Gates(0.6, 1, 1)).with_rams(bram36=1)
    Resources(lut=101, ff=52, dsp=2, bram36=1, uram=0)
    """

    lut: float = 0
    ff: float = 0
    dsp: float = 0

    def __add__(self, other: Gates) -> Gates:
        """Return the sum."""
        return Gates(self.lut + other.lut, self.ff + other.ff, self.dsp + other.dsp)

    def __rmul__(self, count: float) -> Gates:
        """Return as many of the part."""
        return Gates(count * self.lut, count * self.ff, count * self.dsp)

    def with_rams(self, *, bram36: int = 0, uram: int = 0) -> Resources:
        """Return the resources with as many RAMs; fractions of gates are cut off."""
        return Resources(lut=int(self.lut), ff=int(self.ff), dsp=int(self.dsp), bram36=bram36, uram=uram)
