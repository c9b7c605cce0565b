"""Expressions and fronts."""

import pytest

from sim.sweep.expression import Expression
from sim.sweep.figures import pareto_front
from sim.sweep.points import Evaluation


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
