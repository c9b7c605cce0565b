"""The file of a sweep: what is legal, and the one line that says what is not."""

import copy

import pytest

from hw.errors import InputError
from sim.sweep.space import Space
from sim.sweep.spec import read_spec, spec_dict, spec_of, values_of
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
