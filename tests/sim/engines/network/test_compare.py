"""``loomwork compare network``: figures of models, published ones, signals and a reference."""

import json

import numpy as np
import pytest

from hw.errors import InputError
from hw.network.driver.tensors import stored_inputs
from hw.network.graph.onnx_reader import read_network
from sim.engines.network.compare.published import DPU
from sim.engines.network.compare.suite import run_compare
from sim.golden.network import execute
from tests.sim.engines.network.test_signals import one, small
from tests.support.command_line import call
from tests.support.networks.quantized import quantize, samples


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("compare")
    exact = small()
    model = quantize(exact, samples(exact, 4))
    (found / "float.onnx").write_bytes(exact)
    for name in ("small", "resnet18"):  # the second has a published figure by its name
        (found / f"{name}.onnx").write_bytes(model)
    tensors = one(exact)
    np.savez(found / "in.npz", **tensors)
    network = read_network(model)
    operator = network.operators[1]
    result = execute(network, stored_inputs(network, tensors))[operator.output].transpose(2, 0, 1)
    np.savez(found / "same.npz", **{operator.output: result})
    np.savez(found / "other.npz", **{operator.output: result ^ 1})
    return found


def test_figures_of_models(folder, tmp_path, capsys):
    models = [folder / "small.onnx", folder / "resnet18.onnx"]
    assert run_compare(models, "u55c", None, tmp_path)
    document = json.loads((tmp_path / "compare.json").read_text())
    found = {(each["network"], each["method"]): each for each in document["figures"]}
    whole, alone = (found["small", f"Loomwork, {way}"] for way in ("whole", "layer by layer"))
    assert whole["cycles"] < alone["cycles"]
    assert whole["moved_bytes"] < alone["moved_bytes"]
    assert ("small", "AMD DPU, 2 x B4096") not in found
    published = found["resnet18", "AMD DPU, 2 x B4096"]
    assert published["cycles"] == pytest.approx(686_467, abs=1) == DPU["resnet18"].cycles
    assert "small" in capsys.readouterr().out
    assert "DPU" in (tmp_path / "compare.html").read_text()


def test_signals_and_a_reference(folder, tmp_path):
    def compared(*words, status=0):
        words = ("--input", folder / "in.npz", *words, "-o", tmp_path)
        return call("compare", "network", folder / "small.onnx", *words, status=status).stdout

    same = compared("--float", folder / "float.onnx", "--reference", folder / "same.npz")
    assert "No tensor differs" in same
    document = json.loads((tmp_path / "compare.json").read_text())
    assert [each["kind"] for each in document["signals"]] == ["conv", "conv", "add", "conv"]
    assert "First difference" in compared("--reference", folder / "other.npz", status=1)


@pytest.mark.parametrize(
    ("models", "more", "message"),
    [
        (["small"], {"exact": "float.onnx"}, "--input"),
        (["small"], {"tensors": "in.npz"}, "--float or --reference"),
        (["small", "resnet18"], {"tensors": "in.npz", "reference": "same.npz"}, "models must be one"),
        (["small", "small"], {}, "a name of its own"),
        (["nothing"], {}, "nothing.onnx"),
    ],
)
def test_options_that_do_not_fit_together(folder, tmp_path, models, more, message):
    files = {name: folder / file for name, file in more.items()}
    with pytest.raises(InputError, match=message):
        run_compare([folder / f"{name}.onnx" for name in models], "u55c", None, tmp_path, **files)
