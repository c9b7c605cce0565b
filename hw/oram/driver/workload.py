"""What a launch of the oblivious map asks for, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from hw.errors import InputError


@dataclass(frozen=True, kw_only=True)
class OramWorkload:
    """Operations in order, as far as time depends on them: which is what the host sees of them."""

    operations: int  #: How many.
    initialize: bool = True  #: Whether the empty map is written first.
    #: The page of the host's memory of every touch, in order, None for a touch without one; an operation has
    #: `OramConfig.items` touches.  Without it pages are as likely as labels make them.
    pages: tuple[int | None, ...] | None = None
    #: Of commands, and of responses: with the pages they are what the host's cache should hold.
    ring_slots: int = 1024

    def __post_init__(self) -> None:
        for name in ("operations", "ring_slots"):
            if getattr(self, name) < 1:
                raise InputError(name, getattr(self, name), "at least 1")
        if self.pages is not None and (not self.pages or len(self.pages) % self.operations):
            legal = f"as many for each of {self.operations} operations"
            raise InputError("touches of pages", len(self.pages), legal)
