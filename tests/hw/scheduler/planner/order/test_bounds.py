import random

import pytest

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph, Operator, Tensor, TensorKind
from hw.scheduler.graph.importers import load_model
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.bounds import lower_bound
from hw.scheduler.planner.order.exact import solve_exact
from hw.scheduler.planner.residency.residency import keep_nothing, least_capacity
from tests.support.planner.graphs import random_graph
from tests.support.planner.orders import every_order, wide_problem
from tests.support.planner.residency_oracle import least_words


def capacities(problem, streaming):
    """From what the largest operator needs to what all tensors take."""
    least = least_capacity(problem, range(problem.operator_count), streaming=streaming)
    return range(least, sum(problem.size), max(1, sum(problem.size) // 6))


def optimum(problem, capacity, streaming):
    order = tuple(range(problem.operator_count))
    plan = keep_nothing(problem, order, capacity, streaming=streaming)
    found = solve_exact(problem, capacity, streaming=streaming, upper=plan.avoidable_words, order_hint=order)
    assert found.proven
    return found.avoidable_words


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_no_order_and_residency_is_below_the_bound(seed, streaming):
    rng = random.Random(seed)
    problem = Problem(graph=random_graph(seed, 3 + seed % 4))
    capacity = rng.choice(capacities(problem, streaming))
    bound = lower_bound(problem, capacity, streaming=streaming)
    found = [least_words(problem, order, capacity, streaming=streaming) for order in every_order(problem)]
    assert bound <= min(words for words in found if words is not None)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(30))
def test_the_bound_is_below_the_exact_optimum(seed, streaming):
    problem = (
        wide_problem(seed, 5, blocks=2)
        if seed % 3
        else Problem(graph=random_graph(seed, 8), word_bytes=(1, 16, 32)[seed % 3])
    )
    for capacity in capacities(problem, streaming):
        bound = lower_bound(problem, capacity, streaming=streaming)
        assert bound <= optimum(problem, capacity, streaming)


@pytest.mark.soak
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(2000, 2200))
def test_the_bound_is_below_the_exact_optimum_of_many_graphs(seed, streaming):
    rng = random.Random(seed)
    problem = (
        wide_problem(seed, rng.randint(4, 7), fan=rng.randint(1, 3), blocks=rng.randint(1, 3))
        if seed % 3
        else Problem(graph=random_graph(seed, rng.randint(5, 12)), word_bytes=rng.choice((1, 16, 32)))
    )
    for capacity in capacities(problem, streaming):
        bound = lower_bound(problem, capacity, streaming=streaming)
        assert bound <= optimum(problem, capacity, streaming)


@pytest.mark.parametrize("seed", range(8))
def test_fewer_states_give_a_lower_bound(seed):
    problem = wide_problem(seed, 4, blocks=3)
    capacity = max(problem.working_set)
    few, some, many = (
        lower_bound(problem, capacity, streaming=False, states=states) for states in (1, 10, 10_000)
    )
    assert few <= some <= many <= optimum(problem, capacity, False)


@pytest.mark.parametrize("streaming", [False, True])
def test_random_wires_in_the_least_scratchpad_must_pay(streaming):
    problem = Problem(graph=load_model("rw40"))
    bound = lower_bound(problem, max(problem.working_set), streaming=streaming)
    assert bound >= 2 * (888 - 540) * 1024 // 32


def branches(kind):
    """Four results of one operator, three of them of a kind, that wait while a large one comes and goes."""
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
    return Problem(graph=Graph(name="branches", tensors=tensors, operators=made))


@pytest.mark.parametrize(("kind", "factor"), [(TensorKind.ACTIVATION, 2), (TensorKind.OUTPUT, 1)])
def test_what_is_forced_out_costs_its_write_unless_that_is_compulsory(kind, factor):
    # While f becomes h, 29 words are alive.
    problem = branches(kind)
    assert lower_bound(problem, 29, streaming=False) == 0
    for words_out in (2, 4, 6):
        bound = lower_bound(problem, 29 - words_out, streaming=False)
        assert bound == words_out * factor == optimum(problem, 29 - words_out, False)


def test_a_scratchpad_for_everything_forces_nothing():
    problem = wide_problem(18, 8, blocks=3)
    assert lower_bound(problem, sum(problem.size), streaming=True) == 0


def test_a_wrong_effort_is_refused():
    with pytest.raises(InputError, match="effort"):
        lower_bound(wide_problem(0, 3), 100, streaming=False, effort=0)
