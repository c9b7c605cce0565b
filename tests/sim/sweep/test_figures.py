"""Expressions and fronts."""

import pytest

from sim.api import energy
from sim.sweep.expression import Expression
from sim.sweep.figures import measured_figures, pareto_front
from sim.sweep.points import Evaluation
from sim.sweep.spec import WorkloadSpec, spec_of
from sim.sweep.task import Task, evaluate, legal_config
from tests.support.pages.reports import synthetic


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2 * rows * lanes <= 4096", True),
        ("max(a.cycles, 6 * rows) // 4 + -1", 24),
        ("rows == 16 and not lanes == 16 or kind == 'ultra'", True),
        ("1 < rows < 3", False),
        ("lanes % 10 / 2", 2.0),
    ],
)
def test_expressions_are_pythons(text, value):
    found = Expression(text).value({"rows": 16, "lanes": 64, "a.cycles": 100, "kind": "block"})
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "rows +",
        "rows ** 9",
        "f(1)",
        "min()",
        "[1]",
        "a[0]",
        "lambda: 1",
        "(1).real",
        "x := 1",
        "b'a'",
        "1j",
    ],
)
def test_nothing_else_is_an_expression(text):
    with pytest.raises(ValueError, match=r"^(no expression|numbers, names, .*)$"):
        Expression(text)


def test_what_cannot_be_evaluated_says_why():
    with pytest.raises(ValueError, match="division"):
        Expression("1 // rows").value({"rows": 0})
    assert Expression("min(a.b.c, rows)").names == {"a.b.c", "rows"}


def test_the_front_is_what_nothing_dominates():
    values = [(1.0, 9.0), (2.0, 2.0), (2.0, 2.0), (3.0, 1.0), (3.0, 2.0), (1.0, 10.0)]
    assert pareto_front(values) == [0, 1, 2, 3]
    assert pareto_front([]) == []


@pytest.mark.parametrize(
    "failure", ["rows must be at most 64, not 65", "attention: rows must be at most 64, not 65"]
)
def test_a_complaint_names_once_what_it_is_of(failure):
    outcome = Evaluation(fidelity="prediction", engine="attention", failure=failure)
    assert outcome.complaint == "attention: rows must be at most 64, not 65"


def test_energy_is_an_objective_that_follows_the_design():
    """The same shape on two sizes of engine: predicted microjoules are those of the Python function."""
    shape = {"heads": 2, "queries": [64], "keys": [64], "query_size": 64, "value_size": 64}
    found = {}
    for rows in (8, 16):
        config = legal_config("attention", "u55c", {"rows": rows})
        task = Task(
            fidelity="prediction", engine="attention", board="u55c", config=config, workload="w",
            asked=WorkloadSpec(shape=shape),
        )  # fmt: skip
        outcome = evaluate(task)
        assert not outcome.failure
        expected = energy("attention", shape | {"queries": (64,), "keys": (64,)}, {"rows": rows})
        assert outcome.figures["microjoules"] == pytest.approx(1e-6 * expected.total.value)
        found[rows] = outcome.figures["microjoules"]
    assert found[8] != found[16]


def test_measured_energy_is_that_of_the_report():
    report = synthetic()
    measured = measured_figures(report)
    assert measured["microjoules"] == pytest.approx(1e-6 * report.energy.energy_total_picojoules)


def test_sweeps_may_minimize_and_bound_energy():
    spec = {
        "boards": ["u55c"],
        "engines": {
            "attention": {"parameters": {"rows": [8, 16]}, "workloads": {"w": {"shape": {"heads": 1}}}}
        },
        "objectives": {"microjoules": "min", "w.microjoules": "min"},
        "constraints": ["microjoules <= 100"],
    }  # fmt: skip
    assert {"microjoules", "w.microjoules"} <= spec_of(spec).names
