"""The scheduler engine's demo: a real layer planned, checked, and executed byte by byte as promised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from hw.board import Board
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.plan import Plan
from hw.scheduler.plan_model import plan_model
from hw.scheduler.program.lower import configure
from sim.host.files import write_text
from sim.host.progress import Activity
from sim.plans.page import render_plan
from sim.run.adapter import Demo, Document, Tensor

if TYPE_CHECKING:
    from sim.report.report import Report

#: A quarter of what the layer's largest operator works on: tensors must come and go.
_NETWORK, _SCRATCHPAD = "minilm_layer", "0.25M_R"
#: Counters of cycles in which only transfers were waited for.
_EXPOSED = ("write", "read", "ring", "drain")


def scheduler_demo(board: Board) -> Demo:
    """Plan a layer of all-MiniLM-L6-v2 for the board; the launch must move what the plan promises."""
    with Activity(f"Planning {_NETWORK}") as activity:
        plan = plan_model(_NETWORK, _SCRATCHPAD, board=board, progress=activity.update)
    shown = f"{_NETWORK} in {plan.scratchpad_bytes / 1024:,.5g} KiB"
    return Demo(
        title=f"{shown}, {len(plan.steps)} steps, {plan.totals.transfers_total} transfers, "
        f"checked; {plan.certificate.claim}",
        config=configure(plan, board),
        launches={shown: {}},
        conclude=partial(_conclude, plan),
        documents=(
            Document(
                name="plan.html",
                title="Plan: addresses over time, steps, certificate",
                write=partial(render_plan, plan),
            ),
            Document(name="plan.json", title="Plan as data", write=partial(_write, plan)),
        ),
    )


def _write(plan: Plan, path: Path) -> None:
    write_text(path, plan_to_json(plan))


def _conclude(
    plan: Plan, results: Mapping[str, Mapping[str, Tensor]], reports: Mapping[str, Report]
) -> Sequence[str]:
    """Set what was promised beside what was counted."""
    (report,) = reports.values()
    totals, cycles = plan.totals, report.cycles
    read = sum(port.useful_read_bytes for port in report.traffic.ports)
    written = sum(port.useful_write_bytes for port in report.traffic.ports)
    exposed = sum(cycles.cycles_stall[cause] for cause in _EXPOSED)
    error = (totals.predicted_cycles - cycles.cycles_total) / cycles.cycles_total
    return [
        _pair("Bytes read", totals.offchip_read_bytes, "promised", read),
        _pair("Bytes written", totals.offchip_write_bytes, "promised", written),
        f"{_pair('Cycles', totals.predicted_cycles, 'predicted', cycles.cycles_total)} ({error:+.2%})",
        _pair("Cycles waiting for memory", totals.exposed_cycles, "predicted", exposed),
    ]


def _pair(name: str, planned: int, how: str, counted: int) -> str:
    return f"{name}: {planned:,} {how}, {counted:,} counted in the RTL"
