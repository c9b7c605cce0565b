import os
import subprocess
import sys

import pulp
import pytest

from hw.scheduler.graph.importers import load_model
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.residency.residency import keep_nothing, least_capacity, solve_residency
from hw.scheduler.planner.residency.stays import measure
from hw.scheduler.planner.solvers import SolverError, milp
from tests.support.planner.graphs import pipelined_graph, random_graph
from tests.support.planner.residency_oracle import least_words

KIB = 1024 // 32


def problem_of(seed, operators=6):
    return Problem(graph=random_graph(seed, operators, most_bytes=40), word_bytes=1)


def default_order(problem):
    return tuple(range(problem.operator_count))


def capacities(problem, order, streaming):
    low = least_capacity(problem, order, streaming=streaming)
    high = max(low + 1, sum(problem.size) // 2)
    return sorted({low, low + (high - low) // 4, low + (high - low) // 2})


def check_against_oracle(seed, streaming, operators):
    problem = problem_of(seed, operators)
    order = default_order(problem)
    for capacity in capacities(problem, order, streaming):
        found = solve_residency(problem, order, capacity, streaming=streaming)
        exact = least_words(problem, order, capacity, streaming=streaming)
        assert found.status == "optimal"
        assert (found.avoidable_words, found.bound_words) == (exact, exact)
        assert found.peak_words <= capacity
        measured = measure(problem, order, found.stays, found.streams)
        assert (measured.avoidable_words, measured.peak_words) == (exact, found.peak_words)
        # One word less than the least peak costs words, or is too little for some operator.
        if found.peak_words > least_capacity(problem, order, streaming=streaming):
            squeezed = least_words(problem, order, found.peak_words - 1, streaming=streaming)
            assert squeezed > exact


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_equals_trying_everything(seed, streaming):
    check_against_oracle(seed, streaming, operators=5)


@pytest.mark.soak
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(100, 160))
def test_equals_trying_everything_for_long(seed, streaming):
    check_against_oracle(seed, streaming, operators=6)


@pytest.mark.parametrize(
    ("name", "kib", "optimum_kib"),
    [
        ("rw40", 898, 836),
        ("rw40", 540, 2733),
        ("rw80", 1463, 1621),
        ("rw120", 2496, 2312),
    ],
)
def test_known_optima_of_the_default_order(name, kib, optimum_kib):
    problem = Problem(graph=load_model(name))
    found = solve_residency(problem, default_order(problem), kib * KIB, streaming=False, minimise=("bytes",))
    assert found.status == "optimal"
    assert found.avoidable_words == optimum_kib * KIB
    assert found.peak_words <= kib * KIB


def test_what_fits_needs_no_solver():
    problem = problem_of(3)
    found = solve_residency(problem, default_order(problem), sum(problem.size), minimise=("bytes",))
    assert (found.avoidable_words, found.solver, found.streams) == (0, "inspection", ())


def test_transfers_are_the_last_criterion():
    for seed in range(20, 26):
        problem = problem_of(seed)
        order = default_order(problem)
        capacity = capacities(problem, order, True)[0]
        peak = solve_residency(problem, order, capacity, minimise=("bytes", "peak"))
        both = solve_residency(problem, order, capacity)
        assert (both.avoidable_words, both.peak_words) == (peak.avoidable_words, peak.peak_words)
        assert both.transfers <= peak.transfers


def test_buffers_of_a_pipelined_group_count():
    problem = Problem(graph=pipelined_graph())
    order = default_order(problem)
    least = least_capacity(problem, order, streaming=False)
    assert least == problem.working_set[1] == 3 * 32 + 6
    assert solve_residency(problem, order, least, streaming=False).peak_words <= least


def test_keeping_nothing_is_the_dearest():
    for seed in range(6):
        problem = problem_of(seed)
        order = default_order(problem)
        capacity = least_capacity(problem, order)
        nothing = keep_nothing(problem, order, capacity)
        assert all(stay.first_step == stay.last_step for stay in nothing.stays)
        assert nothing.peak_words <= capacity
        assert nothing.avoidable_words >= solve_residency(problem, order, capacity).avoidable_words


def test_a_node_limit_is_said_and_the_bound_holds():
    problem = Problem(graph=load_model("rw80"))
    found = solve_residency(
        problem, default_order(problem), 639 * KIB, streaming=True, node_limit=1, minimise=("bytes",)
    )
    assert found.bound_words <= 5017 * KIB <= found.avoidable_words
    if found.status != "optimal":
        assert "limit of 1 nodes" in found.note


def knapsack():
    problem = pulp.LpProblem("knapsack", pulp.LpMinimize)
    taken = [problem.add_variable(f"take{index}", cat="Binary") for index in range(8)]
    problem += pulp.lpSum((3 * index % 7 + 2) * variable for index, variable in enumerate(taken))
    problem += pulp.lpSum((5 * index % 11 + 1) * variable for index, variable in enumerate(taken)) >= 21
    return problem


def test_a_solver_that_stops_without_an_answer(monkeypatch):
    monkeypatch.setattr(pulp.HiGHS, "available", lambda self: False)
    with pytest.raises(SolverError, match="HiGHS is not installed"):
        milp.solve(knapsack())


def test_optima_and_infeasibility_are_proven():
    problem = knapsack()
    found = milp.solve(problem)
    best = min(
        sum(3 * index % 7 + 2 for index in range(8) if chosen >> index & 1)
        for chosen in range(256)
        if sum(5 * index % 11 + 1 for index in range(8) if chosen >> index & 1) >= 21
    )
    assert (found.status, found.objective, found.bound) == ("optimal", best, best)
    assert milp.solve(problem, start=found.values).objective == best
    problem += pulp.lpSum(problem.variables()) <= 1
    assert milp.solve(problem).status == "infeasible"


@pytest.mark.soak  # whole plans are compared in test_planner
def test_equal_for_every_hash_seed():
    script = (
        "from hw.scheduler.graph.importers import load_model\n"
        "from hw.scheduler.plan.problem import Problem\n"
        "from hw.scheduler.planner.residency.residency import solve_residency\n"
        "problem = Problem(graph=load_model('rw40'))\n"
        "print(solve_residency(problem, range(problem.operator_count), 540 * 32))\n"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    }
    assert len(printed) == 1
