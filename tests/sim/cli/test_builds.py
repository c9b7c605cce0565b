"""A build folder where `sim` and `launch` take an engine's name."""

import shutil

import numpy as np
import pytest
import yaml

from hw.config import config_dict
from hw.network.graph.onnx_reader import read_network
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.network.cases import SMALL
from sim.golden.network import execute
from sim.report.forecast import load as load_forecast
from sim.report.report import load as load_report
from tests.support.command_line import call, refused
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Return a build folder of a small network, beside its model, its configuration and an input."""
    folder = tmp_path_factory.mktemp("builds")
    net = Builder("small")
    x = net.conv(net.input("image", 1, 3, 9, 8), 24, name="first", kernel=3, stride=2)
    net.output(net.conv(x, 7, name="last"))
    (folder / "small.onnx").write_bytes(quantized(net.model()))
    (folder / "small.yaml").write_text(yaml.safe_dump(config_dict(SMALL)))
    np.savez(folder / "in.npz", image=np.random.default_rng(0).normal(size=(3, 9, 8)).astype(np.float32))
    call("compile", folder / "small.onnx", "--config", folder / "small.yaml", "-o", folder / "small")
    return folder / "small"


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # as the regression does


def test_a_build_runs_and_its_answer_is_the_models(build, tmp_path):
    given, found = build.parent / "in.npz", tmp_path / "out.npz"
    call("sim", build, "--input", given, "--output", found, "--report", tmp_path / "r.json")
    call("predict", build, "--input", given, "--report", tmp_path / "p.json")
    predicted, measured = load_forecast(tmp_path / "p.json"), load_report(tmp_path / "r.json")
    assert predicted.cycles.cycles_total == measured.prediction.predicted_cycles
    assert predicted.traffic.useful_bytes == measured.traffic.useful_bytes
    assert predicted.config_hash == measured.config_hash
    assert predicted.roofline.memory_bound_cycles == measured.roofline.memory_bound_cycles
    network = read_network(build / "model.onnx")
    image = np.load(given)["image"]
    value = network.values[network.inputs[0]]
    stored = np.clip(np.rint(image / np.float32(value.scale)) + value.zero, -128, 127).astype(np.int8)
    golden = execute(network, {value.name: stored.transpose(1, 2, 0)})[network.outputs[0]]
    after = network.values[network.outputs[0]]
    with np.load(found) as results:
        real = results[network.model_outputs[0].name]
    assert real.shape == (1, 7, *golden.shape[:2])
    wanted = (golden.astype(np.float32) - after.zero) * np.float32(after.scale)
    np.testing.assert_array_equal(real[0].transpose(1, 2, 0), wanted)


def test_a_build_goes_to_a_card(build, tmp_path):
    folder = tmp_path / "card"
    call("launch", build, "--input", build.parent / "in.npz", "-o", folder)
    call("replay", folder, "--memory", "fast")
    assert "yes" in call("verify", folder).stdout
    weights = folder / "inputs" / "build" / "weights_0.bin"
    weights.write_bytes(bytes(weights.stat().st_size))
    assert "weights_0.bin" in refused("verify", folder)


def test_what_a_build_says_is_not_asked_again(build, tmp_path):
    for option, value in (("--board", "u55c"), ("--config", build.parent / "small.yaml")):
        for command in ("sim", "predict"):
            assert refused(command, build, option, value).startswith(f"{option} must be left out")
    assert "--model" in refused("sim", build, "--model", build / "model.onnx")
    assert "--plan must be left out" in refused("sim", build, "--plan", build / "plan.json")
    assert refused("sim", tmp_path).startswith("engine must be an engine's name, or a folder of")


def test_a_damaged_build_is_refused_before_any_work(build, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(build, copy)
    image = (copy / "program.bin").read_bytes()
    (copy / "program.bin").write_bytes(image[:-64])
    assert "records" in refused("sim", copy)
    (copy / "model.onnx").unlink()
    assert "model.onnx" in refused("sim", copy)


def test_a_build_is_for_one_configuration(build):
    """The option is for a kernel of the same configuration."""
    assert "--build" in refused("sim", "network", "--build", build)
    assert "a folder that exists" in refused("sim", "network", "--build", build / "none")
