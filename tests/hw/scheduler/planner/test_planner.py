"""Whole plans of small networks; each goes through the independent checker."""

import json
import os

import pytest

from hw.errors import InputError
from hw.scheduler.check.check import check
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.options import OrderChoice, PlanOptions, When
from hw.scheduler.plan.plan import Mode
from hw.scheduler.planner.planner import make_plan
from tests.support.planner.graphs import random_graph
from tests.support.planner.networks import unet
from tests.support.planner.orders import wide_problem
from tests.support.processes import printed

WHOLE = {"streaming": When.NEVER, "tiling": When.NEVER, "pipelining": When.NEVER}


def planned(graph, scratchpad_bytes, **options):
    """A plan that the checker accepts."""
    plan = make_plan(graph, PlanOptions(scratchpad_bytes=scratchpad_bytes, **options))
    assert check(json.loads(plan_to_json(plan))) == []
    return plan


def wide():
    """A network of one segment that has traffic in every order, and a scratchpad for it."""
    problem = wide_problem(0, 20)
    return problem.graph, max(problem.working_set) * problem.word_bytes


def working_set(graph):
    largest = {tensor.name: tensor.size_bytes for tensor in graph.tensors}
    return max(sum(largest[name] for name in (*each.inputs, *each.outputs)) for each in graph.operators)


@pytest.fixture(scope="module")
def small():
    """A U-Net of one level, of 24 KiB at the top."""
    return unet(side=32, base=8, levels=1)


@pytest.mark.parametrize("seed", range(10))
def test_plans_of_any_graph_are_accepted(seed):
    graph = random_graph(seed, 4 + seed % 5)
    for scratchpad in (sum(tensor.size_bytes for tensor in graph.tensors) + 4096, working_set(graph) + 512):
        plan = planned(graph, scratchpad)
        moved = plan.totals.offchip_read_bytes + plan.totals.offchip_write_bytes
        assert moved == plan.totals.compulsory_bytes + plan.totals.avoidable_bytes
        assert plan.totals.peak_bytes <= scratchpad


@pytest.mark.parametrize("seed", range(4))
def test_a_roomy_scratchpad_moves_nothing_avoidable_and_says_optimal(seed):
    graph = random_graph(seed, 6)
    plan = planned(graph, sum(tensor.size_bytes + 32 for tensor in graph.tensors))
    assert plan.totals.avoidable_bytes == 0
    assert plan.certificate.claim == "optimal"


def test_without_streams_every_operand_lies_whole_in_the_scratchpad():
    graph, scratchpad = wide()
    plan = planned(graph, scratchpad, **WHOLE)
    assert plan.streams == ()
    assert plan.totals.avoidable_bytes > 0
    streamed = planned(graph, scratchpad, **{**WHOLE, "streaming": When.AUTO})
    assert streamed.totals.avoidable_bytes <= plan.totals.avoidable_bytes


def test_a_free_order_is_no_worse_than_the_given_one():
    graph, scratchpad = wide()
    free = planned(graph, scratchpad, **WHOLE)
    given = planned(graph, scratchpad, order=OrderChoice.DEFAULT, **WHOLE)
    least = planned(graph, scratchpad, order=OrderChoice.MIN_PEAK, **WHOLE)
    assert [step.operator for step in given.steps] == [each.name for each in graph.operators]
    assert free.totals.avoidable_bytes < given.totals.avoidable_bytes
    assert free.totals.avoidable_bytes <= least.totals.avoidable_bytes
    assert given.certificate.claim != "optimal"


@pytest.mark.soak
def test_below_the_largest_operator_bands_make_it_fit(small):
    scratchpad = working_set(small) // 4
    plan = planned(small, scratchpad, streaming=When.NEVER)
    assert any(tensor.origin for tensor in plan.graph.tensors)
    assert plan.totals.peak_bytes <= scratchpad
    with pytest.raises(InputError, match="scratchpad"):
        make_plan(small, PlanOptions(scratchpad_bytes=scratchpad, **WHOLE))


def test_neighbours_share_the_array_where_that_saves_bytes(small):
    scratchpad = working_set(small) // 2
    plain = planned(small, scratchpad, pipelining=When.NEVER)
    shared = planned(small, scratchpad)
    assert all(step.mode is Mode.SEQUENTIAL for step in plain.steps)
    assert any(step.mode is Mode.PIPELINED for step in shared.steps)
    assert shared.totals.avoidable_bytes <= plain.totals.avoidable_bytes
    assert shared.fifos


def test_a_time_limit_that_is_met_is_said():
    graph, scratchpad = wide()
    plan = planned(graph, scratchpad, time_limit_s=1e-6, **WHOLE)
    assert any(
        "time limit" in stage.note or "did not answer" in stage.note for stage in plan.certificate.stages
    )


def test_an_impossible_scratchpad_names_what_does_not_fit_and_what_would_do():
    graph, scratchpad = wide()
    with pytest.raises(InputError) as refused:
        make_plan(graph, PlanOptions(scratchpad_bytes=64))
    with pytest.raises(InputError) as whole:
        make_plan(graph, PlanOptions(scratchpad_bytes=scratchpad - 32, **WHOLE))
    for error in (refused, whole):
        assert "scratchpad" in str(error.value)
    assert str(scratchpad) in str(whole.value)


def plans():
    """Return two plans as their documents."""
    graphs = ((wide_problem(0, 16).graph, 500), (unet(side=32, base=8, levels=1), 12000))
    return [plan_to_json(make_plan(graph, PlanOptions(scratchpad_bytes=size))) for graph, size in graphs]


PROGRAM = "from tests.hw.scheduler.planner.test_planner import plans; print(*plans(), sep='', end='')"


@pytest.mark.soak
def test_equal_input_and_seed_give_equal_plans_byte_for_byte_in_any_process():
    """The other tests take their share of the machine: no decision depends on the clock."""
    made = plans()
    assert all('"certificate"' in plan for plan in made)
    other = "77" if os.environ.get("PYTHONHASHSEED") != "77" else "1"
    assert printed(PROGRAM, hash_seed=other) == "".join(made).encode()
