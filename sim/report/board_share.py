"""A run's share of its board, estimated from the configuration in the report."""

from collections.abc import Sequence

from pydantic import TypeAdapter, ValidationError

from hw.board import Board, load_board
from hw.board.resources import Resources
from hw.config import config_hash
from hw.errors import InputError
from hw.registry import find_engine
from sim.report.figures import Line
from sim.report.report import Report
from sim.report.text import MISSING, percent

#: An engine's estimated resources, and its board.
Share = tuple[Resources, Board]


def share_of_board(report: Report) -> Share | None:
    """Return the estimate and the board; None where engine or board have changed since the report."""
    try:
        engine, board = find_engine(report.engine), load_board(report.board)
        config = TypeAdapter(engine.config_type).validate_python(report.config)
    except (InputError, ValidationError):
        return None
    if config_hash(engine.name, config, board) != report.config_hash:
        return None
    return engine.resources(config, board), board


def resource_lines(shares: Sequence[Share | None]) -> list[Line]:
    """Return a line for each kind of resource, with a cell for each run: the number and its share."""
    names = [name for name, _ in next(share for share in shares if share is not None)[0].items()]
    return [
        Line(
            label=name.upper(),
            meaning=f"Estimated {name.upper()}, and their share of what the board has for the user.",
            cells=tuple(_cell(share, number) for share in shares),
        )
        for number, name in enumerate(names)
    ]


def largest_share(share: Share) -> tuple[float, str]:
    """Return the highest share of a resource, and its name."""
    estimate, board = share
    return max(
        (count / have, name.upper())
        for (name, count), (_, have) in zip(estimate.items(), board.user.items(), strict=True)
        if have
    )


def _cell(share: Share | None, number: int) -> str:
    if share is None:
        return MISSING
    (_, count), (_, have) = list(share[0].items())[number], list(share[1].user.items())[number]
    return f"{count:,} ({percent(count / have, places=1)})" if have else f"{count:,}"
