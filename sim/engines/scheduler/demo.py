"""The scheduler engine's demo: a layer planned, checked, and executed with exactly the promised bytes."""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from hw.board import Board
from hw.scheduler.engine import SchedulerEngine
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.plan import Plan
from hw.scheduler.plan_model import plan_model
from hw.scheduler.planner.watch import Watch
from hw.scheduler.program.lower import lower
from sim.host.files import write_text
from sim.host.progress import ProgressLine
from sim.plans.commands import PLAN
from sim.plans.page import render_plan
from sim.run.adapter import Demo, Results

#: Network and scratchpad of both plans, on one kernel.  In a quarter of M_R, the largest working set, tensors
#: are spilled and refetched; in M_H only inputs and outputs move.
_PLANS = (("minilm_layer", "0.25M_R"), ("minilm_layer", "M_H"))
#: Counters of cycles that only wait for transfers.
_EXPOSED = ("write", "read", "ring", "drain")


def scheduler_demo(board: Board) -> Demo:
    """Plan a layer of all-MiniLM-L6-v2 for the board; each launch must move exactly its plan's bytes."""
    config = SchedulerEngine().default_config(board)
    plans: dict[str, Plan] = {}
    for network, scratchpad in _PLANS:
        with ProgressLine(f"Planning {network}") as activity:
            plan = plan_model(network, scratchpad, board=board, watch=Watch(activity.update))
        config.check_program(lower(plan))
        plans[f"{network} in {plan.scratchpad_bytes / 1024:,.5g} KiB"] = plan
    first = next(iter(plans.values()))
    return Demo(
        title=f"{len(plans)} checked plans of {first.graph.name} on one kernel; the first has "
        f"{len(first.steps)} steps, {first.totals.transfers_total} transfers; {first.certificate.claim}",
        config=config,
        launches={shown: {PLAN: np.array(plan, object)} for shown, plan in plans.items()},
        conclude=partial(_conclude, plans),
        documents={
            "plan.html": (
                "Plan: addresses over time, steps, certificate",
                lambda results, path: render_plan(first, path),
            ),
            "plan.json": ("Plan as data", lambda results, path: write_text(path, plan_to_json(first))),
        },
    )


def _conclude(plans: Mapping[str, Plan], results: Results) -> Sequence[str]:
    """List promised figures beside counted ones; loading the program is not part of a plan's figures."""
    lines = []
    for name, plan in plans.items():
        totals, report = plan.totals, results[name].report
        cycles = report.cycles
        read = sum(port.useful_read_bytes for port in report.traffic.ports)
        written = sum(port.useful_write_bytes for port in report.traffic.ports)
        image = int(report.details["program_bytes"])
        executed = cycles.cycles_total - cycles.cycles_stall["load"]
        exposed = sum(cycles.cycles_stall[cause] for cause in _EXPOSED)
        error = (totals.predicted_cycles - executed) / executed
        lines += [
            f"{name}:",
            _pair("Bytes read", totals.offchip_read_bytes, "promised", read - image),
            _pair("Bytes written", totals.offchip_write_bytes, "promised", written),
            f"{_pair('Cycles', totals.predicted_cycles, 'predicted', executed)} ({error:+.2%})",
            _pair("Cycles waiting for memory", totals.exposed_cycles, "predicted", exposed),
            f"Cycles loading the program of {image:,} bytes: {cycles.cycles_stall['load']:,}",
        ]
    return lines


def _pair(name: str, planned: int, how: str, counted: int) -> str:
    return f"{name}: {planned:,} {how}, {counted:,} counted in the RTL"
