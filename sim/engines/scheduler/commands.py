"""The planner's part of the ``loomwork`` command; see `sim.cli.main`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hw.scheduler.plan.options import CRITERIA, ON_BOARD, OrderChoice, When

ModelArgument = Annotated[
    str, typer.Argument(help="Model file (.onnx, .pt2, .json), or a shipped network: `loomwork networks`.")
]
ScratchpadOption = Annotated[
    str, typer.Option("--scratchpad", help="Size (512KiB), or a share of COSMA's budgets (M_R, M_H, 0.5M_R).")
]
DimensionOption = Annotated[
    list[str] | None, typer.Option("--dim", help="Value of a dimension the model leaves open, NAME=VALUE.")
]


def register(app: typer.Typer, compare: typer.Typer) -> None:
    """Add the planner's commands."""
    app.command()(plan)
    app.command()(check)
    app.command()(lower)
    app.command()(graph)
    app.command()(networks)
    app.command()(ablate)
    compare.command("plan")(compare_plan)


def plan(
    model: ModelArgument,
    scratchpad: ScratchpadOption,
    output: Annotated[Path, typer.Option("--output", "-o", help="Plan to write.")] = Path("plan.json"),
    html: Annotated[Path | None, typer.Option("--html", help="Page to write: map, curve, steps.")] = None,
    curve_points: Annotated[
        int, typer.Option(min=0, help="Scratchpads planned for the curve of the page.")
    ] = 12,
    board: Annotated[
        str | None, typer.Option("--board", help="Board whose words and memory the plan is for.")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help="Criteria, the weightiest first, with commas between: bytes, then peak and transfers in "
            "either order; latency (predicted cycles) anywhere.",
            show_default=f"{','.join(ON_BOARD)} with --board, else {','.join(CRITERIA)}",
        ),
    ] = None,
    order: Annotated[
        OrderChoice,
        typer.Option(
            help="Orders of operators to consider: all (free), the model's own (default), one of least peak "
            "(min-peak), or all by COSMA's published program, for a dozen operators at most (cosma)."
        ),
    ] = OrderChoice.FREE,
    streaming: Annotated[
        When, typer.Option(help="Whether tensors may pass through a window of the scratchpad.")
    ] = When.AUTO,
    tiling: Annotated[When, typer.Option(help="Whether operators are split into bands.")] = When.AUTO,
    pipelining: Annotated[When, typer.Option(help="Whether neighbours may share the array.")] = When.AUTO,
    cores: Annotated[int, typer.Option(help="Neighbours that may share the array, at the most.")] = 2,
    macs_per_cycle: Annotated[int, typer.Option(help="Multiply-accumulates of the array.")] = 4096,
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    effort: Annotated[int, typer.Option(help="Work of the search; 1 is the default.")] = 1,
    time_limit: Annotated[
        float,
        typer.Option(
            "--time-limit", help="Seconds a solver call may take; a plan that needed the limit says so."
        ),
    ] = 600.0,
    dim: DimensionOption = None,
) -> None:
    """Plan a network into a scratchpad: order, residency, addresses, transfers, and a certificate."""
    from sim.plans.commands import run_plan

    asked = {} if objective is None else {"objective": tuple(map(str.strip, objective.split(",")))}
    run_plan(
        model,
        scratchpad,
        output,
        html=html,
        curve_points=curve_points,
        board_name=board,
        dimensions=dim or (),
        order=order,
        streaming=streaming,
        tiling=tiling,
        pipelining=pipelining,
        cores=cores,
        macs_per_cycle=macs_per_cycle,
        seed=seed,
        effort=effort,
        time_limit_s=time_limit,
        **asked,
    )


def check(
    plan: Annotated[Path, typer.Argument(help="Plan, .json.")],
) -> None:
    """Replay a plan without any solver and say whether all of it is true."""
    from sim.plans.commands import run_check

    if not run_check(plan):
        raise typer.Exit(1)


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
    from sim.plans.commands import run_lower

    run_lower(plan, output, frozen_for=frozen)


def graph(
    model: ModelArgument,
    output: Annotated[Path, typer.Option("--output", "-o", help="Graph to write, .json.")],
    dim: DimensionOption = None,
) -> None:
    """Write a model's graph of operators and tensors in the documented JSON form."""
    from sim.plans.commands import run_graph

    run_graph(model, tuple(dim or ()), output)


def networks() -> None:
    """List the networks that come with the planner."""
    from sim.plans.commands import run_networks

    run_networks()


def ablate(
    models: Annotated[
        list[str] | None, typer.Argument(help="Networks or model files; every shipped network without one.")
    ] = None,
    budgets: Annotated[str, typer.Option(help="Scratchpads, with commas between.")] = "M_H,M_R",
    without: Annotated[
        list[str] | None, typer.Option(help="Technique to switch off; each of all in turn without one.")
    ] = None,
    whole: Annotated[bool, typer.Option(help="Whole tensors only: no windows, bands or groups.")] = False,
    effort: Annotated[int, typer.Option(help="Work of the search; 1 is the default.")] = 1,
    output: Annotated[Path, typer.Option("--output", help="Directory to write.")] = Path("build/ablate"),
) -> None:
    """Plan networks with each technique of the planner switched off, and print what that loses."""
    from sim.plans.ablate import run_ablate

    run_ablate(models or [], budgets, without or [], output, whole=whole, effort=effort)


def compare_plan(
    models: Annotated[
        list[str] | None, typer.Argument(help="Networks or model files; every shipped network without one.")
    ] = None,
    budgets: Annotated[
        str, typer.Option(help="Scratchpads, with commas between.")
    ] = "M_P,M_H,M_R,0.75M_R,0.5M_R,0.25M_R",
    output: Annotated[Path, typer.Option("--output", help="Directory to write.")] = Path(
        "build/compare-plan"
    ),
    seed: Annotated[int, typer.Option(help="Seed of the search.")] = 0,
    effort: Annotated[int, typer.Option(help="Work of the search; 1 is the default.")] = 1,
) -> None:
    """Compare the planner's traffic with COSMA's baselines, for networks and scratchpads."""
    from sim.plans.suite import run_compare

    run_compare(models or [], budgets, output, seed, effort)
