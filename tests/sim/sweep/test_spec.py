"""The file of a sweep: what is legal, and the one line that says what is not."""

import copy
import shutil
from dataclasses import replace

import numpy as np
import pytest

from hw.errors import InputError
from sim.sweep.input.spec_file import read_spec
from sim.sweep.space import Space
from sim.sweep.spec import spec_dict, spec_of, values_of
from sim.sweep.task import Task, evaluate, legal_config
from tests.support.sweep.specs import plain, write


def changed(change):
    document = plain()
    change(document)
    return document


def attention(document):
    return document["engines"]["attention"]


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ([3, 1], (3, 1)),
        ({"from": 8, "to": 32, "step": 8}, (8, 16, 24, 32)),
        ({"from": 1, "to": 3}, (1, 2, 3)),
        ({"powers_of_two": [10, 70]}, (16, 32, 64)),
        (["int8", "int16"], ("int8", "int16")),
    ],
)
def test_forms_of_parameters(given, values):
    assert values_of(given) == values


def test_a_spec_is_kept_and_found_again(tmp_path):
    spec = read_spec(write(tmp_path / "a.yaml", plain()))
    assert spec_of(spec_dict(spec)) == spec


def test_designs_are_the_product_that_constraints_allow(tmp_path):
    document = plain(constraints=["rows * lanes <= 96", "dsp < 1000"])
    space = Space(read_spec(write(tmp_path / "a.yaml", document)))
    designs = [space.parameters(place) for place in space.grid()]
    assert len(designs) == 10  # all but 3 x 48
    assert all(design["attention.merge_lanes"] == design["attention.lanes"] // 16 for design in designs)
    drawn = space.drawn(6, seed=1)
    assert len(set(drawn)) == 6
    assert set(drawn) <= set(space.grid())
    assert drawn == space.drawn(6, seed=1) != space.drawn(6, seed=2)
    assert sorted(space.drawn(99, seed=1)) == space.grid()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: attention(d)["parameters"].update(rowz=[1]), r"a.yaml:\d+: .*rowz must be one of rows"),
        (lambda d: attention(d)["config"].update(rowz=1), r"a.yaml:\d+: .*config.rowz must be one of rows"),
        (
            lambda d: attention(d)["parameters"].update(rows={"from": 8, "to": 4}),
            r"a.yaml:\d+: .*rows must be of at least one value",
        ),
        (lambda d: attention(d)["parameters"].update(rows=[]), "rows must be of at least one value"),
        (lambda d: attention(d)["parameters"].update(rows=[1, 1]), "each once"),
        (lambda d: attention(d)["parameters"].update(rows=7), "must be a list of values, {from"),
        (lambda d: attention(d)["parameters"].update(rows={"to": 7}), "must be a list of values, {from"),
        (lambda d: attention(d)["parameters"].update(folds=[1]), "folds must be left out: it is among"),
        (
            lambda d: attention(d)["parameters"].update(rows={"expression": "cycles"}),
            "an expression over lanes, tile_keys, not 'cycles'",
        ),
        (lambda d: attention(d).update(workloads={}), r"a.yaml:\d+: .*workloads must be at least one"),
        (
            lambda d: attention(d)["workloads"]["small"]["shape"].update(heads=0),
            r"a.yaml:\d+: engines.attention.workloads.small.shape.heads must be a whole number of at least 1",
        ),
        (
            lambda d: attention(d)["workloads"].update(other={"input": "none.npz"}),
            r"a.yaml:\d+ must be a file that exists",
        ),
        (
            lambda d: d["engines"].update(atention=copy.deepcopy(attention(d))),
            "must be one of attention, conv",
        ),
        (lambda d: d.update(boards=["u55"]), r"a.yaml:\d+: boards.0 must be one of"),
        (lambda d: d.update(boards=[]), "boards must be at least one"),
        (lambda d: d.update(objectives={"cycle": "min"}), r"a.yaml:\d+: .* must be an expression over"),
        (lambda d: d.update(objectives={"cycles": "least"}), r"a.yaml:\d+: objectives.cycles must be 'min'"),
        (
            lambda d: d.update(constraints=["rows < "]),
            r"a.yaml:\d+: constraints.0 must be an expression: num",
        ),
        (lambda d: d.update(constraints=["__import__('os')"]), "constraints.0 must be an expression: num"),
        (lambda d: d.update(strategy={"name": "random"}), "strategy.designs must be at least 1"),
        (lambda d: d.update(strategy={"name": "annealing"}), "strategy.name must be 'grid', 'random'"),
        (lambda d: d.update(fidelities={"rtl": {}}), r"fidelities.rtl.* must be 'control', 'full' or 'synth"),
        (lambda d: d.update(colour="red"), r"a.yaml:\d+: key must be one of boards, engines"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, change, says):
    with pytest.raises(InputError, match=says) as raised:
        read_spec(write(tmp_path / "a.yaml", changed(change)))
    assert "\n" not in str(raised.value)


def test_a_constraint_that_nothing_keeps_is_said(tmp_path):
    space = Space(read_spec(write(tmp_path / "a.yaml", plain(constraints=["rows > 3"]))))
    for ask in (space.grid, lambda: space.drawn(3, seed=0)):
        with pytest.raises(
            InputError, match="constraints must be such that a design keeps them, not 'rows > 3'"
        ):
            ask()


def test_a_grid_has_an_end(tmp_path):
    document = plain()
    attention(document)["parameters"]["cached_keys"] = {"from": 0, "to": 9000}
    attention(document)["config"].pop("cached_keys")
    attention(document)["parameters"]["exp_segments"] = {"from": 0, "to": 9000}
    with pytest.raises(InputError, match="at most 1,000,000 of a grid; the strategy random"):
        Space(read_spec(write(tmp_path / "a.yaml", document))).grid()


def test_a_folder_of_tensors_is_a_workload(tmp_path):
    """As `loomwork predict --input` takes it; what a prediction depends on is all of its files."""
    tensors = {name: np.zeros((1, 8, 32), np.float32) for name in "qkv"}
    (tmp_path / "tensors").mkdir()
    for name, tensor in tensors.items():
        np.save(tmp_path / "tensors" / f"{name}.npy", tensor)
    document = changed(lambda d: attention(d).update(workloads={"given": {"input": "tensors"}}))
    spec = read_spec(write(tmp_path / "a.yaml", document))
    asked = spec.workloads["given"]
    config = legal_config("attention", "ultra96v2", {"rows": 1})
    task = Task(fidelity="prediction", engine="attention", board="ultra96v2", config=config, asked=asked)
    found = evaluate(task)
    assert not found.failure
    np.savez(tmp_path / "tensors.npz", **tensors)
    archive = replace(asked, files={"input": str(tmp_path / "tensors.npz")})
    assert evaluate(replace(task, asked=archive)).figures == found.figures
    other = tmp_path / "other"
    shutil.copytree(tmp_path / "tensors", other)
    same = replace(task, asked=replace(asked, files={"input": str(other)}))
    assert same.key == task.key
    np.save(tmp_path / "other2.npy", np.ones((1, 8, 32), np.float32))
    shutil.copytree(other, tmp_path / "third")
    (tmp_path / "other2.npy").rename(tmp_path / "third" / "q.npy")
    third = replace(task, asked=replace(asked, files={"input": str(tmp_path / "third")}))
    assert third.key != task.key
