import random

import pytest

from hw.errors import InputError
from hw.scheduler.plan.options import PlanOptions, When
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.cosma import MAX_OPERATORS, solve_published
from hw.scheduler.planner.order.min_peak import minimum_peak
from hw.scheduler.planner.planner import make_plan
from tests.support.planner.cosma_oracle import least_peak_words, least_placed_words
from tests.support.planner.graphs import pipelined_graph, random_graph
from tests.support.planner.orders import every_order, wide_problem


def small_problem(seed, operators):
    """A network of few words, so that every address can be tried; and a tight capacity for it."""
    rng = random.Random(seed)
    if seed % 2:
        problem = wide_problem(seed, operators)
    else:
        problem = Problem(graph=random_graph(seed, operators, most_bytes=12), word_bytes=4)
    least = max(problem.working_set)
    return problem, rng.randint(least, least + rng.choice((0, 0, 0, 1, 3)))


def check_against_everything(seed, operators):
    problem, capacity = small_problem(seed, operators)
    order, found = solve_published(problem, capacity, nodes=10**9)
    exact = least_placed_words(problem, capacity)
    if exact is None:
        assert found.status == "infeasible"
        return
    assert found.status == "optimal"
    assert (found.objective, found.bound) == (exact, exact)
    assert least_placed_words(problem, capacity, order) == exact


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(20))
def test_equals_trying_every_order_residency_and_address(seed):
    check_against_everything(seed, 4 + seed % 3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 160))
def test_equals_trying_every_order_residency_and_address_of_many_graphs(seed):
    check_against_everything(seed, 3 + seed % 7)


def test_the_random_graphs_are_not_all_trivial():
    """A suite without traffic would show little."""
    optima = [least_placed_words(*small_problem(seed, 4 + seed % 3)) for seed in range(20)]
    assert sum(words is not None and words > 0 for words in optima) >= 5


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(10))
def test_least_peak_equals_trying_every_order(seed):
    problem, _ = small_problem(seed, 6)
    assert minimum_peak(problem).words == least_peak_words(problem, every_order(problem))


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(12))
def test_the_planner_proves_the_same_optimum(seed):
    """Whole operators, no stream: the planner's stages together match COSMA's single program."""
    problem, capacity = small_problem(seed, 5)
    _, published = solve_published(problem, capacity)
    options = PlanOptions(
        scratchpad_bytes=capacity * problem.word_bytes,
        word_bytes=problem.word_bytes,
        streaming=When.NEVER,
        tiling=When.NEVER,
        pipelining=When.NEVER,
    )
    plan = make_plan(problem.graph, options)
    assert published.status == "optimal"
    exact = published.objective * problem.word_bytes
    assert plan.certificate.bound_avoidable_bytes <= exact <= plan.totals.avoidable_bytes
    # Every one of these is so small that the planner must prove it, too.
    assert plan.certificate.claim == "optimal"
    assert plan.totals.avoidable_bytes == exact


def test_a_limit_leaves_a_bound():
    problem, capacity = small_problem(19, 9)
    _, found = solve_published(problem, capacity, nodes=1)
    assert found.status in ("feasible", "unknown")
    assert found.note == "stopped by the limit of 1 nodes"
    assert found.bound <= 13  # by exhaustive search


def test_a_tensor_larger_than_the_scratchpad_has_no_plan():
    problem, _ = small_problem(1, 4)
    assert solve_published(problem, max(problem.size) - 1)[1].status == "infeasible"
    assert solve_published(problem, max(problem.working_set) - 1)[1].status == "infeasible"


def test_large_problems_and_groups_are_refused():
    with pytest.raises(InputError, match=f"operators of the graph must be at most {MAX_OPERATORS}"):
        solve_published(wide_problem(0, MAX_OPERATORS + 1), 10**6)
    with pytest.raises(InputError, match="graph must be without pipelined groups"):
        solve_published(Problem(graph=pipelined_graph()), 10**6)
