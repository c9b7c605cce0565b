"""``loomwork resources``: counted cells beside the estimate and what the board has for the user."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hw.board import Board
from hw.board.resources import Resources
from hw.config import config_dict
from hw.engine import Engine
from sim.build.design import kernel_design
from sim.build.synthesis import Synthesis, synthesize
from sim.host.console import print_table
from sim.host.files import write_text
from sim.report.text import percent

COLUMNS = ("", "part", "count", "LUT", "as memory", "FF", "DSP", "block RAM", "UltraRAM")


def run_resources(
    engine: Engine[Any, Any], board: Board, configs: Sequence[tuple[str, Any]], output: Path | None
) -> None:
    """Synthesize an engine in several configurations, by their names, and print what each takes; with an
    output file, write the counts there as JSON. Raises `ToolError` when Yosys is missing or fails.
    """
    rows: list[tuple[str, ...]] = []
    documents = []
    for name, config in configs:
        # With source lines, as `loomwork timing` has them: what one command mapped the other finds mapped.
        kernel = kernel_design(engine, config, board, sources=True)
        found = synthesize(kernel.verilog, kernel.top_name)
        estimate = engine.resources(config, board)
        rows += resource_rows(name, found, estimate, board.user)
        documents.append(
            {
                "name": name,
                "engine": engine.name,
                "board": board.name,
                "config": config_dict(config),
                "counted": asdict(found.total),
                "estimated": asdict(estimate),
                "user": asdict(board.user),
                "parts": [asdict(part) for part in found.parts],
            }
        )
        if output is not None:
            write_text(output, json.dumps(documents, indent=1) + "\n")
    print_table(f"{engine.name} on {board.title}, counted by Yosys", COLUMNS, rows)
    if output is not None:
        print(output)


def resource_rows(name: str, found: Synthesis, estimate: Resources, user: Resources) -> list[tuple[str, ...]]:
    """Give the lines of a configuration: parts, their sum, its share of the user's region, the estimate."""
    lines = [
        (name if not n else "", part.name, f"{part.count}", *_cells(part.each, part.memory_lut))
        for n, part in enumerate(found.parts)
    ]
    memory_lut = sum(part.count * part.memory_lut for part in found.parts)
    shares = [
        percent(count / have, places=1) if have else "–"
        for (_, count), (_, have) in zip(found.total.items(), user.items(), strict=True)
    ]
    lines.append(("", "in all", "", *_cells(found.total, memory_lut)))
    lines.append(("", "of the user's region", "", shares[0], "", *shares[1:]))
    lines.append(("", "estimated", "", *_cells(estimate, None)))
    return lines


def _cells(resources: Resources, memory_lut: int | None) -> tuple[str, ...]:
    lut, *others = (f"{count:,}" for _, count in resources.items())
    return lut, "" if memory_lut is None else f"{memory_lut:,}", *others
