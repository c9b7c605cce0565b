import random

import pytest

from hw.scheduler.graph.fuse import fuse_elementwise
from hw.scheduler.graph.importers import load_model
from hw.scheduler.plan.options import OrderChoice, PlanOptions, When
from hw.scheduler.plan.plan import Mode
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.ordering import find_orders, prove
from hw.scheduler.planner.planner import make_plan
from hw.scheduler.planner.residency.residency import solve_residency
from tests.support.planner.graphs import random_graph
from tests.support.planner.orders import every_order, wide_problem
from tests.support.planner.residency_oracle import least_words

WHOLE = {"tiling": When.NEVER, "pipelining": When.NEVER}


def options(problem, capacity, **more):
    return PlanOptions(scratchpad_bytes=capacity * problem.word_bytes, word_bytes=problem.word_bytes, **more)


@pytest.mark.parametrize("streaming", [When.NEVER, When.AUTO])
@pytest.mark.parametrize("seed", range(10))
def test_the_bound_is_the_optimum_of_all_orders(seed, streaming):
    rng = random.Random(seed)
    problem = Problem(graph=random_graph(seed, 5)) if seed % 2 else wide_problem(seed, 3, blocks=2)
    capacity = rng.randint(max(problem.working_set), sum(problem.size))
    found = find_orders(problem, options(problem, capacity, streaming=streaming))[0]
    words = [
        least_words(problem, order, capacity, streaming=streaming is not When.NEVER)
        for order in every_order(problem)
    ]
    assert found.bound_words == min(words)
    residency = solve_residency(problem, found.order, capacity, streaming=streaming.value)
    assert residency.avoidable_words == found.bound_words
    (stage,) = found.stages
    assert stage.status == "optimal"
    assert stage.objective == stage.bound == found.bound_words * problem.word_bytes


def test_only_what_is_free_is_bounded_over_all_orders():
    problem = wide_problem(18, 6)
    capacity = max(problem.working_set)
    free = find_orders(problem, options(problem, capacity, streaming=When.NEVER))[0]
    assert free.bound_words > 0
    for choice in (OrderChoice.DEFAULT, OrderChoice.MIN_PEAK):
        fixed = find_orders(problem, options(problem, capacity, streaming=When.NEVER, order=choice))[0]
        assert fixed.bound_words == 0


@pytest.mark.parametrize("streaming", [When.NEVER, When.AUTO])
@pytest.mark.parametrize(
    ("network", "kib", "never_kib", "auto_kib"),
    [
        pytest.param("inception", 691, 1696, 1696, marks=pytest.mark.soak),
        pytest.param("inception", 729, 1696, 616, marks=pytest.mark.soak),
        ("gpt2kv", 4096, 2816, 2816),
        ("gpt2kv", 4352, 1280, 1280),
        ("minilm_layer", 384, 48, 48),
        ("shufflenet", 686, 36.75, 36.75),
    ],
)
def test_networks_made_by_hand_are_proven_optimal(network, kib, never_kib, auto_kib, streaming):
    graph = fuse_elementwise(load_model(network))
    plan = make_plan(graph, PlanOptions(scratchpad_bytes=kib * 1024, streaming=streaming, **WHOLE))
    assert plan.certificate.claim == "optimal"
    expected = never_kib if streaming is When.NEVER else auto_kib
    assert plan.totals.avoidable_bytes == plan.certificate.bound_avoidable_bytes == expected * 1024


@pytest.mark.parametrize("streaming", [When.NEVER, When.AUTO])
@pytest.mark.parametrize("seed", range(6))
def test_a_known_plan_is_proven_or_bounded(seed, streaming):
    problem = wide_problem(seed, 3, blocks=2)
    capacity = max(problem.working_set)
    chosen = options(problem, capacity, streaming=streaming)
    least = find_orders(problem, chosen)[0].bound_words
    for known in (least, least + 1, 3 * sum(problem.size)):
        assert prove(problem, chosen, known).bound == least * problem.word_bytes


@pytest.mark.soak
def test_a_plan_of_pipelined_bands_states_a_bound():
    graph = fuse_elementwise(load_model("minilm_layer"))
    plan = make_plan(graph, PlanOptions(scratchpad_bytes=96 * 1024))
    assert any(step.mode is Mode.PIPELINED for step in plan.steps)
    assert 0 < plan.certificate.bound_avoidable_bytes <= plan.totals.avoidable_bytes


def test_streaming_never_costs_a_plan_anything():
    graph = fuse_elementwise(load_model("minilm_layer"))
    least = max(Problem(graph=graph).working_set) * 32
    never, auto = (
        make_plan(graph, PlanOptions(scratchpad_bytes=least, streaming=streaming, **WHOLE))
        for streaming in (When.NEVER, When.AUTO)
    )
    assert auto.totals.avoidable_bytes <= never.totals.avoidable_bytes


@pytest.mark.soak
@pytest.mark.parametrize("streaming", [When.NEVER, When.AUTO])
def test_random_wires_have_an_optimal_plan_between_budgets(streaming):
    graph = load_model("rw40")
    plan = make_plan(graph, PlanOptions(scratchpad_bytes=714 * 1024, streaming=streaming, **WHOLE))
    assert plan.certificate.claim == "optimal"
    assert plan.totals.avoidable_bytes == 348 * 1024
