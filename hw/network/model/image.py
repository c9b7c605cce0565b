"""The size of a program image, and the cycles of its load, without its bits."""

from __future__ import annotations

from dataclasses import dataclass

from hw.network.commands import Core
from hw.network.program.image import channel_counts, limits
from hw.network.program.program import NetworkProgram
from hw.network.program.records import RECORD_BYTES, SLOTS
from hw.network.tables.layouts import TABLE_WORDS

#: Records of a matrix command: feed, drain, weights. Of a vector command: walks, loops.
_MATRIX_RECORDS, _VECTOR_RECORDS = 3, 2
#: Entries of a table of exponentials.
_EXPONENTIALS = 256


@dataclass(frozen=True, kw_only=True)
class ImageSize:
    """Records of an image."""

    plain: int  #: Rows of tables, with the header.
    slots: tuple[int, ...]  #: Rows in each record of RAMs.

    @property
    def records(self) -> int:
        """All records."""
        return self.plain + len(self.slots)

    @property
    def bytes(self) -> int:
        """Bytes in memory."""
        return RECORD_BYTES * self.records


def image_size(program: NetworkProgram, *, lanes: int = 64) -> ImageSize:
    """Return the size of a program's image; ``lanes``: of the vector unit."""
    matrix = sum(step.core is Core.MATRIX for step in program.steps)
    vector = sum(step.core is Core.VECTOR for step in program.steps)
    attention = len(program.steps) - matrix - vector
    plain = 1 + len(program.steps) + len(program.reads) + len(program.writes)
    rows = limits(program, lanes=lanes)
    counts: tuple[int, ...] = (
        rows["max_taps"],
        rows["vector_taps"],
        rows["scales"],
        TABLE_WORDS * rows["tables"],
        _EXPONENTIALS * rows["exponentials"],
    )
    # Of a row of channels, half of the lanes with results of int16.
    channels = channel_counts(program, lanes=lanes)
    counts = (*(lanes * 8 // bits for (_, bits), each in channels.items() for _ in range(each)), *counts)
    slots = [min(SLOTS, count - first) for count in counts for first in range(0, count, SLOTS)]
    plain += _MATRIX_RECORDS * matrix + _VECTOR_RECORDS * vector + attention
    return ImageSize(plain=plain, slots=tuple(slots))
