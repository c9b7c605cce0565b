import random

import pytest

from hw.errors import InputError
from hw.scheduler.plan.options import PlanOptions, When
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.address.blocks import Block
from hw.scheduler.planner.order.cosma import MAX_OPERATORS, minimum_peak_literal, solve_literal
from hw.scheduler.planner.order.min_peak import minimum_peak
from hw.scheduler.planner.planner import make_plan
from hw.scheduler.planner.residency.stays import measure
from hw.scheduler.planner.solvers import SolverError, milp
from tests.support.planner.cosma_oracle import least_peak_words, least_placed_words
from tests.support.planner.graphs import pipelined_graph, random_graph
from tests.support.planner.orders import every_order, wide_problem
from tests.support.planner.packing_oracle import lie_apart


def small_problem(seed, operators):
    """A network of few words, so that every address can be tried; and a tight capacity for it."""
    rng = random.Random(seed)
    if seed % 2:
        problem = wide_problem(seed, operators)
    else:
        problem = Problem(graph=random_graph(seed, operators, most_bytes=12), word_bytes=4)
    least = max(problem.working_set)
    return problem, rng.randint(least, least + rng.choice((0, 0, 0, 1, 3)))


def check_against_everything(seed, operators, order=None):
    problem, capacity = small_problem(seed, operators)
    found = solve_literal(problem, capacity, order=order, limits=milp.Limits(nodes=10**9))
    exact = least_placed_words(problem, capacity, order)
    if exact is None:
        assert found.status == "infeasible"
        return None
    assert found.status == "optimal"
    assert (found.avoidable_words, found.bound_words) == (exact, exact)
    assert order is None or found.order == tuple(order)
    assert measure(problem, found.order, found.stays, ()).avoidable_words == exact
    blocks = [Block(first=s.first_step, last=s.last_step, size=problem.size[s.tensor]) for s in found.stays]
    assert lie_apart(blocks, found.addresses, capacity)
    assert found.peak_words <= capacity
    return exact


@pytest.mark.parametrize("seed", range(30))
def test_equals_trying_every_order_residency_and_address(seed):
    check_against_everything(seed, 4 + seed % 3)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 300))
def test_equals_trying_every_order_residency_and_address_of_many_graphs(seed):
    check_against_everything(seed, 3 + seed % 7)


@pytest.mark.parametrize("seed", range(8))
def test_a_fixed_schedule_equals_trying_every_residency_and_address(seed):
    problem, _ = small_problem(seed, 6)
    orders = list(every_order(problem))
    check_against_everything(seed, 6, random.Random(seed).choice(orders))


def test_the_random_graphs_are_not_all_trivial():
    """Most of a suite in which nothing ever moves would show nothing."""
    optima = [least_placed_words(*small_problem(seed, 4 + seed % 3)) for seed in range(30)]
    assert sum(words is not None and words > 0 for words in optima) >= 8


@pytest.mark.parametrize("seed", range(10))
def test_least_peak_equals_trying_every_order(seed):
    problem, _ = small_problem(seed, 6)
    exact = least_peak_words(problem, every_order(problem))
    found = minimum_peak_literal(problem)
    assert found.status == "optimal"
    assert (found.peak_words, found.peak_bound_words, found.avoidable_words) == (exact, exact, 0)
    assert least_peak_words(problem, [found.order]) == exact
    assert minimum_peak(problem, seed=0).peak_words == exact


@pytest.mark.parametrize("seed", range(12))
def test_the_planner_proves_the_same_optimum(seed):
    """Whole operators, no stream: the planner's stages together decide what COSMA's one program does."""
    problem, capacity = small_problem(seed, 5)
    literal = solve_literal(problem, capacity)
    options = PlanOptions(
        scratchpad_bytes=capacity * problem.word_bytes,
        word_bytes=problem.word_bytes,
        streaming=When.NEVER,
        tiling=When.NEVER,
        pipelining=When.NEVER,
    )
    plan = make_plan(problem.graph, options)
    assert literal.status == "optimal"
    exact = literal.avoidable_words * problem.word_bytes
    assert plan.certificate.bound_avoidable_bytes <= exact <= plan.totals.avoidable_bytes
    # Every one of these is so small that the planner must prove it, too.
    assert plan.certificate.claim == "optimal"
    assert plan.totals.avoidable_bytes == exact


def test_both_solvers_agree():
    problem, capacity = small_problem(1, 6)
    highs = solve_literal(problem, capacity, solvers=("highs",))
    cbc = solve_literal(problem, capacity, solvers=("cbc",))
    assert highs.avoidable_words == cbc.avoidable_words > 0
    assert highs.solver.startswith("HiGHS")
    assert cbc.solver.startswith("CBC")


def test_a_limit_leaves_a_bound():
    problem, capacity = small_problem(19, 9)
    found = solve_literal(problem, capacity, limits=milp.Limits(nodes=1))
    assert found.status in ("feasible", "unknown")
    assert found.note == "stopped by the limit of 1 nodes"
    assert found.bound_words <= 13  # what trying everything gives


def test_a_tensor_larger_than_the_scratchpad_has_no_plan():
    problem, _ = small_problem(1, 4)
    assert solve_literal(problem, max(problem.size) - 1).status == "infeasible"
    assert solve_literal(problem, max(problem.working_set) - 1).status == "infeasible"


def test_large_problems_and_groups_are_refused():
    with pytest.raises(InputError, match=f"operators of the graph must be at most {MAX_OPERATORS}"):
        solve_literal(wide_problem(0, MAX_OPERATORS + 1), 10**6)
    with pytest.raises(InputError, match="graph must be without pipelined groups"):
        solve_literal(Problem(graph=pipelined_graph()), 10**6)
    with pytest.raises(InputError, match="order must be after the operators"):
        solve_literal(wide_problem(0, 3), 10**6, order=(2, 1, 0))
    with pytest.raises(SolverError, match="no integer programming solver answered"):
        solve_literal(wide_problem(0, 3), 10**6, solvers=())
