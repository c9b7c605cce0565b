import json
from dataclasses import replace

import pytest

from hw.scheduler.check.check import check
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.options import BEST, PlanOptions, Techniques
from hw.scheduler.planner.planner import make_plan
from tests.support.planner.orders import wide_problem


def planned(techniques):
    problem = wide_problem(0, 12)
    options = PlanOptions(scratchpad_bytes=max(problem.working_set) * 32, techniques=techniques)
    plan = make_plan(problem.graph, options)
    assert check(json.loads(plan_to_json(plan))) == []
    return plan


@pytest.fixture(scope="module")
def best():
    return planned(BEST)


def test_all_techniques_prove_the_optimum(best):
    assert best.certificate.claim == "optimal"
    assert best.totals.avoidable_bytes > 0
    assert "without" not in best.options


@pytest.mark.parametrize("name", Techniques.names())
def test_a_plan_without_a_technique_is_true_and_no_better(name, best):
    plan = planned(replace(BEST, **{name: False}))
    assert plan.options["without"] == name
    assert plan.totals.avoidable_bytes >= best.totals.avoidable_bytes
    assert plan.certificate.bound_avoidable_bytes <= best.totals.avoidable_bytes
