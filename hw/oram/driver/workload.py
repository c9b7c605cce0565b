"""A launch of the oblivious map as plain values."""

from dataclasses import dataclass

from hw.errors import InputError, check_range


@dataclass(frozen=True, kw_only=True)
class OramWorkload:
    """Operations in order, by their public content alone: times depend on nothing else."""

    operations: int  #: Number of operations.
    initialize: bool = True  #: The launch first writes the empty map.
    finish: bool = False  #: The launch erases the board's memory at its end.
    #: Page of the host's memory of every touch, in order; None for a touch without one. An operation has
    #: `OramConfig.items` touches. Without ``pages`` they are drawn at random, as labels are.
    pages: tuple[int | None, ...] | None = None
    #: Slots of each ring. With the pages, the rings compete for the host's cache.
    ring_slots: int = 1024

    def __post_init__(self) -> None:
        for name in ("operations", "ring_slots"):
            check_range(name, getattr(self, name), 1)
        if self.pages is not None and (not self.pages or len(self.pages) % self.operations):
            legal = f"as many for each of {self.operations} operations"
            raise InputError("touches of pages", len(self.pages), legal)
