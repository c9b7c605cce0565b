"""The planner's commands: files in, files out, around `hw.scheduler`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hw.errors import InputError
from hw.scheduler.plan.options import When
from sim.host.files import write_bytes, write_text
from sim.host.paths import check_readable, check_writable
from sim.host.progress import Activity

if TYPE_CHECKING:
    from hw.scheduler.plan.plan import Plan
    from hw.scheduler.plan.problem import Problem
    from hw.scheduler.planner.budget import Budgets
    from sim.plans.facts import CurvePoint


def parse_dimensions(texts: Sequence[str]) -> dict[str, int]:
    """Turn ``NAME=VALUE`` into numbers by name; `InputError` for another form, or a value below 1."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value.isascii() and value.isdigit() and int(value)):
            raise InputError("--dim", text, "NAME=VALUE with a whole value of at least 1")
        found[name] = int(value)
    return found


def run_plan(
    model: str,
    scratchpad: str,
    output: Path,
    *,
    html: Path | None,
    curve_points: int,
    board_name: str | None,
    dimensions: Sequence[str],
    **options: Any,
) -> None:
    """Plan, write the plan and the page, and print the figures.

    The page's curve has ``curve_points`` scratchpads beside the plan's own; ``options`` are further fields of
    `hw.scheduler.plan.options.PlanOptions`. Raises `InputError` before any work for a wrong option, model or
    path; when no plan is possible.
    """
    check_writable("--output", output)
    if html is not None:
        check_writable("--html", html)
        if html.resolve() == output.resolve():
            raise InputError("--html", str(html), "another file than --output")
    from hw.board import load_board
    from hw.scheduler.plan.documents import plan_to_json
    from hw.scheduler.plan_model import load_fused, plan_model

    board = load_board(board_name) if board_name else None
    started = time.perf_counter()
    graph = load_fused(model, parse_dimensions(dimensions))
    with Activity(f"Planning {graph.name}") as activity:
        plan = plan_model(graph, scratchpad, board=board, progress=activity.update, **options)
        write_text(output, plan_to_json(plan))
        written = [output]
        seconds = time.perf_counter() - started
        if html is not None:
            from hw.scheduler.plan.problem import Problem
            from hw.scheduler.planner.budget import Budgets
            from sim.plans.page import render_plan

            activity.update("the curve of traffic over scratchpad")
            problem = Problem(graph=graph, word_bytes=plan.word_bytes)
            found = Budgets.of(problem, seed=options["seed"])
            budgets = {"M_R": found.m_r_bytes, "M_H": found.m_h_bytes, "M_P": found.m_p_bytes}
            render_plan(
                plan, html, curve=_curve(problem, options, found, curve_points, activity), budgets=budgets
            )
            written.append(html)
    _print_plan(plan, seconds)
    for path in written:
        print(path)


def _curve(
    problem: Problem, options: Mapping[str, Any], budgets: Budgets, count: int, activity: Activity
) -> tuple[CurvePoint, ...]:
    """Plan for ``count`` scratchpads, evenly from an eighth of M_R up to M_P, with the baselines beside."""
    from hw.scheduler.plan_model import plan_model
    from hw.scheduler.planner.baselines import baselines
    from hw.scheduler.planner.order.min_peak import minimum_peak
    from sim.plans.facts import CurvePoint
    from sim.plans.rows import baseline_bytes

    least, most = budgets.m_r_bytes // 8, budgets.m_p_bytes
    sizes = {most - (most - least) * index // max(1, count - 1) for index in range(count)}
    least_peak, word = minimum_peak(problem, seed=options["seed"]).order, problem.word_bytes
    points: list[CurvePoint] = []
    for number, size in enumerate(sorted(sizes), 1):
        activity.update(f"scratchpad {number} of {len(sizes)}")
        asked = {**options, "pipelining": When.NEVER, "word_bytes": word}
        try:
            plan = plan_model(problem.graph, str(size), **asked)
        except InputError:
            continue  # too small for any plan: the curve begins later
        point = CurvePoint.of(plan, baseline_bytes(baselines(problem, size // word, least_peak), word))
        if points and points[-1].avoidable_bytes < point.avoidable_bytes:
            # What fits a smaller scratchpad fits this one, too.
            moved = points[-1].avoidable_bytes
            point = replace(point, avoidable_bytes=moved, bound_avoidable_bytes=0, claim="")
        points.append(point)
    return tuple(points)


def _print_plan(plan: Plan, seconds: float) -> None:
    from sim.host.console import print_table

    measured = (
        "peak_bytes", "compulsory_bytes", "avoidable_bytes", "parameter_bytes", "offchip_read_bytes",
        "offchip_write_bytes", "transfers_total", "predicted_cycles", "exposed_cycles",
    )  # fmt: skip
    rows = [
        ("operators, steps", f"{len(plan.graph.operators):,}"),
        ("scratchpad_bytes", f"{plan.scratchpad_bytes:,}"),
        *((name, f"{getattr(plan.totals, name):,}") for name in measured),
        ("claim", plan.certificate.claim),
        ("planned in", f"{seconds:.1f} s"),
    ]
    rows += [(f"note, {stage.stage}", stage.note) for stage in plan.certificate.stages if stage.note]
    print_table(f"Plan of {plan.graph.name}", ("figure", "value"), rows)


def run_check(path: Path) -> bool:
    """Replay a plan and print what is wrong with it, or its figures; tell whether all of it is true."""
    check_readable("plan", path)
    from hw.scheduler.check.check import check_file, recomputed_totals
    from sim.host.console import print_table

    problems = check_file(path)
    for problem in problems:
        print(f"loomwork: {problem}", file=sys.stderr)
    if not problems:
        totals = recomputed_totals(json.loads(path.read_text(encoding="utf-8")))
        rows = [(name, f"{value:,}") for name, value in totals.items()]
        print_table(f"{path}: replayed, all of it is true", ("recomputed", "value"), rows)
    return not problems


def checked_plan(path: Path) -> Plan:
    """Read a plan; `InputError` when it cannot be read, or the checker refuses it."""
    from hw.scheduler.check.check import check_file
    from hw.scheduler.plan.documents import read_plan

    problems = check_file(path)
    if problems:
        raise InputError("plan", str(path), f"true: {problems[0]}")
    return read_plan(path)


def run_lower(path: Path, output: Path, *, frozen_for: str | None) -> None:
    """Lower a plan and write its program image, or the configuration of a kernel with the program in it.

    The latter for the board ``frozen_for``. Raises `InputError` when the plan cannot be read, the checker
    refuses it, or the board's port has another width.
    """
    check_readable("plan", path)
    check_writable("--output", output)
    from hw.board import load_board
    from hw.config import config_dict
    from hw.scheduler.config import frozen
    from hw.scheduler.program.image import encode
    from hw.scheduler.program.lower import lower

    plan = checked_plan(path)
    program = lower(plan)
    if frozen_for is None:
        write_bytes(output, encode(program))
    else:
        board = load_board(frozen_for)
        width = board.memory.port_data_width // 8
        if plan.word_bytes != width:
            legal = f"{width}, the port of {board.name}'s memory"
            raise InputError("word_bytes of the plan", plan.word_bytes, legal)
        memory: Literal["ultra", "block"] = "ultra" if board.user.uram else "block"
        config = frozen(program, scratchpad_bytes=plan.scratchpad_bytes, memory=memory)
        # JSON is YAML, and read and written much faster.
        text = json.dumps(config_dict(config), separators=(",", ":"))
        write_text(output, f"# {plan.graph.name} on {board.name}, lowered from {path.name}\n{text}\n")
    print(output)


def run_graph(model: str, dimensions: Sequence[str], output: Path) -> None:
    """Import a model and write its graph, as the model has it."""
    check_writable("--output", output)
    from hw.scheduler.graph.documents import graph_to_json
    from hw.scheduler.graph.importers import load_model

    graph = load_model(model, dimensions=parse_dimensions(dimensions))
    write_text(output, graph_to_json(graph))
    print(output)


#: What `network_row` gives.
NETWORK_COLUMNS = (
    "network", "operators, merged", "tensors", "million MACs", "inside, KiB", "weights, KiB", "M_R, KiB",
)  # fmt: skip


def network_row(name: str) -> tuple[str, ...]:
    """Give the figures of a shipped network, in the order of `NETWORK_COLUMNS`.

    Operators are counted as the source has them, and after elementwise ones are merged; inside are the
    activations, each once; M_R is the most one operator needs, merged.
    """
    from hw.scheduler.graph.fuse import fuse_elementwise
    from hw.scheduler.graph.graph import TensorKind
    from hw.scheduler.graph.importers import load_model
    from hw.scheduler.plan.problem import Problem

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


def run_networks() -> None:
    """Print a line for each shipped network."""
    from hw.scheduler.graph.networks import network_names
    from sim.host.console import print_table

    print_table("Networks", NETWORK_COLUMNS, [network_row(name) for name in network_names()])
