"""Large networks: planned within the time limit, and no worse than when they took minutes."""

import json
import time

import pytest

from hw.board import load_board
from hw.scheduler.check.check import check
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan_model import plan_model
from hw.scheduler.planner.watch import Watch
from tests.support.planner.cells import wide_cells


def planned(model, scratchpad, within_s=None):
    """Return a valid plan, and the processor seconds of planning."""
    began = time.process_time()
    plan = plan_model(model, scratchpad, watch=Watch(within_s=within_s))
    seconds = time.process_time() - began
    assert check(json.loads(plan_to_json(plan))) == []
    return plan, seconds


def test_a_wide_network_has_a_plan_within_any_time():
    graph = wide_cells(0, 300)
    plan, seconds = planned(graph, "0.5M_R", within_s=1)
    assert plan.certificate.stages[-1].status == "stopped"
    assert seconds < 30
    assert len(plan.steps) >= len(graph.operators)


def test_bands_that_are_estimated_to_be_slower_are_left_out():
    told = []
    plan = plan_model("minilm_layer", "0.25M_R", board=load_board("u55c"), watch=Watch(told.append))
    stages = {text.split(",")[0] for text in told if text.startswith("stage")}
    assert stages == {f"stage {number} of 4" for number in (1, 2, 4)}
    assert plan.totals.predicted_cycles <= 74_695


@pytest.mark.soak
@pytest.mark.parametrize(
    ("operators", "most_seconds", "most_bytes"), [(1000, 60, 20_797_952), (3000, 180, 48_244_224)]
)
def test_wide_cells(operators, most_seconds, most_bytes):
    plan, seconds = planned(wide_cells(0, operators), "0.25M_R")
    assert seconds < most_seconds
    assert plan.totals.avoidable_bytes <= most_bytes
    assert all(stage.status != "stopped" for stage in plan.certificate.stages)


@pytest.mark.soak
def test_resnet50_moves_no_more_than_when_it_took_minutes():
    plan, seconds = planned("resnet50", "512KiB")
    assert seconds < 70
    assert plan.totals.avoidable_bytes <= 5_573_120
