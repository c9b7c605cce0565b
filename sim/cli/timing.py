"""``loomwork timing``: endpoints over the clock's budget, where they are, and the worst paths."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from hw.board import Board
from hw.board.resources import IN_PRINT, MOST_SHARES
from hw.config import config_dict
from hw.engine import Engine
from sim.build.design import kernel_design
from sim.host.console import print_table
from sim.host.files import write_text
from sim.report.text import percent
from sim.timing.estimate import Estimate, RegionUse
from sim.timing.kernel import kernel_timing
from sim.timing.route import Routed, check_router, rank_correlation, route_worst

#: Registers whose slowest paths say which blocks are routed.
_SEARCHED = 3000


def run_timing(
    engine: Engine[Any, Any], board: Board, config: Any, worst: int, routed: int, output: Path | None
) -> None:
    """Estimate the timing of an engine, print it, and write it as JSON where ``output`` says.

    The ``routed`` worst blocks are placed and routed, too.  Raises `ToolError` when a tool fails.
    """
    if routed:
        check_router()
    kernel = kernel_design(engine, config, board, sources=True)
    searched = max(worst, _SEARCHED if routed else 0)
    found = kernel_timing(kernel.verilog, kernel.top_name, board, regions=kernel.regions, worst=searched)
    blocks = route_worst(found, kernel.verilog, board, routed) if routed else []
    found = replace(found, paths=found.paths[:worst], widest=found.widest[:worst])
    print_estimate(f"{engine.name} on {board.title}, estimated", found)
    print_regions(found, board)
    if blocks:
        print_routed(blocks)
    if output is not None:
        document = {"engine": engine.name, "board": board.name, "config": config_dict(config)}
        write_text(
            output,
            json.dumps(document | asdict(found) | {"routed": [asdict(block) for block in blocks]}, indent=1)
            + "\n",
        )
        print(output)


def print_estimate(title: str, found: Estimate) -> None:
    """Print an estimate as four tables."""
    doubt = found.doubt
    scattered = sorted(doubt.scattered_over)
    summary = [
        ("budget of a path", f"{found.budget_ps / 1000:.3f} ns"),
        ("endpoints", f"{found.endpoints:,}"),
        ("endpoints over budget", f"{found.endpoints_over:,}"),
        ("worst slack", f"{found.worst_slack_ps / 1000:+.3f} ns"),
        ("cells on the slowest path", f"{found.logic_depth}"),
        ("charged for crossing dies", f"{found.slr_crossing_ps / 1000:.3f} ns"),
        ("nets charged", f"{found.crossing_nets:,}"),
        (
            f"over budget with nets off by {doubt.deviation_ps:.0f} ps, {len(scattered)} draws",
            f"{scattered[0]:,} to {scattered[-1]:,}, median {scattered[len(scattered) // 2]:,}",
        ),
        (
            f"over budget with {doubt.long_wires_ps / 1000:.3f} ns of long wires between parts",
            f"{doubt.long_wires_over:,}",
        ),
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
    nets = [(f"{net.loads:,}", net.cell, net.name or "–", net.source) for net in found.widest]
    print_table("Most loads", ("loads", "driver", "signal", "source"), nets)


def print_regions(found: Estimate, board: Board) -> None:
    """Print the share of its die that each region takes, for a kernel on several dies."""
    if not found.regions:
        return
    names = [name for name, _ in board.die.items()]
    rows = [
        (f"SLR{region.slr}", f"{region.parts}", *(_taken(region, name, board) for name in names))
        for region in found.regions
    ]
    most = [f"{100 * MOST_SHARES[name]:.0f} %" for name in names]
    rows.append(("most that fits", "", *most))
    print_table("By region", ("region", "parts", *(IN_PRINT[name] for name in names)), rows)


def _taken(region: RegionUse, name: str, board: Board) -> str:
    count, have = getattr(region.taken, name), getattr(board.die, name)
    share = f", {percent(count / have, places=1)}" if have else ""
    return f"{count:,}{share}{' over' if name in region.over else ''}"


def print_routed(blocks: Sequence[Routed]) -> None:
    """Print blocks by the estimate and by the router, slowest estimate first, and how their orders agree."""
    rows = [
        (block.block, f"{block.luts:,}", f"{block.estimated_ps / 1000:.2f}", f"{block.routed_ps / 1000:.2f}")
        for block in sorted(blocks, key=lambda block: -block.estimated_ps)
    ]
    agreement = f", rank correlation {rank_correlation(blocks):.2f}" if len(blocks) > 1 else ""
    title = f"Blocks out of context{agreement}"
    print_table(title, ("block", "LUTs", "estimated ns", "routed on ECP5 ns"), rows)
