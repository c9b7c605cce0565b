import random

import pytest

from hw.scheduler.graph.graph import Graph, Operator, Tensor, TensorKind
from hw.scheduler.graph.importers import load_model
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.exact import solve_exact
from hw.scheduler.planner.residency.residency import keep_nothing, least_capacity, solve_residency
from tests.support.planner.graphs import random_graph
from tests.support.planner.orders import every_order, wide_problem
from tests.support.planner.residency_oracle import least_words


def least_of_all(problem, capacity, streaming):
    """Fewest avoidable words over every order and every residency, by trying all of them."""
    found = [least_words(problem, order, capacity, streaming=streaming) for order in every_order(problem)]
    return min(words for words in found if words is not None)


def tight(problem, rng, streaming):
    """A capacity between the needs of one operator and of all tensors."""
    least = least_capacity(problem, range(problem.operator_count), streaming=streaming)
    return rng.randint(least, max(least, sum(problem.size) * 3 // 4))


def known(problem, capacity, streaming):
    order = tuple(range(problem.operator_count))
    plan = keep_nothing(problem, order, capacity, streaming=streaming)
    return {"upper": plan.avoidable_words, "order_hint": order}


@pytest.mark.sample(5)
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(16))
def test_nothing_is_better_among_all_orders_and_residencies(seed, streaming):
    rng = random.Random(seed)
    problem = Problem(graph=random_graph(seed, 3 + seed % 4), word_bytes=32)
    capacity = tight(problem, rng, streaming)
    found = solve_exact(problem, capacity, streaming=streaming, **known(problem, capacity, streaming))
    assert found.proven
    assert found.words == found.bound_words == least_of_all(problem, capacity, streaming)


@pytest.mark.soak
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_nothing_is_better_among_all_orders_and_residencies_of_many_graphs(seed, streaming):
    rng = random.Random(seed)
    if seed % 2:
        problem = wide_problem(seed, 5 + seed % 3)
    else:
        problem = Problem(graph=random_graph(seed, 3 + seed % 6), word_bytes=rng.choice((1, 16, 64)))
    capacity = tight(problem, rng, streaming)
    found = solve_exact(problem, capacity, streaming=streaming, **known(problem, capacity, streaming))
    assert found.proven
    assert found.words == least_of_all(problem, capacity, streaming)
    residency = solve_residency(problem, found.order, capacity, streaming=streaming, minimise=("bytes",))
    assert residency.avoidable_words == found.words


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_the_order_costs_what_it_is_said_to_cost(seed, streaming):
    problem = wide_problem(seed, 12)
    capacity = tight(problem, random.Random(seed), streaming)
    found = solve_exact(problem, capacity, streaming=streaming, **known(problem, capacity, streaming))
    assert found.proven
    assert (
        solve_residency(
            problem, found.order, capacity, streaming=streaming, minimise=("bytes",)
        ).avoidable_words
        == found.words
    )


def test_a_limit_leaves_a_bound_and_the_hint():
    problem = Problem(graph=load_model("rw40"))
    capacity = max(problem.working_set)
    given = known(problem, capacity, False)
    short = solve_exact(problem, capacity, streaming=False, node_limit=5000, **given)
    assert not short.proven
    assert (short.order, short.words) == (given["order_hint"], given["upper"])
    # 888 KiB are live at some moment of every order, and 540 fit; the rest is written and read.
    assert short.bound_words == 2 * (888 - 540) * 1024 // 32
    shorter = solve_exact(problem, capacity, streaming=False, node_limit=1, **given)
    assert (shorter.proven, shorter.bound_words) == (False, short.bound_words)
    known_words = short.bound_words + 64
    told = solve_exact(problem, capacity, streaming=False, node_limit=1, lower=known_words, **given)
    assert (told.proven, told.bound_words) == (False, known_words)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_the_bound_before_any_search_is_below_the_optimum(seed, streaming):
    problem = wide_problem(seed, 5, blocks=2) if seed % 3 else Problem(graph=random_graph(seed, 8))
    for share in (2, 3, 4):
        least = least_capacity(problem, range(problem.operator_count), streaming=streaming)
        capacity = max(least, sum(problem.size) // share)
        given = known(problem, capacity, streaming)
        bound, optimum = (
            solve_exact(problem, capacity, streaming=streaming, node_limit=n, **given).bound_words
            for n in (1, 100_000)
        )
        assert bound <= optimum


@pytest.mark.parametrize(("kind", "factor"), [(TensorKind.ACTIVATION, 2), (TensorKind.OUTPUT, 1)])
def test_what_is_forced_out_costs_its_write_unless_that_is_compulsory(kind, factor):
    """Four results of one operator, three of them of a kind, wait while a large one comes and goes."""
    operators = [("a", "bcde"), ("b", "f"), ("f", "h"), ("bcdeh", "g")]
    size = dict.fromkeys("bcde", 2) | {"a": 1, "f": 20, "g": 1, "h": 1}
    kinds = {"a": TensorKind.INPUT, "g": TensorKind.OUTPUT} | dict.fromkeys("cde", kind)
    tensors = tuple(
        Tensor(name=name, size_bytes=32 * units, kind=kinds.get(name, TensorKind.ACTIVATION))
        for name, units in size.items()
    )
    made = tuple(
        Operator(name=outputs, kind="x", inputs=tuple(inputs), outputs=tuple(outputs))
        for inputs, outputs in operators
    )
    problem = Problem(graph=Graph(name="branches", tensors=tensors, operators=made))
    # While f becomes h, 29 words are alive.
    for out in (0, 2, 4, 6):
        given = known(problem, 29 - out, False)
        for nodes in (1, 10_000):
            found = solve_exact(problem, 29 - out, streaming=False, node_limit=nodes, **given)
            assert found.bound_words == out * factor


def test_more_states_find_the_best_plan():
    problem = wide_problem(3, 18)
    capacity = max(problem.working_set)
    given = known(problem, capacity, False)
    few, many = (
        solve_exact(problem, capacity, streaming=False, node_limit=n, **given) for n in (300, 10_000)
    )
    assert (few.proven, many.proven) == (False, True)
    assert few.bound_words <= many.words < few.words


def test_a_known_optimum_is_confirmed():
    problem = wide_problem(2, 12)
    capacity = max(problem.working_set)
    best = solve_exact(problem, capacity, streaming=False, **known(problem, capacity, False))
    again = solve_exact(problem, capacity, streaming=False, upper=best.words, order_hint=best.order)
    assert again == best


def test_the_same_twice():
    problem = wide_problem(4, 14)
    capacity = max(problem.working_set)
    given = known(problem, capacity, True)
    assert solve_exact(problem, capacity, streaming=True, **given) == solve_exact(
        problem, capacity, streaming=True, **given
    )
