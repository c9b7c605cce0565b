"""The planner's subcommands of ``loomwork``; see `sim.cli.main`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from hw.errors import InputError
from hw.scheduler.plan.options import CRITERIA, ON_BOARD, OrderChoice, When
from sim.host.files import write_bytes, write_text
from sim.host.options import PLAN, DirectoryOption
from sim.host.paths import check_distinct, check_readable, check_writable

if TYPE_CHECKING:
    from hw.board import Board
    from hw.scheduler.graph.graph import Graph
    from hw.scheduler.plan.plan import Plan
    from hw.scheduler.planner.watch import Watch

ModelArgument = Annotated[
    str, typer.Argument(help="Model file (.onnx, .pt2, .json), or a shipped network: `loomwork networks`.")
]
ModelsArgument = Annotated[
    list[str] | None, typer.Argument(help="Networks or model files; every shipped network without one.")
]
BudgetsOption = Annotated[str, typer.Option(help="Scratchpads, with commas between.")]
SearchSeedOption = Annotated[int, typer.Option(help="Seed of the search.")]
EffortOption = Annotated[int, typer.Option(help="Work of the search; 1 is the default.")]
ScratchpadOption = Annotated[
    str, typer.Option("--scratchpad", help="Size (512KiB), or a share of COSMA's budgets (M_R, M_H, 0.5M_R).")
]
DimensionOption = Annotated[
    list[str] | None, typer.Option("--dim", help="Value of a dimension the model leaves open, NAME=VALUE.")
]
ShapeOption = Annotated[
    list[str] | None,
    typer.Option("--shape", help="Shape of an input the model leaves open, INPUT=1,3,48,192; before --dim."),
]
WithinOption = Annotated[
    str | None,
    typer.Option(
        help="Time such as 60s or 2m: the best plan found by then is given, and the curve of the page "
        "may take as long again. Such a plan says that it was stopped, and may differ from run to run."
    ),
]
ObjectiveOption = Annotated[
    str | None,
    typer.Option(
        help="Criteria, the weightiest first, with commas between: bytes, then peak and transfers in "
        "either order; latency (predicted cycles) anywhere.",
        show_default=f"{','.join(ON_BOARD)} with --board, else {','.join(CRITERIA)}",
    ),
]
OrderOption = Annotated[
    OrderChoice,
    typer.Option(
        help="Orders of operators to consider: all (free), the model's own (default), one of least peak "
        "(min-peak), or all by COSMA's published program, for a dozen operators at most (cosma)."
    ),
]
TimeLimitOption = Annotated[
    float,
    typer.Option(
        "--time-limit", help="Seconds a solver call may take; a plan that needed the limit says so."
    ),
]

#: Most problems of a plan that `check` lists.
_LISTED = 10


def register(app: typer.Typer, compare: typer.Typer) -> None:
    """Add the planner's commands."""
    for command in (plan, check, lower, graph, networks, ablate):
        app.command(rich_help_panel=PLAN)(command)
    compare.command("plan")(compare_plan)


def plan(
    model: ModelArgument,
    scratchpad: ScratchpadOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="Plan to write.")] = Path("plan.json"),
    html: Annotated[Path | None, typer.Option("--html", help="Page to write: map, curve, steps.")] = None,
    curve_points: Annotated[
        int, typer.Option(min=0, help="Scratchpads planned for the curve of the page.")
    ] = 12,
    curve: Annotated[
        bool, typer.Option("--curve/--no-curve", help="Whether the page gets its curve, after the plan.")
    ] = True,
    within: WithinOption = None,
    board: Annotated[
        str | None, typer.Option("--board", help="Board whose words and memory the plan is for.")
    ] = None,
    objective: ObjectiveOption = None,
    order: OrderOption = OrderChoice.FREE,
    streaming: Annotated[
        When, typer.Option(help="Whether tensors may pass through a window of the scratchpad.")
    ] = When.AUTO,
    tiling: Annotated[When, typer.Option(help="Whether operators are split into bands.")] = When.AUTO,
    pipelining: Annotated[When, typer.Option(help="Whether neighbours may share the array.")] = When.AUTO,
    cores: Annotated[int, typer.Option(help="Neighbours that may share the array, at the most.")] = 2,
    macs_per_cycle: Annotated[int, typer.Option(help="Multiply-accumulates of the array.")] = 4096,
    seed: SearchSeedOption = 0,
    effort: EffortOption = 1,
    time_limit: TimeLimitOption = 600.0,
    dim: DimensionOption = None,
    shape: ShapeOption = None,
) -> None:
    """Plan a network into a scratchpad: order, residency, addresses, transfers, and a certificate.

    Ctrl-C ends the search. The best plan so far is printed and written, and its certificate says that it was
    stopped. The exit status is 130, so that no script continues by mistake. A second Ctrl-C aborts.
    """
    started = time.perf_counter()
    check_writable("--output", output)
    check_writable("--html", html)
    from hw.board.files import find_board, load_board

    read = (("model", Path(model)), ("--board", find_board(board) if board is not None else None))
    check_distinct(*read, ("--output", output), ("--html", html))
    from hw.scheduler.plan.documents import plan_to_json
    from hw.scheduler.plan_model import load_fused
    from sim.host.options import parse_dimensions
    from sim.plans.commands import parse_seconds, parse_shapes, print_plan, warn

    seconds = None if within is None else parse_seconds("--within", within)
    options: dict[str, Any] = {
        "order": order,
        "streaming": streaming,
        "tiling": tiling,
        "pipelining": pipelining,
        "cores": cores,
        "macs_per_cycle": macs_per_cycle,
        "seed": seed,
        "effort": effort,
        "time_limit_s": time_limit,
    }
    if objective is not None:
        options["objective"] = tuple(map(str.strip, objective.split(",")))
    on = load_board(board) if board is not None else None
    dimensions, shapes = parse_dimensions(dim or ()), parse_shapes(shape or ())
    load = partial(load_fused, model, dimensions, shapes, warn)
    left = None if seconds is None else seconds - (time.perf_counter() - started)
    (graph, found), interrupted, compiling_s = _plan_watched(model, load, scratchpad, on, options, left)
    write_text(output, plan_to_json(found))
    print_plan(found, time.perf_counter() - started - compiling_s, compiling_s)
    print(output, flush=True)
    if html is not None:
        points = curve_points if curve and not interrupted else 0
        interrupted = _write_page(html, found, graph, options, points, seconds) or interrupted
        print(html)
    if interrupted:
        raise KeyboardInterrupt


def _plan_watched(
    model: str,
    load: Callable[[], Graph],
    scratchpad: str,
    board: Board | None,
    options: Mapping[str, Any],
    within_s: float | None,
) -> tuple[tuple[Graph, Plan], bool, float]:
    """Load and plan a model beside a progress line; see `sim.plans.watched.watched_work`."""
    from hw.scheduler.plan_model import plan_model
    from sim.plans.watched import watched_work

    def planned(watch: Watch) -> tuple[Graph, Plan]:
        watch.stage("reading the model")
        graph = load()
        return graph, plan_model(graph, scratchpad, board=board, watch=watch, **options)

    return watched_work(f"Planning {Path(model).stem}", planned, within_s)


def _write_page(
    path: Path,
    plan: Plan,
    graph: Graph,
    options: Mapping[str, Any],
    curve_points: int,
    within_s: float | None,
) -> bool:
    """Write the page of a plan, with a curve of ``curve_points``; return whether that was interrupted."""
    from sim.plans.curve import traffic_over_scratchpad
    from sim.plans.page import render_plan
    from sim.plans.watched import watched_work

    curve, interrupted = None, False
    if curve_points:
        curve, interrupted, _ = watched_work(
            f"Curve of {graph.name}",
            lambda watch: traffic_over_scratchpad(plan, graph, options, curve_points, watch),
            within_s,
        )
    render_plan(plan, path, curve=curve)
    return interrupted


def check(
    plan: Annotated[Path, typer.Argument(help="Plan, .json.")],
    model: Annotated[
        str | None,
        typer.Option(help="Model the plan is of, to compare its graph with; a shipped network is found."),
    ] = None,
    dim: DimensionOption = None,
    shape: ShapeOption = None,
) -> None:
    """Replay a plan without any solver; list which figures are recomputed, and which only claimed."""
    check_readable("plan", plan)
    from hw.edge import read_json
    from hw.scheduler.check.check import check as problems_of
    from hw.scheduler.check.evidence import evidence
    from hw.scheduler.check.form import Plan
    from sim.host.console import print_table
    from sim.host.options import parse_dimensions
    from sim.plans.commands import model_of_plan, name_remark, parse_shapes

    document = read_json(plan).data
    name, graph = model_of_plan(document, model, parse_dimensions(dim or ()), parse_shapes(shape or ()))
    problems = problems_of(document, model=graph)
    for problem in problems[:_LISTED]:
        print(f"loomwork: {problem}", file=sys.stderr)
    if len(problems) > _LISTED:
        print(f"loomwork: and {len(problems) - _LISTED:,} more", file=sys.stderr)
    if problems:
        raise typer.Exit(1)
    found = evidence(Plan.model_validate(document), model=name, remark=name_remark(document, graph))
    rows = list(found)
    claimed = sum(row.claimed for row in rows)
    title = f"{plan}: replayed, nothing is wrong; {claimed} of {len(rows)} rows rest on the planner's word"
    print_table(title, ("figure", "value", "what speaks for it"), rows)


def lower(
    plan: Annotated[Path, typer.Argument(help="Plan, .json.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Program image or configuration to write.")
    ] = Path("program.bin"),
    frozen: Annotated[
        str | None,
        typer.Option(help="Board: write the configuration of a kernel with the program in ROMs instead."),
    ] = None,
) -> None:
    """Turn a plan into the program image that a scheduler kernel loads at launch."""
    check_readable("plan", plan)
    check_writable("--output", output)
    check_distinct(("plan", plan), ("--output", output))
    from hw.board import load_board
    from hw.config import config_dict
    from hw.scheduler import config
    from hw.scheduler.program.image import encode
    from hw.scheduler.program.lower import lower as lowered
    from sim.plans.commands import checked_plan

    found = checked_plan(plan)
    program = lowered(found)
    if frozen is None:
        write_bytes(output, encode(program))
    else:
        board = load_board(frozen)
        width = board.memory.port_data_width // 8
        if found.word_bytes != width:
            legal = f"{width}, the port of {board.name}'s memory"
            raise InputError("word_bytes of the plan", found.word_bytes, legal)
        memory: Literal["ultra", "block"] = "ultra" if board.user.uram else "block"
        kernel = config.frozen(program, scratchpad_bytes=found.scratchpad_bytes, memory=memory)
        # JSON is YAML, and read and written much faster.
        text = json.dumps(config_dict(kernel), separators=(",", ":"))
        write_text(output, f"# {found.graph.name} on {board.name}, lowered from {plan.name}\n{text}\n")
    print(output)


def graph(
    model: ModelArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Graph to write, .json.")],
    dim: DimensionOption = None,
    shape: ShapeOption = None,
) -> None:
    """Write a model's graph of operators and tensors in the documented JSON form."""
    check_writable("--output", output)
    check_distinct(("model", Path(model)), ("--output", output))
    from hw.scheduler.graph.documents import graph_to_json
    from hw.scheduler.graph.importers import load_model
    from sim.host.options import parse_dimensions
    from sim.plans.commands import parse_shapes, warn

    dimensions, shapes = parse_dimensions(dim or ()), parse_shapes(shape or ())
    write_text(output, graph_to_json(load_model(model, dimensions=dimensions, shapes=shapes, say=warn)))
    print(output)


def networks() -> None:
    """List the networks that come with the planner."""
    from hw.scheduler.graph.networks import network_names
    from sim.host.console import print_table
    from sim.plans.commands import NETWORK_COLUMNS, network_row

    print_table("Networks", NETWORK_COLUMNS, [network_row(name) for name in network_names()])


def ablate(
    models: ModelsArgument = None,
    budgets: BudgetsOption = "M_H,M_R",
    without: Annotated[
        list[str] | None, typer.Option(help="Technique to switch off; each of all in turn without one.")
    ] = None,
    whole: Annotated[bool, typer.Option(help="Whole tensors only: no windows, bands or groups.")] = False,
    effort: EffortOption = 1,
    output: DirectoryOption = Path("build/ablate"),
) -> None:
    """Plan networks with each technique of the planner switched off, and print the loss."""
    from sim.plans.ablate import run_ablate

    run_ablate(models or [], budgets, without or [], output, whole=whole, effort=effort)


def compare_plan(
    models: ModelsArgument = None,
    budgets: BudgetsOption = "M_P,M_H,M_R,0.75M_R,0.5M_R,0.25M_R",
    output: DirectoryOption = Path("build/compare-plan"),
    seed: SearchSeedOption = 0,
    effort: EffortOption = 1,
) -> None:
    """Compare the planner's traffic with COSMA's baselines, for networks and scratchpads."""
    from sim.plans.suite import run_compare

    run_compare(models or [], budgets, output, seed, effort)
