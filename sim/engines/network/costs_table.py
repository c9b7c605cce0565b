"""The costs of a compiled network, as a table and as a report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hw.config import config_dict
from sim.engines.network.build_folder import Build
from sim.engines.network.costs import OperatorCost, operator_costs
from sim.host.console import print_table
from sim.host.files import write_text

_COLUMNS = ("operator", "kind", "commands", "cycles", "array used", "weights, bytes", "bound by")


def print_costs(build: Build, seconds: float) -> None:
    """Print the cost of each operator, their total, and the figures of the plan."""
    costs = operator_costs(build.network, build.program, build.config, build.board)
    rows = [_row(cost, build) for cost in costs]
    commands, cycles, weights = (
        sum(getattr(cost, name) for cost in costs) for name in ("commands", "cycles", "weight_bytes")
    )
    used = _used(build.network.macs, cycles, build)
    rows.append(("all", "", f"{commands:,}", f"{cycles:,}", used, f"{weights:,}", ""))
    config = build.config
    title = f"{build.name} for {build.board.title}, {config.columns} columns, {config.lanes} lanes"
    print_table(f"{title}: in {seconds:.1f} s", _COLUMNS, rows)
    print_table(
        "Plan", ("figure", "value"), [(name, f"{value:,}") for name, value in _figures(build).items()]
    )


def write_report(path: Path, build: Build) -> None:
    """Write the same as JSON, each name with its unit."""
    costs = operator_costs(build.network, build.program, build.config, build.board)
    document: dict[str, Any] = {
        "format": "loomwork-costs-1",
        "name": build.name,
        "board": build.board.name,
        "configuration": config_dict(build.config),
        "cycles_total": sum(cost.cycles for cost in costs),
        "weight_read_bytes": sum(cost.weight_bytes for cost in costs),
        **_figures(build),
        "claim": build.compiled.plan.certificate.claim,
        "operators": [
            {
                "name": cost.name,
                "kind": cost.kind,
                "commands_total": cost.commands,
                "macs_total": cost.macs,
                "cycles": cost.cycles,
                "weight_read_bytes": cost.weight_bytes,
                "bound_by": cost.bound,
            }
            for cost in costs
        ],
    }
    write_text(path, json.dumps(document, indent=2) + "\n")


def _figures(build: Build) -> dict[str, int]:
    plan, program = build.compiled.plan, build.program
    names = (
        "peak_bytes", "compulsory_bytes", "avoidable_bytes", "offchip_read_bytes", "offchip_write_bytes",
        "transfers_total",
    )  # fmt: skip
    return {
        "macs_total": build.network.macs,
        "model_weight_bytes": build.network.weight_bytes,
        "packet_bytes": sum(beats.nbytes for beats in program.passes),
        "image_bytes": len(build.image),
        "commands_total": len(program.steps),
        "scratchpad_bytes": plan.scratchpad_bytes,
        **{name: getattr(plan.totals, name) for name in names},
    }


def _row(cost: OperatorCost, build: Build) -> tuple[str, ...]:
    used = _used(cost.macs, cost.cycles, build) if cost.macs else ""
    weights = f"{cost.weight_bytes:,}" if cost.weight_bytes else ""
    return (cost.name, cost.kind, f"{cost.commands:,}", f"{cost.cycles:,}", used, weights, cost.bound)


def _used(macs: int, cycles: int, build: Build) -> str:
    """Return the share of the array's multiplications that the network has."""
    return f"{macs / (cycles * build.config.columns * build.config.matrix.inputs):.0%}"
