"""FPGA resources: what a device or a user region offers, and what an engine is expected to take."""

from __future__ import annotations

from dataclasses import dataclass, fields

from hw.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Counts of the five resources a design runs out of.

    Members
    -------
    lut
        Six-input look-up tables.
    ff
        Flip-flops.
    dsp
        DSP48E2 slices.
    bram36
        Block RAMs of 36 Kibit.
    uram
        UltraRAMs of 288 Kibit.
    """

    lut: int
    ff: int
    dsp: int
    bram36: int
    uram: int

    def __post_init__(self) -> None:
        for name, count in self.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 0:
                raise InputError(name, count, "a whole number of at least 0")

    def items(self) -> tuple[tuple[str, int], ...]:
        """Give (name, count) pairs in the order of the fields."""
        return tuple((field.name, getattr(self, field.name)) for field in fields(self))

    def first_over(self, available: Resources) -> str | None:
        """Name the first resource of which there is more here than in ``available``; None when all fit."""
        for (name, need), (_, have) in zip(self.items(), available.items(), strict=True):
            if need > have:
                return name
        return None
