import itertools
from dataclasses import replace

import pytest

from hw.scheduler.graph.graph import Graph, Operator, Tensor, TensorKind
from hw.scheduler.plan.options import BEST
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.min_peak import minimum_peak, peak_of
from tests.support.planner.graphs import random_graph
from tests.support.planner.orders import every_order, wide_problem

UNANNEALED = replace(BEST, least_peak_annealing=False)


@pytest.mark.parametrize("seed", range(24))
def test_the_least_peak_of_all_orders_is_found_and_proven(seed):
    problem = Problem(graph=random_graph(seed, 3 + seed % 6))
    found = minimum_peak(problem)
    assert found.words == min(peak_of(problem, order) for order in every_order(problem))
    assert found.bound_words == found.words == peak_of(problem, found.order)


def test_more_than_a_word_of_operators():
    # Forty independent pairs: each small result is freed before the next pair starts, in the best order.
    operators, tensors = [], []
    for number in range(40):
        a, b, c = f"a{number}", f"b{number}", f"c{number}"
        tensors += [
            Tensor(name=a, size_bytes=320, kind=TensorKind.INPUT),
            Tensor(name=b, size_bytes=960, kind=TensorKind.ACTIVATION),
            Tensor(name=c, size_bytes=32, kind=TensorKind.ACTIVATION),
        ]
        operators.append(Operator(name=f"p{number}", kind="x", inputs=(a,), outputs=(b,)))
        operators.append(Operator(name=f"q{number}", kind="x", inputs=(b,), outputs=(c,)))
    operators.append(
        Operator(name="r", kind="x", inputs=tuple(f"c{number}" for number in range(40)), outputs=("y",))
    )
    tensors.append(Tensor(name="y", size_bytes=32, kind=TensorKind.OUTPUT))
    problem = Problem(graph=Graph(name="pairs", tensors=tuple(tensors), operators=tuple(operators)))
    found = minimum_peak(problem, state_limit=1000, techniques=UNANNEALED)
    # The last pair runs beside 39 results; its first operator reads 10 words and writes 30.
    assert found.words == peak_of(problem, found.order) == 39 + 40
    assert 41 <= found.bound_words <= found.words


def test_a_limit_leaves_a_bound_and_an_order():
    problem = wide_problem(3, 24)
    proven = minimum_peak(problem)
    assert proven.words == proven.bound_words
    short = minimum_peak(problem, state_limit=5)
    assert short.bound_words <= proven.words <= short.words == peak_of(problem, short.order)
    assert sorted(short.order) == list(range(24))


@pytest.mark.parametrize("seed", range(6))
def test_a_peak_that_is_enough_is_found_where_there_is_one(seed):
    problem = wide_problem(seed, 9)
    least = minimum_peak(problem).words
    for enough in range(least - 3, least + 5):
        found = minimum_peak(problem, enough=enough)
        assert (found.words <= enough) == (least <= enough)
        assert found.bound_words <= least <= found.words == peak_of(problem, found.order)


def test_the_same_seed_gives_the_same_order():
    problem = wide_problem(5, 24, fan=3)
    again = [minimum_peak(problem, seed=seed, state_limit=30) for seed in (1, 1, 2)]
    assert again[0] == again[1]
    assert all(found.bound_words <= found.words == peak_of(problem, found.order) for found in again)


def test_fifo_words_count():
    a, b = (
        Tensor(name="a", size_bytes=32, kind=TensorKind.INPUT),
        Tensor(name="b", size_bytes=32, kind=TensorKind.OUTPUT),
    )
    operator = Operator(name="o", kind="x", inputs=("a",), outputs=("b",), fifo_bytes=96)
    found = minimum_peak(Problem(graph=Graph(name="g", tensors=(a, b), operators=(operator,))))
    assert (found.words, found.bound_words) == (5, 5)


def test_exhaustive_orders_are_topological_and_distinct():
    problem = wide_problem(1, 5)
    listed = list(every_order(problem))
    legal = [
        order
        for order in itertools.permutations(range(5))
        if all(problem.predecessors[o] & ~sum(1 << p for p in order[:k]) == 0 for k, o in enumerate(order))
    ]
    assert sorted(listed) == sorted(legal)
