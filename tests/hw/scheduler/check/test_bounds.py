"""The checker's lower bounds never exceed the truth: by exhaustive search, or by the cycle model."""

import json
import random

import pytest

from hw.scheduler.check.bounds import bound_bytes, order_bound_bytes
from hw.scheduler.check.cycles import cycle_problems, least_cycles
from hw.scheduler.check.form import Plan
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.residency.residency import least_capacity
from hw.scheduler.program.lower import lower
from hw.scheduler.program.timing.timeline import predict
from tests.hw.scheduler.check.plans import CASES
from tests.support.planner.graphs import random_graph
from tests.support.planner.naive_plan import naive_plan
from tests.support.planner.orders import every_order
from tests.support.planner.planned import plan_of, random_residency
from tests.support.planner.planned import random_graph as graph_of_rows
from tests.support.planner.residency_oracle import least_words


def narrowed(graph, capacity, streaming, order=None):
    """A plan of the graph in plenty of room, said to be for less."""
    plan = naive_plan(graph, 10**6, word_bytes=1, order=order)
    found = Plan.model_validate(json.loads(plan_to_json(plan)))
    found.scratchpad_bytes = capacity
    found.options.streaming = "auto" if streaming else "never"
    return found


@pytest.mark.sample(6)
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_no_bound_is_above_the_optimum(seed, streaming):
    problem = Problem(graph=random_graph(seed, 5, most_bytes=40), word_bytes=1)
    orders = list(every_order(problem))
    low = least_capacity(problem, orders[0], streaming=streaming)
    for capacity in sorted({low, low + (sum(problem.size) // 2 - low) // 3} - set(range(low))):
        least = {order: least_words(problem, order, capacity, streaming=streaming) for order in orders[:12]}
        for order, exact in least.items():
            names = [problem.graph.operators[number].name for number in order]
            plan = narrowed(problem.graph, capacity, streaming, names)
            assert order_bound_bytes(plan) <= exact
            assert bound_bytes(plan) <= min(least.values())
            assert bound_bytes(plan) <= order_bound_bytes(plan)


def test_bounds_are_of_use():
    """Of these, some are the optimum, and together they are a good part of it."""
    bounds, exact = [], []
    for seed in range(20):
        problem = Problem(graph=random_graph(seed, 6, most_bytes=40), word_bytes=1)
        order = tuple(range(problem.operator_count))
        capacity = least_capacity(problem, order, streaming=False)
        exact.append(least_words(problem, order, capacity, streaming=False))
        bounds.append(order_bound_bytes(narrowed(problem.graph, capacity, streaming=False)))
    assert any(bound == most > 0 for bound, most in zip(bounds, exact, strict=True))
    assert sum(bounds) > 0.4 * sum(exact)


def played(plan):
    """Return the predicted cycles of a plan, and the checker's form of it with these."""
    prediction = predict(lower(plan))
    found = Plan.model_validate(json.loads(plan_to_json(plan)))
    found.totals.predicted_cycles = prediction.cycles_total
    found.totals.exposed_cycles = prediction.exposed_cycles
    return prediction.cycles_total, found


@pytest.mark.parametrize("seed", range(30))
def test_no_plan_is_executed_in_fewer_cycles(seed):
    problem = Problem(graph=graph_of_rows(seed, random.Random(seed).randint(2, 14)), word_bytes=8)
    order = range(problem.operator_count)
    cycles, plan = played(plan_of(problem, order, random_residency(problem, order, seed)))
    assert 0.3 * cycles < least_cycles(plan) <= cycles
    assert list(cycle_problems(plan)) == []


def test_a_large_plan_takes_little_more_than_the_least():
    document, _ = CASES["planned"]
    cycles = document["totals"]["predicted_cycles"]
    assert 0.97 * cycles < least_cycles(Plan.model_validate(document)) <= cycles
