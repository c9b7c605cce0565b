"""Regions of the map's kernel: the sealers leave the memory's die when it is too small for all parts."""

from functools import cache

from hw.board import Board
from hw.board.regions import Regions, divide, regions_of
from hw.board.resources import Resources
from hw.oram.config import OramConfig
from hw.oram.resources import answers_estimate, estimate, sealer_estimate


@cache
def regions(config: OramConfig, board: Board) -> Regions:
    """Return the regions; parts are the sealers of responses and of pages.

    Their ports are registers, and the host alone waits for their results: a longer way costs no deadline of
    HBM.  Keys and powers that cross are constant.
    """
    groups = {"answers": answers_estimate(config), "sealer": sealer_estimate(config)}
    whole = estimate(config)
    rest = Resources(
        **{
            name: max(0, count - sum(getattr(g, name) for g in groups.values()))
            for name, count in whole.items()
        }
    )
    counts = divide(board, rest, list(groups.values()))
    return regions_of(board, counts, [[f"body.{part}"] for part in groups])
