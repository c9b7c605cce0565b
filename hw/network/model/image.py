"""The size of a program image, and the cycles of its load, without its bits."""

from __future__ import annotations

from dataclasses import dataclass

from hw.network.commands import MatrixCommand
from hw.network.program.image import limits
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


def image_size(program: NetworkProgram) -> ImageSize:
    """Return the size of a program's image."""
    matrix = sum(isinstance(step.command, MatrixCommand) for step in program.steps)
    vector = len(program.steps) - matrix
    plain = 1 + len(program.steps) + len(program.reads) + len(program.writes)
    rows = limits(program)
    counts = (
        rows["max_taps"],
        rows["vector_taps"],
        rows["scales"],
        TABLE_WORDS * rows["tables"],
        _EXPONENTIALS * rows["exponentials"],
    )
    slots = [min(SLOTS, count - first) for count in counts for first in range(0, count, SLOTS)]
    return ImageSize(plain=plain + _MATRIX_RECORDS * matrix + _VECTOR_RECORDS * vector, slots=tuple(slots))
