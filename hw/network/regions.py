"""Regions of the network kernel: cells that leave the memory's die when it is too small."""

from __future__ import annotations

from functools import cache

from hw.board import Board
from hw.board.regions import Regions, divide, regions_of
from hw.board.resources import Resources
from hw.network.config import NetworkConfig
from hw.network.matrix.array import MatrixArray
from hw.network.resources import attention_rows_estimate, cells_estimate, estimate


@cache
def regions(config: NetworkConfig, board: Board) -> Regions:
    """Return the regions; parts are cells of the matrix array and pairs of rows of attention.

    Array cells of a broadcast register stay together, and so do rows and their results.  Inputs and outputs
    of all these cells are registers.
    """
    matrix = config.matrix
    size = MatrixArray.group_cells(matrix)
    firsts = range(0, matrix.cells, size)
    parts = [[f"body.matrix.array.cell_{n}" for n in range(first, first + size)] for first in firsts]
    groups = [cells_estimate(size)] * len(parts)
    core = "body.attention.core"
    for first in range(0, config.attention_rows, 2):
        parts.append([f"{core}.rows_0_{first}", f"{core}.results_{first}"])
        groups.append(attention_rows_estimate())
    whole = estimate(config)
    rest = Resources(
        **{name: max(0, count - sum(getattr(g, name) for g in groups)) for name, count in whole.items()}
    )
    return regions_of(board, divide(board, rest, groups), parts)
