import numpy as np
import pytest

from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.search import windows as order_windows
from hw.scheduler.planner.order.search.runs import Runs
from hw.scheduler.planner.order.search.tables import scratch_for, tables_of
from hw.scheduler.planner.order.search.windows import TARGET, describe, improve, windows
from hw.scheduler.planner.residency.stays import steps_of
from hw.scheduler.planner.solvers import SolverError
from hw.scheduler.planner.solvers.cpsat import Worker
from tests.support.planner.graphs import random_graph
from tests.support.planner.orders import every_order, wide_problem
from tests.support.planner.residency_oracle import least_words


@pytest.fixture(scope="module")
def worker():
    with Worker() as process:
        yield process


def runs_of(problem, capacity, *, streaming=False, start=None):
    tables = tables_of(problem, streaming=streaming)
    starts = [start or tuple(range(problem.operator_count))]
    return Runs(tables=tables, work=scratch_for(tables), capacity=capacity // tables.unit, starts=starts)


def ask(worker, runs, problem, window, **changed):
    payload = describe(runs, runs.best[1], window)
    payload |= {
        "source": [int(writer < 0) for writer in problem.producer],
        "refetches": 3,
        "work": 5.0,
        "seconds": 60.0,
        "seed": 0,
        **changed,
    }
    return worker.call(TARGET, payload, seconds=120)


def worst(problem, capacity, streaming):
    """The order with the most traffic, and the least words of any order."""
    cost = {
        order: least_words(problem, order, capacity, streaming=streaming) for order in every_order(problem)
    }
    return max(cost, key=lambda order: cost[order]), min(cost.values())


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_a_window_over_everything_finds_the_best_order(seed, streaming, worker):
    problem = wide_problem(seed, 6) if seed % 2 else Problem(graph=random_graph(seed, 5))
    capacity = max(problem.working_set)
    start, least = worst(problem, capacity, streaming)
    runs = runs_of(problem, capacity, streaming=streaming, start=start)
    answer = ask(worker, runs, problem, (0, problem.operator_count))
    assert answer["status"] == "optimal"
    assert not answer["timed"]
    assert least_words(problem, answer["order"], capacity, streaming=streaming) == least


@pytest.mark.parametrize("seed", range(4))
def test_only_the_window_moves(seed, worker):
    problem = wide_problem(seed, 14)
    runs = runs_of(problem, max(problem.working_set) + 2)
    answer = ask(worker, runs, problem, (4, 10))
    order = list(range(14))
    assert answer["order"][:4] == order[:4]
    assert answer["order"][10:] == order[10:]
    assert sorted(answer["order"]) == order
    steps_of(problem, answer["order"])
    assert answer["status"] in ("optimal", "feasible")


@pytest.mark.parametrize("seed", range(3))
def test_windows_never_make_an_order_worse(seed, worker, monkeypatch):
    monkeypatch.setattr(order_windows, "WORK", 0.15)
    problem = wide_problem(seed, 30)
    runs = runs_of(problem, max(problem.working_set) + 2)
    before = runs.best[0]
    assert before > 0
    assert improve(runs, problem, effort=1, seconds=60.0, worker=worker) == ""
    after, order = runs.best
    assert after < before
    steps_of(problem, order)
    # The words are those of a residency of that order.
    again = runs_of(problem, max(problem.working_set) + 2, start=order)
    assert again.best[0] == after


def test_a_limit_of_work_is_no_limit_of_time(worker):
    problem = wide_problem(9, 40)
    runs = runs_of(problem, max(problem.working_set) + 2)
    answers = [ask(worker, runs, problem, (0, 24), work=0.1) for _ in range(2)]
    assert answers[0] == answers[1]
    assert answers[0]["status"] == "feasible"


def test_a_description_that_makes_no_sense_is_an_error(worker):
    problem = wide_problem(1, 6)
    runs = runs_of(problem, max(problem.working_set))
    with pytest.raises(SolverError, match="KeyError"):
        worker.call(TARGET, describe(runs, runs.best[1], (0, 6)), seconds=60)


@pytest.mark.parametrize(("count", "length"), [(1, 24), (24, 24), (25, 24), (100, 24), (7, 2), (5, 1)])
def test_windows_cover_all_steps(count, length):
    found = list(windows(count, length))
    assert set(np.concatenate([np.arange(*window) for window in found])) == set(range(count))
    assert all(end - first == min(length, count) for first, end in found)
    assert len(set(found)) == len(found)
