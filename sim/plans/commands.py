"""Helpers of the planner's commands: options parsed, plans read and checked, figures printed."""

import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hw.errors import InputError
from hw.scheduler.check.check import check_file
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.graph.fuse import fuse_elementwise
from hw.scheduler.graph.graph import TensorKind
from hw.scheduler.graph.importers import load_model
from hw.scheduler.graph.networks import network_names
from hw.scheduler.plan.documents import read_plan
from hw.scheduler.plan.plan import Plan
from hw.scheduler.plan.problem import Problem
from hw.scheduler.plan_model import load_fused
from sim.host.console import print_table

#: Name of the plan among the tensors of a launch: an array of no dimension that holds it.
PLAN = "(plan)"


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Parse ``INPUT=1,3,48,192`` into shapes by name; `InputError` for another form or a duplicate name."""
    found: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, equals, values = text.rpartition("=")
        extents = values.split(",")
        if not (name and equals and all(each.isascii() and each.isdigit() for each in extents)):
            raise InputError("--shape", text, "INPUT=1,3,48,192 with whole values of at least 0")
        if name in found:
            listed = ",".join(map(str, found[name]))
            raise InputError("--shape", text, f"given once for {name}, which is {listed} already")
        found[name] = tuple(map(int, extents))
    return found


def warn(text: str) -> None:
    """Print a line that is no error."""
    print(f"loomwork: warning: {text}", file=sys.stderr)


_TIME = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) *(s|m|h|)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def parse_seconds(field: str, text: str) -> float:
    """Turn ``60s``, ``2m``, ``1.5h`` or ``90`` into seconds; `InputError` for another form, or no time."""
    match = _TIME.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if seconds <= 0:
        raise InputError(field, text, "a time above 0 such as 60s, 2m, 1.5h or 90")
    return seconds


def print_plan(plan: Plan, seconds: float, compiling_s: float) -> None:
    """Print the figures of a plan, its planning time and the time of compiling."""
    measured = (
        "peak_bytes", "compulsory_bytes", "avoidable_bytes", "parameter_bytes", "offchip_read_bytes",
        "offchip_write_bytes", "transfers_total", "predicted_cycles", "exposed_cycles",
    )  # fmt: skip
    rows = [
        ("operators, steps", f"{len(plan.graph.operators):,}"),
        ("scratchpad_bytes", f"{plan.scratchpad_bytes:,}"),
        *((name, f"{getattr(plan.totals, name):,}") for name in measured),
        ("claim", plan.certificate.claim),
        ("bound, any order", f"{plan.certificate.bound_avoidable_bytes:,} bytes"),
        ("planned in", f"{seconds:.1f} s"),
    ]
    if compiling_s:
        rows.append(("searches compiled in", f"{compiling_s:.1f} s more"))
    if plan.totals.parameter_bytes:
        words = sum(-(-each.weight_bytes // plan.word_bytes) for each in plan.graph.operators)
        cost = f"{words:,} cycles of the port, in none of the other figures: they are not moved yet"
        rows.append(("parameters", cost))
    rows += [(f"note, {stage.stage}", stage.note) for stage in plan.certificate.stages if stage.note]
    print_table(f"Plan of {plan.graph.name}", ("figure", "value"), rows)


def checked_plan(path: Path) -> Plan:
    """Read a plan; `InputError` when it cannot be read, or the checker refuses it."""
    problems = check_file(path)
    if problems:
        raise InputError("plan", str(path), f"true: {problems[0]}")
    return read_plan(path)


def model_of_plan(
    document: Any, model: str | None, dimensions: Mapping[str, int], shapes: Mapping[str, Sequence[int]]
) -> tuple[str, Any]:
    """Return the name and graph of the model of a plan.json's content, for `hw.scheduler.check.check.check`.

    Both are empty without ``model``, unless the plan's network is a shipped one. `InputError` for dimensions
    or shapes without a model.
    """
    graph = None
    for option, values in (("--dim", dimensions), ("--shape", shapes)):
        if values and model is None:
            raise InputError(option, ", ".join(values), "left out without --model")
    if model is not None:
        graph = load_fused(model, dimensions, shapes, warn)
    elif isinstance(document, dict) and isinstance(stated := document.get("graph"), dict):
        shipped = load_fused(stated["name"]) if stated.get("name") in network_names() else None
        graph = shipped if shipped and shipped.made_by == stated.get("made_by") else None
    if graph is None:
        return "", None
    content = json.loads(graph_to_json(graph))
    del content["format"]
    return model or graph.name, content


def name_remark(document: Any, graph: Any) -> str:
    """Return a remark where the network's name in a valid plan.json is not that of its model's graph.

    ``graph`` is from `model_of_plan`.
    """
    name = document["graph"]["name"]
    if graph is None:
        return f"it is not the shipped {name}, whose made_by is another" if name in network_names() else ""
    return f"the model's own name is {graph['name']}" if graph["name"] != name else ""


#: Columns of `network_row`.
NETWORK_COLUMNS = (
    "network", "operators, merged", "tensors", "million MACs", "inside, KiB", "weights, KiB", "M_R, KiB",
)  # fmt: skip


def network_row(name: str) -> tuple[str, ...]:
    """Return the figures of a shipped network, in the order of `NETWORK_COLUMNS`.

    Operators are counted in the source, and after merging elementwise ones.  ``inside`` is the bytes of all
    activations.  M_R is the largest working set of a merged operator.
    """
    graph = load_model(name)
    fused = fuse_elementwise(graph)
    problem = Problem(graph=fused)
    macs, weights = (sum(getattr(each, of) for each in graph.operators) for of in ("macs", "weight_bytes"))
    inside = sum(tensor.size_bytes for tensor in graph.tensors if tensor.kind is TensorKind.ACTIVATION)
    return (
        name,
        f"{len(graph.operators)}, {len(fused.operators)}",
        f"{len(graph.tensors)}",
        f"{macs / 1e6:,.1f}" if macs else "",
        f"{inside / 1024:,.0f}",
        f"{weights / 1024:,.0f}" if weights else "",
        f"{max(problem.working_set) * problem.word_bytes / 1024:,.1f}",
    )
