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
    slots: tuple[int, ...]  #: Cycles of each record of RAMs, from its first row to its last one.

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
    # Of a row of channels, half of the lanes with results of int16.
    channels = sum(
        lanes * 8 // bits * each for (_, bits), each in channel_counts(program, lanes=lanes).items()
    )
    slots = [1] * (channels // SLOTS)
    slots += _one_by_one(rows["max_taps"]) + _one_by_one(rows["vector_taps"]) + _one_by_one(rows["scales"])
    slots += [1] * (TABLE_WORDS // SLOTS * rows["tables"])
    slots += _one_by_one(_EXPONENTIALS * rows["exponentials"])
    plain += _MATRIX_RECORDS * matrix + _VECTOR_RECORDS * vector + attention
    return ImageSize(plain=plain, slots=tuple(slots))


def _one_by_one(rows: int) -> list[int]:
    """Return the rows of each record of a RAM that takes them one by one."""
    return [min(SLOTS, rows - first) for first in range(0, rows, SLOTS)]
