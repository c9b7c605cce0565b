"""``loomwork timing``: endpoints over the clock's budget, where they are, and the worst paths."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hw.board import Board
from hw.config import config_dict
from hw.engine import Engine
from sim.build.design import kernel_verilog
from sim.host.console import print_table
from sim.host.files import write_text
from sim.timing.estimate import Estimate, estimate


def run_timing(engine: Engine[Any, Any], board: Board, config: Any, worst: int, output: Path | None) -> None:
    """Estimate the timing of an engine, print it, and write it as JSON where ``output`` says.

    Raises
    ------
    ToolError
        When Yosys is missing or fails.
    """
    kernel = kernel_verilog(engine, config, board, sources=True)
    found = estimate(kernel.verilog, kernel.top_name, board, worst=worst)
    print_estimate(f"{engine.name} on {board.title}, estimated", found)
    if output is not None:
        document = {"engine": engine.name, "board": board.name, "config": config_dict(config)}
        write_text(output, json.dumps(document | asdict(found), indent=1) + "\n")
        print(output)


def print_estimate(title: str, found: Estimate) -> None:
    """Print an estimate as three tables."""
    summary = [
        ("budget of a path", f"{found.budget_ps / 1000:.3f} ns"),
        ("endpoints", f"{found.endpoints:,}"),
        ("endpoints over budget", f"{found.endpoints_over:,}"),
        ("worst slack", f"{found.worst_slack_ps / 1000:+.3f} ns"),
        ("charged for crossing dies", f"{found.slr_crossing_ps / 1000:.3f} ns"),
    ]
    print_table(title, ("", ""), summary)
    places = [
        (
            place.part,
            place.file or "–",
            f"{place.endpoints:,}",
            f"{place.endpoints_over:,}",
            f"{place.worst_slack_ps / 1000:+.3f}",
        )
        for place in found.places
    ]
    print_table(
        "By part and source file", ("part", "file", "endpoints", "over budget", "worst slack ns"), places
    )
    paths = [
        (
            f"{path.slack_ps / 1000:+.3f}",
            path.steps[0].name or path.steps[0].cell,
            path.endpoint,
            path.source,
            " ".join(f"{step.cell}:{step.loads}" for step in path.steps),
        )
        for path in found.paths
    ]
    print_table("Worst paths", ("slack ns", "from", "to", "source", "cells and loads"), paths)
