"""Sweeps from file to results, without simulation: stages are answered by the test."""

import dataclasses

import pytest

from hw.errors import InputError
from sim.sweep.input.spec_file import read_spec
from sim.sweep.points import Evaluation
from sim.sweep.results import compared, load_sweep, worst_prediction
from sim.sweep.sweep import run_sweep
from sim.sweep.task import Task, evaluate
from tests.support.sweep.specs import Inline, plain, write


def swept(tmp_path, document, executor=None, name="a.db"):
    return run_sweep(read_spec(write(tmp_path / "a.yaml", document)), tmp_path / name, executor or Inline())


def slower(task):
    """Predictions are answered; simulations take 1 % longer than predicted, with rows 2 they fail."""
    if task.fidelity == "prediction":
        return evaluate(task)
    if task.config["rows"] == 2:
        return Evaluation(fidelity=task.fidelity, engine=task.engine, workload=task.workload, failure="hangs")
    predicted = evaluate(dataclasses.replace(task, fidelity="prediction"))
    figures = {**predicted.figures, "cycles": round(predicted.figures["cycles"] * 1.01)}
    return dataclasses.replace(predicted, fidelity=task.fidelity, figures=figures)


def test_every_design_is_predicted_and_what_is_illegal_says_why(tmp_path):
    results = swept(tmp_path, plain())
    assert len(results.points) == 12
    illegal = [result for result in results.points if result.failure]
    assert {result.point.parameters["attention.lanes"] for result in illegal} == {48}
    # Three lanes of the merge are no power of two.
    assert all("merge_lanes must be a power of two" in result.failure for result in illegal)
    sound = [result for result in results.points if not result.failure]
    assert results.front
    for result in sound:
        better = [
            other
            for other in sound
            if all(a <= b for a, b in zip(results.objectives(other), results.objectives(result), strict=True))
            and results.objectives(other) != results.objectives(result)
        ]
        assert result.on_front == (not better)
        predicted = result.outcome("prediction", workload="small")
        assert result.figures["small.cycles"] == result.figures["cycles"] == predicted.figures["cycles"]
        assert sum(predicted.document["cycles"].values()) == predicted.figures["cycles"]
    assert load_sweep(tmp_path / "a.db") == results


def test_a_second_run_asks_nothing(tmp_path):
    first = swept(tmp_path, plain())
    again = Inline()
    assert swept(tmp_path, plain(), again) == first
    assert again.asked == []
    # A larger sweep asks for what is new.
    document = plain()
    document["engines"]["attention"]["parameters"]["rows"] = [1, 2, 3, 4]
    more = swept(tmp_path, document, again)
    assert {task.config["rows"] for task in again.asked} == {4}
    assert len(more.points) == 16


def test_weights_count_and_constraints_leave_out(tmp_path):
    document = plain(constraints=["small.cycles <= 9000"])
    document["engines"]["attention"]["workloads"]["small"]["weight"] = 3
    results = swept(tmp_path, document)
    assert {result.failure for result in results.points if result.figures} == {
        "",
        "does not keep small.cycles <= 9000",
    }
    for result in results.points:
        if result.figures:
            assert result.figures["cycles"] == 3 * result.figures["small.cycles"]
            assert bool(result.failure) == (result.figures["small.cycles"] > 9000)


def test_nothing_that_works_is_an_error(tmp_path):
    with pytest.raises(
        InputError, match=r"must be at least one \(6 of 12: 'does not keep cycles < 9'\), not 0"
    ):
        swept(tmp_path, plain(constraints=["cycles < 9"]))


def test_a_design_that_does_not_fit_is_not_predicted(tmp_path):
    document = plain()
    document["engines"]["attention"]["parameters"]["rows"] = [1, 64]
    executor = Inline()
    results = swept(tmp_path, document, executor)
    assert {task.config["rows"] for task in executor.asked} == {1}
    assert any("must be at most" in result.failure for result in results.points)


def test_what_is_measured_counts_and_what_fails_is_kept(tmp_path):
    document = plain(
        fidelities={"control": {"of": "front", "at_most": 1, "neighbours": 1}, "full": {"of": "all"}}
    )
    results = swept(tmp_path, document, Inline(slower))
    simulated = [result for result in results.points if result.outcome("control")]
    full = [result for result in results.points if result.outcome("full")]
    assert 1 < len(simulated) < len(full) == 6
    for result in full:
        failed = result.point.parameters["attention.rows"] == 2
        assert result.fidelity == ("prediction" if failed else "full")
        assert result.outcome("full").failure == ("hangs" if failed else "")
        predicted = result.outcome("prediction", workload="small").figures["cycles"]
        assert result.figures["cycles"] == (predicted if failed else round(predicted * 1.01))
    worst = worst_prediction(results)
    assert worst.error == pytest.approx(1 / 1.01 - 1, abs=1e-3)
    assert sum(1 for result in results.points for _ in compared(result)) == sum(
        not result.outcome("full").failure for result in full
    ) + sum(not result.outcome("control").failure for result in simulated)


def test_what_failed_is_asked_again_on_demand(tmp_path):
    document = plain(fidelities={"control": {"of": "all"}})
    swept(tmp_path, document, Inline(slower))
    swept(tmp_path, document, same := Inline(slower))
    assert same.asked == []
    spec = read_spec(tmp_path / "a.yaml")
    run_sweep(spec, tmp_path / "a.db", again := Inline(slower), retry=True)
    assert {(task.fidelity, task.config["rows"]) for task in again.asked} == {("control", 2)}


@pytest.mark.sample(1)
@pytest.mark.parametrize("name", ["random", "nsga2", "tpe"])
def test_strategies_repeat_themselves(tmp_path, name):
    if name != "random":
        pytest.importorskip("optuna")
    document = plain(strategy={"name": name, "designs": 20, "batch": 5})
    document["engines"]["attention"]["parameters"]["rows"] = list(range(1, 9))
    first = swept(tmp_path, document)
    again = Inline()
    assert swept(tmp_path, document, again) == first
    assert again.asked == []
    assert swept(tmp_path, document, name="b.db") == _without_seconds(first, tmp_path)
    assert len(first.points) == 20 if name == "random" else len(first.points) <= 20


def _without_seconds(results, tmp_path):
    other = load_sweep(tmp_path / "b.db")
    for mine, theirs in zip(results.points, other.points, strict=True):
        assert (mine.point, mine.figures, mine.on_front) == (theirs.point, theirs.figures, theirs.on_front)
    return other


def test_two_engines_share_a_board(tmp_path):
    document = plain(boards=["zcu104"], objectives={"max(small.cycles, other.cycles)": "min", "dsp": "min"})
    engines = document["engines"]
    engines["attention"]["parameters"] = {"rows": [1, 2]}
    engines["attention"]["config"] |= {"lanes": 32, "merge_lanes": 2}
    engines["conv"] = {
        "config": {"strip": False, "taps": 1, "ports": 1, "memory": "block", "gather_words": 0},
        "parameters": {
            "lanes": [16, 32],
            "inputs": {"expression": "lanes"},
            "outputs": {"expression": "lanes"},
        },
        "workloads": {"other": {"network": str(layers(tmp_path))}},
    }
    results = swept(tmp_path, document)
    sound = [result for result in results.points if not result.failure]
    assert sound
    for result in sound:
        assert result.figures["dsp"] == result.figures["attention.dsp"] + result.figures["conv.dsp"]
        assert result.figures["cycles"] == result.figures["small.cycles"] + result.figures["other.cycles"]
    # Each alone is predicted once, however many designs it is in.
    keys = {(result.point.parameters["attention.rows"], result.figures["small.cycles"]) for result in sound}
    assert len(keys) == 2


def layers(tmp_path):
    lines = ["name,kind,H,Cin,Cout,K,s,g,OH", "a,pw,8,16,16,1,1,1,8", "b,dw,8,16,16,3,1,16,8"]
    (tmp_path / "layers.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "layers.csv"


def test_keys_follow_from_content():
    task = Task(fidelity="full", engine="attention", board="u55c", config={"rows": 1})
    same = dataclasses.replace(task, config={"rows": 1})
    assert task.key == same.key
    for change in (
        {"config": {"rows": 2}},
        {"board": "u280"},
        {"seed": 1},
        {"memory": "fast"},
        {"fidelity": "control"},
    ):
        assert dataclasses.replace(task, **change).key != task.key
