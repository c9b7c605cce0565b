"""The page a demo ends in: what every engine was given, what came of it, and where all of it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hw.board import Board
from sim.report.figures import SUMMARY, labels, lines
from sim.report.parts import exact_tile, write_page
from sim.report.report import Report


@dataclass(frozen=True, kw_only=True)
class Made:
    """A file of the demo: its path from the index, and what it shows."""

    path: str
    title: str


@dataclass(frozen=True, kw_only=True)
class Part:
    """What one engine showed."""

    engine: str
    title: str  #: What it was given.
    lines: tuple[str, ...]  #: What its demo says of the outcome.
    reports: tuple[Report, ...]  #: One a launch.
    made: tuple[Made, ...]  #: Files, the first one first.


def render_index(parts: Sequence[Part], board: Board, path: Path) -> None:
    """Write the page; its links are relative, so that the folder can be moved.

    Raises `InputError` when the path cannot be written.
    """
    write_page(
        "demo.html.j2",
        path,
        charts=False,
        board=board.title,
        tiles=[exact_tile((r.bit_exact for r in part.reports), part.engine) for part in parts],
        parts=[(part, labels(part.reports), list(lines(part.reports, SUMMARY))) for part in parts],
    )
