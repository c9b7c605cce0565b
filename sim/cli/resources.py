"""``loomwork resources``: counted cells, their share of the board, whether they fit, paths over budget."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hw.board import Board
from hw.board.resources import IN_PRINT, MOST_SHARES, Resources
from hw.config import config_dict
from hw.engine import Engine
from hw.errors import ToolError
from sim.build.design import kernel_design
from sim.build.synthesis import Synthesis, synthesize
from sim.host.console import print_table
from sim.host.files import write_text
from sim.report.text import MISSING, percent
from sim.timing.estimate import Estimate
from sim.timing.kernel import kernel_timing

COLUMNS = (
    *("", "part", "count", "LUT", "as memory", "FF", "DSP", "block RAM", "UltraRAM"),
    "endpoints over budget",
)


def run_resources(
    engine: Engine[Any, Any], board: Board, configs: Sequence[tuple[str, Any]], output: Path | None
) -> None:
    """Synthesize an engine in several configurations, by their names. Print the cells of each and whether it
    fits; write them as JSON to an output file. Raises `ToolError` when Yosys is missing or fails.
    """
    rows: list[tuple[str, ...]] = []
    verdicts, documents = [], []
    for name, config in configs:
        # With source lines, as in `loomwork timing`: the commands share mapped netlists.
        kernel = kernel_design(engine, config, board, sources=True)
        found = synthesize(kernel.verilog, kernel.top_name)
        try:
            timing = kernel_timing(kernel.verilog, kernel.top_name, board, regions=kernel.regions)
            fault = ""
        except ToolError as error:  # the counts are still valid
            timing, fault = None, f"; timing not estimated: {error}"
        estimate = engine.resources(config, board)
        rows += resource_rows(name, found, estimate, board.user, timing)
        verdicts.append(
            f"{name}: {verdict(found.total, board)}{region_words(timing, board)}{timing_words(timing)}{fault}"
        )
        documents.append(
            {
                "name": name,
                "engine": engine.name,
                "board": board.name,
                "config": config_dict(config),
                "counted": asdict(found.total),
                "estimated": asdict(estimate),
                "user": asdict(board.user),
                "fits": not found.total.over_shares(board.user),
                "slrs_needed": found.total.dies(board.user, board.slrs),
                "regions": [asdict(region) for region in timing.regions] if timing else None,
                "endpoints_over": timing.endpoints_over if timing else None,
                "worst_slack_ps": timing.worst_slack_ps if timing else None,
                "logic_depth": timing.logic_depth if timing else None,
                "parts": [asdict(part) for part in found.parts],
            }
        )
        if output is not None:
            write_text(output, json.dumps(documents, indent=1) + "\n")
    print_table(f"{engine.name} on {board.title}, counted by Yosys before placement", COLUMNS, rows)
    for line in verdicts:
        print(line)
    if output is not None:
        print(output)


def verdict(need: Resources, board: Board) -> str:
    """Say whether a kernel fits the user's region of a board within `MOST_SHARES`, and on how many dies."""
    have = dict(board.user.items())
    over = [
        f"{IN_PRINT[name]} {_share(count, have[name])} of {100 * MOST_SHARES[name]:.0f} %"
        for name, count in need.items()
        if name in need.over_shares(board.user)
    ]
    if over:
        return "does not fit: " + ", ".join(over)
    return f"fits, by its cells, on {need.dies(board.user, board.slrs)} of {board.slrs} SLRs at least"


def region_words(timing: Estimate | None, board: Board) -> str:
    """Say which regions of a kernel on several dies do not fit, and by how much."""
    have = dict(board.die.items())
    return "".join(
        f"; SLR{region.slr} has no room: {IN_PRINT[name]} {_share(getattr(region.taken, name), have[name])}"
        f" of {100 * MOST_SHARES[name]:.0f} %"
        for region in (timing.regions if timing else ())
        for name in region.over
    )


def timing_words(timing: Estimate | None) -> str:
    """Describe the timing estimate; only a router could claim a clock."""
    if timing is None:
        return ""
    slack = f"worst slack {timing.worst_slack_ps / 1000:+.3f} ns of {timing.budget_ps / 1000:.3f} ns"
    return f"; {timing.endpoints_over:,} endpoints over budget, {slack}, estimated, not routed"


def resource_rows(
    name: str, found: Synthesis, estimate: Resources, user: Resources, timing: Estimate | None
) -> list[tuple[str, ...]]:
    """Return a configuration's lines: parts, their sum and its share, the most that fits, the estimate."""

    def over(part: str | None) -> str:
        if timing is None:
            return MISSING
        return f"{sum(place.endpoints_over for place in timing.places if part in (None, place.part)):,}"

    lines = [
        (
            name if not n else "",
            part.name,
            f"{part.count}",
            *_cells(part.each, part.memory_lut),
            over(part.name),
        )
        for n, part in enumerate(found.parts)
    ]
    memory_lut = sum(part.count * part.memory_lut for part in found.parts)
    shares = [_share(count, dict(user.items())[name]) for name, count in found.total.items()]
    most = [f"{100 * MOST_SHARES[name]:.0f} %" for name, _ in user.items()]
    lines.append(("", "in all", "", *_cells(found.total, memory_lut), over(None)))
    lines.append(("", "of the user's region", "", shares[0], "", *shares[1:], ""))
    lines.append(("", "most that fits", "", most[0], "", *most[1:], ""))
    lines.append(("", "estimated", "", *_cells(estimate, None), ""))
    return lines


def _share(count: int, have: int) -> str:
    return percent(count / have, places=1) if have else MISSING if not count else f"{count:,} of none"


def _cells(resources: Resources, memory_lut: int | None) -> tuple[str, ...]:
    lut, *others = (f"{count:,}" for _, count in resources.items())
    return lut, "" if memory_lut is None else f"{memory_lut:,}", *others
