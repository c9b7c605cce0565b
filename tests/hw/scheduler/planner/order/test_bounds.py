import random

import pytest

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph, Operator, Tensor, TensorKind
from hw.scheduler.graph.importers import load_model
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.bounds import lower_bound
from hw.scheduler.planner.order.cuts import reachable
from hw.scheduler.planner.order.exact import bound_units, solve_exact
from hw.scheduler.planner.order.intervals import Relations, interval, members
from hw.scheduler.planner.order.lattice import Lattice
from hw.scheduler.planner.order.moments import Moments, heaviest
from hw.scheduler.planner.residency.residency import keep_nothing, least_capacity
from tests.support.planner.graphs import random_graph
from tests.support.planner.orders import every_order, wide_problem
from tests.support.planner.residency_oracle import least_words


def capacities(problem, streaming):
    """From what the largest operator needs to what all tensors take."""
    least = least_capacity(problem, range(problem.operator_count), streaming="auto" if streaming else "never")
    return range(least, sum(problem.size), max(1, sum(problem.size) // 6))


def optimum(problem, capacity, streaming):
    order = tuple(range(problem.operator_count))
    plan = keep_nothing(problem, order, capacity, streaming="auto" if streaming else "never")
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
    assert bound.words <= min(words for words in found if words is not None)


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
        assert bound.words <= optimum(problem, capacity, streaming)


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
        assert bound.words <= optimum(problem, capacity, streaming)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_every_moment_and_interval_is_a_bound(seed, streaming):
    problem = wide_problem(seed, 4, blocks=3)
    capacity = random.Random(seed).choice(capacities(problem, streaming))
    least = optimum(problem, capacity, streaming)
    lattice = Lattice.of(problem, streaming=streaming)
    room, units = capacity // lattice.unit, least // lattice.unit
    reach = reachable(lattice)
    relations = Relations.of(lattice, reach)
    moments = Moments(lattice, relations, reach, room)
    assert bound_units(interval(lattice, relations, -1, -1), room, node_limit=20_000) == units
    for last in range(problem.operator_count):
        first_part = bound_units(interval(lattice, relations, -1, last), room, node_limit=20_000)
        assert max(moments.paid(last), first_part) <= units
        for states in (1, 10, 10_000):
            assert heaviest(interval(lattice, relations, -1, last), room, states) <= first_part
        if members(relations, last, -1):
            rest = bound_units(interval(lattice, relations, last, -1), room, node_limit=20_000)
            assert max(first_part, moments.paid(last)) + rest <= units
        for later in range(last + 1, problem.operator_count):
            if relations.after[last, later]:
                assert first_part + moments.paid(later, last) <= units


def test_intervals_between_pinches_say_all():
    problem = wide_problem(18, 6, blocks=2)
    capacity = max(problem.working_set)
    lattice = Lattice.of(problem)
    relations = Relations.of(lattice, reachable(lattice))
    pinch = 6
    parts = [interval(lattice, relations, *ends) for ends in ((-1, pinch), (pinch, -1))]
    assert [len(members(relations, *ends)) for ends in ((-1, pinch), (pinch, -1))] == [7, 6]
    found = [bound_units(part, capacity // lattice.unit, node_limit=20_000) for part in parts]
    assert sum(found) * lattice.unit == optimum(problem, capacity, False) > 0


@pytest.mark.parametrize("streaming", [False, True])
def test_random_wires_in_the_least_scratchpad_must_pay(streaming):
    problem = Problem(graph=load_model("rw40"))
    bound = lower_bound(problem, max(problem.working_set), streaming=streaming)
    assert bound.words >= 2 * (888 - 540) * 1024 // 32


def test_moments_of_blocks_add_up():
    bounds, optima = [], []
    for blocks in (1, 2, 3):
        problem = wide_problem(18, 8, blocks=blocks)
        capacity = max(problem.working_set)
        bounds.append(lower_bound(problem, capacity, streaming=False).words)
        optima.append(optimum(problem, capacity, False))
    assert 0 < bounds[0] < bounds[1] < bounds[2]
    assert all(bound <= least for bound, least in zip(bounds, optima, strict=True))


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
    assert lower_bound(problem, 29, streaming=False).words == 0
    for words_out in (2, 4, 6):
        bound = lower_bound(problem, 29 - words_out, streaming=False)
        assert bound.words == words_out * factor == optimum(problem, 29 - words_out, False)


def test_a_known_plan_that_meets_the_bound_ends_the_search():
    problem = wide_problem(18, 8, blocks=3)
    capacity = max(problem.working_set)
    full = lower_bound(problem, capacity, streaming=False)
    assert lower_bound(problem, capacity, streaming=False, upper=full.words).words == full.words
    assert lower_bound(problem, capacity, streaming=False, upper=1).words == 1
    assert lower_bound(problem, sum(problem.size), streaming=True).method == "none"


@pytest.mark.parametrize(("wrong", "field"), [({"effort": 0}, "effort"), ({"upper": -1}, "upper")])
def test_wrong_arguments_are_refused(wrong, field):
    with pytest.raises(InputError, match=field):
        lower_bound(wide_problem(0, 3), 100, streaming=False, **wrong)
