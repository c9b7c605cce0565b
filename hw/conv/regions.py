"""Regions of the convolution kernel: cells leave the memory's die when it is too small for all of them."""

from functools import cache

from hw.board import Board
from hw.board.regions import Regions, divide, regions_of
from hw.board.resources import Resources
from hw.conv.config import ConvConfig
from hw.conv.core.pointwise.cell import cell_columns
from hw.conv.resources import estimate, lane_cell_estimate, point_cell_estimate


@cache
def regions(config: ConvConfig, board: Board) -> Regions:
    """Return the regions; parts are the cells of the depthwise unit, then those of the pointwise unit.

    So the pointwise cells leave first: their inputs and outputs are registers, whereas samples of the line
    buffer reach the lanes through logic.
    """
    lanes = config.lanes // config.cell_lanes
    columns = cell_columns(config)
    parts = [f"body.core.depthwise.cell_{n}" for n in range(lanes)]
    parts += [f"body.core.pointwise.cell_{n}" for n in range(len(columns))]
    groups = [lane_cell_estimate(config)] * lanes
    groups += [point_cell_estimate(config, columns=count) for count in columns]
    whole = estimate(config, config.port_width(board.memory.port_data_width))
    rest = Resources(
        **{name: max(0, count - sum(getattr(g, name) for g in groups)) for name, count in whole.items()}
    )
    return regions_of(board, divide(board, rest, groups), [[part] for part in parts])
