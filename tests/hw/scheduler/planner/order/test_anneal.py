import random
from functools import partial

import numpy as np
import pytest

from hw.scheduler.graph.fuse import fuse_elementwise
from hw.scheduler.graph.importers import load_model
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.anneal import improve, shift
from hw.scheduler.planner.order.evaluate import IMPOSSIBLE, Scratch, evaluate
from hw.scheduler.planner.order.lattice import Lattice
from hw.scheduler.planner.order.min_peak import minimum_peak
from hw.scheduler.planner.residency.residency import least_capacity, solve_residency
from tests.support.planner.graphs import random_graph
from tests.support.planner.orders import every_order, wide_problem
from tests.support.planner.residency_oracle import least_words
from tests.support.processes import printed


def annealed(problem, capacity, *, streaming=False, starts=(), seed=0, runs=(8, 4)):
    """Words and order of the best order found."""
    lattice = Lattice.of(problem, streaming=streaming)
    starts = [tuple(range(problem.operator_count)), *starts]
    rounds, patience = runs
    units, order = improve(lattice, capacity // lattice.unit, starts, seed, rounds=rounds, patience=patience)
    return units * lattice.unit, order


def tight(problem, seed, way):
    """A capacity between the needs of one operator and of all tensors."""
    least = least_capacity(problem, range(problem.operator_count), streaming=way)
    return random.Random(seed).randint(least, max(least, sum(problem.size) // 2))


@pytest.mark.sample(3)
@pytest.mark.parametrize("way", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_an_order_is_found_that_the_exact_residency_makes_the_best_of_all(seed, way):
    problem = Problem(graph=random_graph(seed, 3 + seed % 4))
    capacity = tight(problem, seed, way)
    words, order = annealed(problem, capacity, streaming=way, seed=seed)
    orders = list(every_order(problem))
    assert order in orders
    best = min(least_words(problem, each, capacity, streaming=way) for each in orders)
    assert best <= least_words(problem, order, capacity, streaming=way) <= words
    assert words == best


@pytest.mark.parametrize("way", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_the_quick_evaluation_never_promises_too_much(seed, way):
    """It counts a residency's traffic, so no exact residency is worse."""
    problem = Problem(graph=random_graph(seed, 5)) if seed % 2 else wide_problem(seed, 6)
    lattice = Lattice.of(problem, streaming=way)
    work = Scratch.of(lattice)
    for order in list(every_order(problem))[:6]:
        for capacity in (max(problem.working_set) // 2, tight(problem, seed, way)):
            units = int(evaluate(np.array(order), capacity // lattice.unit, lattice, work))
            exact = least_words(problem, order, capacity, streaming=way)
            assert (units >= IMPOSSIBLE) == (exact is None)
            if exact is not None:
                assert units * lattice.unit >= exact
                assert work.used[:-1].max() * lattice.unit <= capacity


def test_the_move_reaches_every_order():
    problem = wide_problem(3, 6)
    lattice = Lattice.of(problem)
    orders = set(every_order(problem))
    reached, waiting = {tuple(range(6))}, [tuple(range(6))]
    while waiting:
        order = waiting.pop()
        for source in range(6):
            for target in range(6):
                moved = np.array(order)
                if source != target:
                    shift(moved, source, target, lattice)
                if tuple(moved.tolist()) not in reached:
                    reached.add(tuple(moved.tolist()))
                    waiting.append(tuple(moved.tolist()))
    assert reached == orders


def test_starts_are_not_made_worse():
    problem = wide_problem(5, 20)
    capacity = max(problem.working_set)
    words, order = annealed(problem, capacity, seed=1)
    assert annealed(problem, capacity, starts=[order], seed=2)[0] <= words
    exact = solve_residency(problem, order, capacity, streaming=False, minimise=("bytes",))
    assert 0 < exact.avoidable_words <= words < annealed(problem, capacity, runs=(0, 0))[0]


def test_a_goal_that_is_reached_ends_the_search():
    lattice = Lattice.of(wide_problem(5, 20))
    given = tuple(range(20))
    search = partial(improve, lattice, int(lattice.whole.max()), [given], 0, rounds=24, patience=12)
    assert search(goal=10**6)[1] == given
    assert search()[0] < search(goal=10**6)[0]


PROGRAM = """
from tests.hw.scheduler.planner.order.test_anneal import annealed
from tests.support.planner.orders import wide_problem
problem = wide_problem(11, 18)
print(annealed(problem, max(problem.working_set) + 3, seed=4))
"""


@pytest.mark.soak  # whole plans are compared in test_planner
def test_equal_arguments_give_equal_orders_in_any_process():
    said = [printed(PROGRAM, hash_seed=seed) for seed in ("1", "77")]
    assert said[0] == said[1]
    assert not said[0].startswith(b"(0,")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "kib", "most_kib"),
    [("rw40", 898, 0), ("rw40", 540, 963), ("rw80", 1463, 784)],
)
def test_wide_networks_move_little(name, kib, most_kib):
    problem = Problem(graph=fuse_elementwise(load_model(name)))
    words = 1024 // problem.word_bytes
    starts = [minimum_peak(problem).order]
    moved, order = annealed(problem, kib * words, starts=starts, runs=(24, 12))
    exact = solve_residency(problem, order, kib * words, streaming=False, minimise=("bytes",))
    assert exact.avoidable_words <= moved
    assert exact.avoidable_words <= most_kib * words
