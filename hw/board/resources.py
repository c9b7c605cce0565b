"""FPGA resources: what a device or a user region offers, and what an engine is expected to take."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from hw.errors import InputError

#: Resources as reports and messages spell them.
IN_PRINT = {"lut": "LUT", "ff": "FF", "dsp": "DSP", "bram36": "BRAM36", "uram": "URAM"}
#: Most of a user region that a kernel may take and still be expected to be placed and routed; FINN's limits
#: (Xilinx/finn src/finn/util/platforms.py).
MOST_SHARES = {"lut": 0.7, "ff": 0.5, "dsp": 0.8, "bram36": 0.8, "uram": 0.8}


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Counts of the five resources a design runs out of."""

    lut: int  #: Six-input look-up tables.
    ff: int  #: Flip-flops.
    dsp: int  #: DSP48E2 slices.
    bram36: int  #: Block RAMs of 36 Kibit.
    uram: int  #: UltraRAMs of 288 Kibit.

    def __post_init__(self) -> None:
        for name, count in self.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise InputError(name, count, "a whole number of at least 0")

    def items(self) -> tuple[tuple[str, int], ...]:
        """Return (name, count) pairs in the order of the fields."""
        return tuple((field.name, getattr(self, field.name)) for field in fields(self))

    def __add__(self, other: Resources) -> Resources:
        """Return what both take."""
        return Resources(**{name: count + getattr(other, name) for name, count in self.items()})

    def first_over(self, available: Resources) -> str | None:
        """Name the first resource of which there is more here than in ``available``; None when all fit."""
        for (name, need), (_, have) in zip(self.items(), available.items(), strict=True):
            if need > have:
                return name
        return None

    def over_shares(self, available: Resources) -> tuple[str, ...]:
        """Name the resources of which this is more than `MOST_SHARES` of ``available``."""
        have = dict(available.items())
        return tuple(name for name, need in self.items() if need > MOST_SHARES[name] * have[name])

    def dies(self, available: Resources, count: int) -> int:
        """Return how many dies this takes at least, each with an even share of ``available`` for ``count`` of
        them, and none filled beyond `MOST_SHARES`; more than ``count`` where it does not fit.
        """
        have = dict(available.items())
        shares = [
            need / (MOST_SHARES[name] * have[name]) if have[name] else math.inf
            for name, need in self.items()
            if need
        ]
        most = max(shares, default=0.0)
        return count + 1 if math.isinf(most) else max(1, math.ceil(count * most))
