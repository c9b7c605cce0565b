"""The size of a program image, and the cycles of its records, without their bits."""

from __future__ import annotations

from dataclasses import dataclass

from hw.network.program.arrival import image_order
from hw.network.program.program import NetworkProgram
from hw.network.program.records import RECORD_BYTES


@dataclass(frozen=True, kw_only=True)
class ImageSize:
    """Records of an image, in its order."""

    rows: tuple[int, ...]  #: Cycles of each record, from its first row to its last one.
    steps: tuple[int, ...]  #: The first command that needs each.
    opening: int  #: Records before the first command.

    @property
    def records(self) -> int:
        """All records."""
        return len(self.rows)

    @property
    def bytes(self) -> int:
        """Bytes in memory."""
        return RECORD_BYTES * self.records


def image_size(program: NetworkProgram, *, lanes: int = 64) -> ImageSize:
    """Return the size of a program's image; ``lanes``: of the vector unit."""
    order = image_order(program, lanes=lanes)
    return ImageSize(
        rows=tuple(each.rows for each in order.records),
        steps=tuple(each.step for each in order.records),
        opening=order.opening,
    )
