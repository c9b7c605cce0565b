"""``loomwork compare network`` on tokens: orders, a network split at its attentions, published times."""

import json
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from hw.board import load_board
from hw.network.check.check import check
from hw.network.commands import Core
from hw.network.config import NetworkConfig
from hw.network.graph.network import Network
from hw.network.graph.transformer.network import read_tokens
from hw.network.graph.transformer.writer import written
from hw.network.model.overlap import overlap
from hw.network.program.lower import program_of
from sim.compare.simulated import CoSimulation
from sim.engines.network.adapter import ADAPTER, BUILD
from sim.engines.network.build_folder import Build
from sim.engines.network.compare import costs
from sim.engines.network.compare.compare import BARRIERS, LAYERS, SPLIT, TURN, WHOLE
from sim.engines.network.compare.page import COMPARISON
from sim.engines.network.compare.published import ALLO, DFX, INTAR, STREAM_TENSOR
from sim.engines.network.compare.split import Heads, heads_of, link_of
from sim.engines.network.compare.suite import run_compare
from sim.engines.network.compare.ways import attentions, in_turn, overlapping, parts
from sim.engines.network.compiling import compile_on
from sim.golden.network import execute
from tests.support.command_line import call
from tests.support.networks.sentences import POSITIONS, small

BOARD = load_board("u55c")
CONFIG = NetworkConfig(attention_rows=16, tables=256)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("tokens")
    for name, forms in (("small", ("heads",)), ("gpt2_medium_layer", ("causal", "before"))):
        (found / f"{name}.onnx").write_bytes(written(small(*forms)))
    (found / "tokens.yaml").write_text("attention_rows: 16\ntables: 256\n")
    return found


@pytest.fixture(scope="module")
def network(folder):
    return read_tokens(folder / "small.onnx", [20, 13])


def figures(folder, output, name, *, tokens, **options):
    run_compare([folder / f"{name}.onnx"], "u55c", folder / "tokens.yaml", output, tokens=tokens, **options)
    return json.loads((output / "compare.json").read_text())


def test_each_way_has_its_figures_and_shares_add_up(folder, tmp_path, capsys):
    document = figures(folder, tmp_path, "small", tokens=(20, 13))
    found = {each["method"]: each for each in document["figures"]}
    assert list(found) == [WHOLE, TURN, BARRIERS, SPLIT, LAYERS]
    cycles = [found[name]["cycles"] for name in (WHOLE, TURN, BARRIERS, LAYERS)]
    assert all(first < second for first, second in pairwise(cycles))
    assert found[TURN]["moved_bytes"] == found[BARRIERS]["moved_bytes"] == found[WHOLE]["moved_bytes"]
    assert found[SPLIT]["source"] == "predicted and computed"
    assert [each["count"] for each in document["terms"]] == [3, 2, 2, 4, 4]
    assert found[SPLIT]["cycles"] == sum(each["cycles"] for each in document["terms"] if each["summed"])
    # The array's multipliers and the attention engine's.
    assert (found[WHOLE]["multipliers"], found[SPLIT]["multipliers"]) == (4096, 8192)
    assert "shares" in capsys.readouterr().out
    page = (tmp_path / "compare.html").read_text()
    assert "whether both kernels fit on one board" in page
    assert "one core at a time" in page


def test_no_two_cores_work_at_a_time(network):
    program = program_of(compile_on(network, CONFIG, BOARD))
    found = in_turn(program, CONFIG)
    check(found, CONFIG)
    cores = {step.core for step in found.steps}
    assert cores == set(Core)
    ends = dict.fromkeys(Core, 0)
    for span in overlap(found, CONFIG, BOARD).spans:
        others = [end for core, end in ends.items() if core != span.step.core]
        assert span.begin > max(others)
        ends[span.step.core] = max(ends[span.step.core], span.end)
    # The same check finds cores that work at a time where they may.
    spans = overlap(overlapping(program, CONFIG), CONFIG, BOARD).spans
    assert any(
        first.step.core != second.step.core and second.begin <= first.end for first, second in pairwise(spans)
    )


def test_parts_and_attentions_make_the_whole_networks_results(network):
    """The golden model on each part and each attention, one after the other."""
    ids = np.random.default_rng(0).integers(0, 50, (1, 33, 1)).astype(np.int32)
    (name,) = network.inputs
    values = {name: ids.reshape(network.values[name].shape)}
    whole = execute(network, dict(values))
    between, launches = parts(network), attentions(network)
    assert (len(between), len(launches)) == (3, 2)
    assert sum(len(each.operators) for each in between) + len(launches) == len(network.operators)
    alone = [
        Network(
            name=each.name,
            values={name: network.values[name] for name in (*each.inputs, each.output)},
            operators=(each,),
            inputs=each.inputs,
            outputs=(each.output,),
            constants={},
        )
        for each in launches
    ]
    for part in (between[0], alone[0], between[1], alone[1], between[2]):
        made = execute(part, {name: values[name] for name in part.inputs})
        values |= {name: made[name] for name in part.outputs}
    (output,) = network.outputs
    assert (values[output] == whole[output]).all()


def test_a_part_alone_is_a_launch(network):
    """Its inputs are drawn as the network stores them: int8 and int16."""
    for part in parts(network):
        compiled = compile_on(part, CONFIG, BOARD)
        build = Build.of(compiled, overlapping(program_of(compiled), CONFIG), CONFIG, BOARD)
        job = ADAPTER.job({BUILD: np.array(build, object)}, CONFIG)
        assert {name: array.dtype for name, array in job.inputs.items()} == {
            name: part.values[name].kind for name in part.inputs
        }
        golden = ADAPTER.golden(job, CONFIG)
        assert all(golden[name].any() for name in part.outputs)
    assert {array.dtype.name for array in job.inputs.values()} == {"int8", "int16"}


def test_the_links_cycles_follow_from_the_boards_file(network):
    shapes = heads_of(network)
    assert shapes == [Heads(heads=2, size=32, segments=(20, 13), causal=False)] * 2
    link = link_of(shapes, 5, BOARD)
    # 33 tokens of 64 channels: queries, keys, values and results, each to the host and back, twice.
    assert link.activation_bytes == 2 * 8 * 33 * 64
    waits = 2 * 2 * (450 + 750)
    assert link.activations == round((link.activation_bytes / 12.77 + waits) * 0.3)
    assert (link.crossings, link.crossing_cycles) == (4, 4 * 360)
    assert link_of(shapes, 5, load_board("zcu104")) is None


@pytest.mark.parametrize("size", [16, 32, 48, 64])
def test_the_attention_engine_has_lanes_of_a_head_and_its_multipliers(size):
    heads = Heads(heads=4, size=size, segments=(32,), causal=True)
    config = heads.config(BOARD)
    assert (config.lanes, config.output) == (size, "int8")
    assert 3 / 4 * 4096 <= heads.multipliers(BOARD) <= 4096 or size == 16  # at most 64 rows
    assert heads.predicted(BOARD)[1] == 4 * 4 * 32 * size  # each operand and the results once


def test_published_layers_stand_beside_the_same_tokens(folder, tmp_path):
    document = figures(folder, tmp_path, "gpt2_medium_layer", tokens=(32,))
    found = {each["method"]: each for each in document["figures"]}
    assert found[DFX.method]["cycles"] == pytest.approx(177.2 / 24 * 200e3)
    assert found[DFX.method]["millijoules"] is None
    assert 0 < found[WHOLE]["millijoules"] < found[LAYERS]["millijoules"]
    assert found[INTAR.method]["cycles"] == pytest.approx(177.2 / 39.14 / 24 * 240e3)
    sources = [found[each.method]["source"] for each in (DFX, ALLO, STREAM_TENSOR, INTAR)]
    assert sources == ["published"] * 3 + ["derived"]
    others = figures(folder, tmp_path, "gpt2_medium_layer", tokens=(33,))
    assert DFX.method not in {each["method"] for each in others["figures"]}


def test_measured_figures_replace_predictions(folder, tmp_path, monkeypatch):
    """Launches are simulated once for a name; one that differs fails, and is made again."""
    made = []

    def simulated(network, config, board, output):
        def run(name):
            made.append(name)
            return CoSimulation(cycles=1000, moved_bytes=64, exact=name != TURN, seconds=1.0)

        for each in costs.simulations(network, config, board, output):
            yield replace(each, make=lambda progress, name=each.name: run(name))

    monkeypatch.setattr("sim.engines.network.compare.suite.simulations", simulated)
    document = figures(folder, tmp_path, "small", tokens=(20, 13), measure="small")
    found = {each["method"]: each for each in document["figures"]}
    assert [found[name]["source"] for name in (WHOLE, TURN, BARRIERS, LAYERS)] == [
        *["measured"] * 3,
        "predicted",
    ]
    assert (found[WHOLE]["cycles"], found[WHOLE]["moved_bytes"]) == (1000, 64)
    terms = document["terms"]
    assert [(each["source"], each["cycles"]) for each in terms[:2]] == [
        ("measured", 3000),  # three parts
        ("measured", 2000),  # two launches of one shape, simulated once
    ]
    assert found[SPLIT]["source"] == "measured and computed"
    assert len(made) == 3 + 3 + 1
    made.clear()
    arguments = ([folder / "small.onnx"], "u55c", folder / "tokens.yaml", tmp_path)
    assert not run_compare(*arguments, tokens=(20, 13), measure="small")
    assert made == [TURN]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--tokens"),
        (("--tokens", "20", "--measure", "large"), "measured name must be one of small"),
        (("--tokens", "20", "--float", "small.onnx", "--input", "in.npz"), "the model takes tokens"),
    ],
)
def test_options_that_do_not_fit(folder, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(folder)
    np.savez(folder / "in.npz", input_ids=np.zeros((1, 20), np.int64))
    config = ("--config", "tokens.yaml", "-o", tmp_path)
    refused = call("compare", "network", "small.onnx", *config, *words, status=2)
    assert message in " ".join(refused.stderr.split())


@pytest.mark.soak
def test_predictions_are_the_gates(folder, tmp_path):
    """Every way on the gates: each byte the golden model's, cycles as predicted."""
    arguments = ([folder / "small.onnx"], "u55c", folder / "tokens.yaml", tmp_path)
    assert run_compare(*arguments, tokens=(POSITIONS,))
    before = COMPARISON.rows_of(json.loads((tmp_path / "compare.json").read_text()))
    (row,) = before.values()
    assert run_compare(*arguments, tokens=(POSITIONS,), measure="small")
    document = json.loads((tmp_path / "compare.json").read_text())
    found = {each["method"]: each for each in document["figures"]}
    for name in (WHOLE, TURN, BARRIERS):
        assert found[name]["source"] == "measured"
        assert row.ways[name].cycles == pytest.approx(found[name]["cycles"], rel=0.03)
        assert row.ways[name].moved_bytes == found[name]["moved_bytes"]
