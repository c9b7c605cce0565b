"""`loomwork predict`: the prediction that a report of a simulation has; it refuses as `sim` does."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors.numpy import save_file

from hw.board import load_board
from hw.config import config_dict, load_config
from hw.energy import energy
from hw.energy.launch import predicted_activity
from hw.errors import InputError
from hw.network.config import NetworkConfig
from hw.network.graph.transformer.writer import written
from hw.registry import ENGINES, find_engine
from sim.report.forecast import load, save
from sim.run.run import Target
from sim.run.tensors import load_tensors
from tests.support.command_line import call, refused
from tests.support.networks.sentences import small

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples"
#: Two sentences, of 6 and 3 tokens, and a kernel for them.
IDS = np.array([[3, 1, 4, 1, 5, 9], [2, 6, 5, 0, 0, 0]])
MASK = np.array([[1] * 6, [1] * 3 + [0] * 3])
TOKENS = NetworkConfig(attention_rows=2, attention_tokens=32, scratchpad_bytes=1 << 18, banks=4)
#: Launches by engine: configuration, input file, and the unit and items of the rate.
LAUNCHES = {
    "attention": ("attention.yaml", {"input": "in.npz"}, ("queries", 40)),
    "conv": ("conv.yaml", {"input": "layer.npz"}, ("frames", 1)),
    "conv, a table": ("conv.yaml", {"network": "layers.csv"}, ("frames", 1)),
    "oram": ("oram.yaml", {"ops": "ops.csv"}, ("operations", 8)),
    "network": (None, {}, ("images", 1)),
    "scheduler": (None, {}, ("inferences", 1)),
}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_every_engine_has_a_launch_here():
    assert {name.partition(",")[0] for name in LAUNCHES} == set(ENGINES)


@pytest.mark.parametrize("name", LAUNCHES)
def test_the_figures_are_those_of_a_simulations_report(name, monkeypatch):
    monkeypatch.setattr("sim.run.launch.simulate", lambda *_, **__: pytest.fail("simulated"))
    config_name, files, (unit, items) = LAUNCHES[name]
    engine, board = find_engine(name.partition(",")[0]), load_board("u55c")
    config_path = None if config_name is None else EXAMPLES / config_name
    words = [] if config_path is None else ["--config", config_path]
    for option, file in files.items():
        words += [f"--{option}", EXAMPLES / file]
    printed = call("predict", engine.name, *words, "--seed", 3, "--report", "p.json").stdout
    found = load(Path("p.json"))

    config = load_config(engine, config_path, board)
    target = Target(engine=engine, config=config, board=board)
    given = {option: EXAMPLES / file for option, file in files.items()}
    # `Prepared.judge` puts this prediction into the report of a simulation.
    expected = target.prepare(target.adapter.read_files(given, config, seed=3)).prediction
    assert found.cycles.cycles_total == expected.cycles_total
    assert tuple(found.cycles.job_cycles.values()) == expected.job_cycles
    assert found.traffic.read_bytes == expected.read_bytes
    assert found.traffic.write_bytes == expected.write_bytes
    assert found.roofline.compute_bound_cycles == expected.compute_bound_cycles
    assert found.roofline.memory_bound_cycles == expected.memory_bound_cycles
    assert found.predicted_lower_bound == expected.open_ended
    assert (found.rate.unit, found.rate.items) == (unit, items)
    seconds = expected.cycles_total / (board.clock_mhz * 1e6)
    assert found.rate.items_per_second == pytest.approx(items / seconds)
    for figure in (f"{expected.cycles_total:,}", f"{expected.memory_bound_cycles:,}", f"{unit} a second"):
        assert figure in printed
    assert f"{found.roofline.bound_by} bound, cycles, binds" in printed
    assert printed.count("binds") == 1
    assert found.config_hash == json.loads(Path("p.json").read_text())["config_hash"]


def test_a_maps_rate_is_printed_with_and_without_initialization_and_end():
    given = ("--config", EXAMPLES / "oram.yaml", "--ops", EXAMPLES / "ops.csv", "--report", "p.json")
    printed = call("predict", "oram", *given).stdout
    details = load(Path("p.json")).details
    for part in ("initialization", "end"):
        assert re.search(rf"of them {part} +{details[f'{part}_cycles']:,} ", printed)
    (rate,) = re.findall(r"operations a second, without initialization and end +(\S+)", printed)
    assert rate == f"{300e6 / details['operating_cycles_per_operation']:,.1f}"


def test_energy_follows_the_activity_and_the_items():
    given = ("--config", EXAMPLES / "attention.yaml", "--input", EXAMPLES / "in.npz", "--report", "p.json")
    printed = call("predict", "attention", *given).stdout
    found = load(Path("p.json"))
    engine, board = find_engine("attention"), load_board("u55c")
    config = load_config(engine, EXAMPLES / "attention.yaml", board)
    target = Target(engine=engine, config=config, board=board)
    prepared = target.prepare(load_tensors(EXAMPLES / "in.npz"))
    expected = energy(predicted_activity(engine, config, board, prepared.prediction))
    assert found.energy.energy_total_picojoules == pytest.approx(expected.total.value)
    assert found.energy.energy_low_picojoules == pytest.approx(expected.total.low)
    assert found.energy.average_high_watts == pytest.approx(expected.watts.high)
    assert found.energy.energy_high_picojoules <= 2 * found.energy.energy_low_picojoules
    assert found.rate.microjoules_per_item == pytest.approx(1e-6 * expected.total.value / 40)
    for words in ("energy, µJ", "energy over queries, µJ each", "average power, W", "energy: leakage, µJ"):
        assert words in printed


@pytest.mark.parametrize(
    ("section", "field"), [("rate", "microjoules_per_item"), ("energy", "average_watts")]
)
def test_a_prediction_whose_energy_was_edited_is_refused(section, field):
    given = ("--config", EXAMPLES / "attention.yaml", "--input", EXAMPLES / "in.npz", "--report", "p.json")
    call("predict", "attention", *given)
    document = json.loads(Path("p.json").read_text())
    document[section][field] *= 2
    Path("p.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match=f"{field} must be "):
        load(Path("p.json"))


def test_the_golden_model_of_a_convolution_does_not_run(monkeypatch):
    monkeypatch.setattr("sim.engines.conv.job.sums", lambda *_: pytest.fail("computed"))
    call("predict", "conv", "--config", EXAMPLES / "conv.yaml", "--input", EXAMPLES / "layer.npz")


def test_a_slower_clock_and_a_wider_engine_are_seen():
    """Predictions follow the board file and the configuration."""
    slow = (
        (ROOT / "boards" / "u55c.yaml")
        .read_text()
        .replace("clock:    {value: 300 MHz", "clock:    {value: 150 MHz")
    )
    Path("slow.yaml").write_text(slow)
    Path("wide.yaml").write_text((EXAMPLES / "attention.yaml").read_text().replace("rows: 4", "rows: 8"))
    given = ("--input", EXAMPLES / "in.npz")
    found = {}
    for name, words in {
        "as it is": ("--config", EXAMPLES / "attention.yaml"),
        "slow": ("--config", EXAMPLES / "attention.yaml", "--board", "slow.yaml"),
        "wide": ("--config", "wide.yaml"),
    }.items():
        call("predict", "attention", *words, *given, "--report", "p.json")
        found[name] = load(Path("p.json"))
    assert found["slow"].rate.items_per_second < 0.6 * found["as it is"].rate.items_per_second
    wide = found["wide"].roofline.compute_bound_cycles
    assert wide == pytest.approx(found["as it is"].roofline.compute_bound_cycles / 2, abs=1)


def test_gathered_samples_make_a_lower_bound():
    """Offsets that reach beyond the line buffer are gathered, and how often depends on their values."""
    rng = np.random.default_rng(0)
    shapes = {"x": (16, 64, 64), "w": (16, 1, 3, 3), "offset": (18, 64, 64)}
    drawn = {each: rng.normal(size=shape).astype(np.float32) for each, shape in shapes.items()}
    for bound in ({}, {"bound": 1}):
        np.savez("in.npz", **drawn, **bound, group=16, pads=np.ones(4, int), accumulators=0)
        words = ("--config", EXAMPLES / "conv.yaml", "--input", "in.npz", "--report", "p.json")
        printed = call("predict", "conv", *words).stdout
        assert load(Path("p.json")).predicted_lower_bound == (not bound)
        assert ("at least" in printed) == ("at most" in printed) == (not bound)


def test_tokens_are_counted_from_the_sentences():
    """A model on tokens has a network for the lengths of its sentences: 6 and 3 tokens."""
    Path("small.onnx").write_bytes(written(small("mask", "heads")))
    Path("c.yaml").write_text(yaml.safe_dump(config_dict(TOKENS)))
    np.savez("in.npz", input_ids=IDS, attention_mask=MASK)
    words = ("--model", "small.onnx", "--config", "c.yaml", "--input", "in.npz", "--report", "p.json")
    call("predict", "network", *words)
    rate = load(Path("p.json")).rate
    assert (rate.unit, rate.items) == ("tokens", 9)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("attentoin", "engine must be one of "),
        ("attention --board u56", "board must be one of "),
        ("attention --board ultra96v2 --config big.yaml --input in.npz", "LUT of attention must be at most "),
        ("attention --config bad.yaml --input in.npz", "bad.yaml:1: rows must be from 1 to 64, not 0"),
        ("attention --input none.npz", "--input must be a file that exists, not 'none.npz'"),
        ("attention --input in.npz", "tensor q must be given as [heads, tokens, size], not 'missing'"),
        ("attention --plan p.json", "--plan must be left out: the engine attention has no such option"),
        ("attention --input in.npz --report in.npz", "--report must be another file than --input"),
        ("attention --config bad.yaml --report bad.yaml", "--report must be another file than --config"),
        ("attention --input in.npz --report no/p.json", "--report must be in a directory that exists"),
    ],
)
def test_refusals_are_those_of_sim(words, says):
    np.savez("in.npz", k=np.zeros((1, 2, 16), np.int8))
    Path("bad.yaml").write_text("rows: 0\n")
    Path("big.yaml").write_text("lanes: 64\nrows: 64\n")
    message = refused("predict", *shlex.split(words))
    assert message.startswith(says)
    assert message == refused("sim", *shlex.split(words))


def test_a_prediction_that_contradicts_itself_is_refused():
    given = ("--config", EXAMPLES / "attention.yaml", "--input", EXAMPLES / "in.npz")
    call("predict", "attention", *given, "--report", "p.json")
    found = load(Path("p.json"))
    save(found, Path("again.json"))
    assert Path("again.json").read_bytes() == Path("p.json").read_bytes()
    for section, field, change in (
        ("cycles", "cycles_busy", 1),
        ("cycles", "kernel_microseconds", 1.0),
        ("work", "mac_utilization_ratio", -0.1),
        ("traffic", "useful_bytes", 1),
        ("roofline", "bound_cycles", 1),
        ("rate", "items", 1),
    ):
        document = json.loads(Path("p.json").read_text())
        document[section][field] += change
        Path("wrong.json").write_text(json.dumps(document))
        with pytest.raises(InputError, match="prediction file must be a prediction of format"):
            load(Path("wrong.json"))
    assert replace(found, label="mine").label == "mine"


def test_tensors_may_come_as_safetensors_or_npy():
    """One launch in three forms; a launch folder keeps an archive, of which `verify` makes the job."""
    with np.load(EXAMPLES / "in.npz") as archive:
        given = {name: np.asarray(archive[name]) for name in archive.files}
    Path("in").mkdir()
    for name, tensor in given.items():
        np.save(f"in/{name}.npy", tensor)
    save_file(given, "in.safetensors")
    config = ("--config", EXAMPLES / "attention.yaml")
    found = []
    for path in (EXAMPLES / "in.npz", "in.safetensors", "in"):
        call("predict", "attention", *config, "--input", path, "--report", "p.json")
        call("launch", "attention", *config, "--input", path, "-o", "card")
        found.append((Path("p.json").read_bytes(), Path("card/golden.npz").read_bytes()))
        assert load_tensors(Path("card/inputs/input.npz")).keys() == given.keys()
        assert refused("verify", "card").startswith("launch folder must be run before")
    assert found[0] == found[1] == found[2]
    assert refused("predict", "attention", "--input", "in/q.npy").startswith(
        "input file must be an .npz archive of tensors, a .safetensors file, or a folder with NAME.npy"
    )
