"""The points of a sweep as rows: for the tables, and as JSON."""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

from sim.sweep.points import GATES, Evaluation, PointResult
from sim.sweep.results import SweepResults, compared

FORMAT = "loomwork-sweep-points-1"
#: Figures of a design that every table has, before those of each workload.
FIGURES = ("cycles", "microseconds", "microjoules", *GATES, "bytes", "utilization")
_RESULTS = TypeAdapter(SweepResults)


def worst_error(result: PointResult) -> float | None:
    """Return the error of a point's prediction that is farthest from 0; None where nothing was simulated."""
    return max((found.error for found in compared(result)), key=abs, default=None)


def is_sweep_points(path: Path) -> bool:
    """Say whether a file is a sweep's points as JSON."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and document.get("format") == FORMAT


def short_names(results: SweepResults) -> dict[str, str]:
    """Return parameters as they are printed: without their engine's name where that is clear."""
    names = dict.fromkeys(name for result in results.points for name in result.point.parameters)
    last = [name.partition(".")[2] for name in names]
    return {name: short if last.count(short) == 1 else name for name, short in zip(names, last, strict=True)}


def rows(results: SweepResults) -> Iterator[dict[str, Any]]:
    """Return each point as one flat row: number, board, parameters, figures and dearest fidelity."""
    names = short_names(results)
    for result in results.points:
        error = worst_error(result)
        yield {
            "point": result.number,
            "board": result.point.board,
            **{short: result.point.parameters.get(name, "") for name, short in names.items()},
            **{name: result.figures.get(name) for name in FIGURES},
            **{name: value for name, value in result.figures.items() if name not in FIGURES},
            "known_by": result.fidelity,
            "predicted_cycles_error_ratio": error,
            "on_front": result.on_front,
            "equal_to": result.equal_to,
            "failure": result.failure,
        }


def json_text(results: SweepResults) -> str:
    """Return all results, with the reports of simulations."""
    return json.dumps({"format": FORMAT, **_RESULTS.dump_python(results, mode="json")}, indent=1) + "\n"


def config_text(config: Mapping[str, Any]) -> str:
    """Return a configuration as its file, for ``--config``."""
    return yaml.safe_dump(dict(config), sort_keys=False)


def verilog_command(result: PointResult, engine: str) -> str:
    """Return the commands that write a design's configuration and generate and lint its Verilog."""
    name = f"point-{result.number}-{engine}"
    config = config_text(result.point.configs[engine])
    options = f"--engine {engine} --board {shlex.quote(result.point.board)} --config {name}.yaml"
    return (
        f"cat > {name}.yaml <<'END'\n{config}END\n"
        f"loomwork verilog {options} --output build/verilog/{name} --lint"
    )


def reports(result: PointResult) -> dict[str, Evaluation]:
    """Return the simulations of a point that have a report, the dearest of each workload, by its name."""
    found: dict[str, Evaluation] = {}
    for fidelity in ("control", "full"):
        for outcome in result.outcomes:
            if outcome.fidelity == fidelity and outcome.document:
                found[outcome.workload] = outcome
    return found
