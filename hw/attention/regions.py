"""Regions of the attention kernel: pairs of rows move to other dies if the memory's die is too small."""

from functools import cache

from hw.attention.config import AttentionConfig
from hw.attention.core.row.cell import row_cells
from hw.attention.resources import cell_estimate, estimate
from hw.board import Board
from hw.board.regions import Regions, divide, regions_of
from hw.board.resources import Resources


@cache
def cells_by_region(config: AttentionConfig, board: Board) -> tuple[int, ...]:
    """Count the pairs of rows on each die, the memory's first; a pair's streams and results stay together."""
    data_width = config.port_width(board.memory.port_data_width)
    groups = [cell_estimate(config, data_width, rows=count) for _, count in row_cells(config)]
    whole = estimate(config, data_width)
    rest = Resources(
        **{name: max(0, count - sum(getattr(g, name) for g in groups)) for name, count in whole.items()}
    )
    return divide(board, rest, groups)


def regions(config: AttentionConfig, board: Board) -> Regions:
    """Return the regions; parts are the cells that `hw.attention.core.core.AttentionCore` places."""
    groups = [
        [*(f"body.core.rows_{n}_{first}" for n in range(config.streams)), f"body.core.results_{first}"]
        for first, _ in row_cells(config)
    ]
    return regions_of(board, cells_by_region(config, board), groups)
