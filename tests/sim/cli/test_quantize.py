"""`loomwork quantize` turns a model and samples into a model, and refuses wrong input in one line."""

import numpy as np
import pytest

from hw.network.graph.network import Convolution
from hw.network.graph.onnx_reader import read_network
from tests.support.command_line import call, refused
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import drawn, samples


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def model(kind="Relu"):
    net = Builder("small")
    x = net.conv(net.input("image", 1, 3, 6, 5), 8, name="first", kernel=3)
    net.output(net.conv(net.add(kind, x, name="between"), 4, name="second"))
    return drawn(net.model())


def files(tmp_path, text=None, **arrays):
    text = text or model()
    (tmp_path / "model.onnx").write_bytes(text)
    np.savez(tmp_path / "samples.npz", **(arrays or samples(text)))
    return "quantize", "model.onnx", "--calibration", "samples.npz", "-o", "out.onnx"


@pytest.mark.parametrize("options", [[], ["--form", "qoperator", "--unsigned"]])
def test_a_model_is_quantized(tmp_path, options):
    printed = call(*files(tmp_path), *options).stdout
    assert printed == "out.onnx: 2 operators, 7440 MACs, 248 weight bytes\n"
    network = read_network(tmp_path / "out.onnx")
    assert all(isinstance(operator, Convolution) for operator in network.operators)
    assert network.values[network.outputs[0]].unsigned == bool(options)


def test_batch_normalization_joins_its_convolution(tmp_path):
    net = Builder("normalized")
    x = net.conv(net.input("image", 1, 3, 6, 5), 8, name="first", kernel=3)
    parameters = [net.constant(np.linspace(0.5, 2, 8)) for _ in range(4)]
    net.output(net.add("BatchNormalization", x, *parameters, name="normalized"))
    assert call(*files(tmp_path, drawn(net.model()))).stdout.startswith("out.onnx: 1 operators")


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"other": np.zeros((1, 3, 6, 5))}, "array of the calibration must be an input of the model"),
        ({"image": np.zeros((1, 3, 6, 4))}, "shape of calibration 'image' must be ['samples', 3, 6, 5]"),
        ({"image": np.full((1, 3, 6, 5), np.nan)}, "tensor image must be finite everywhere"),
        ({"image": np.full((1, 3, 6, 5), 1e300)}, "must be finite numbers of float32"),
        ({"image": np.zeros((1, 3, 6, 5), complex)}, "image"),
        ({"image": np.zeros((0, 3, 6, 5))}, "samples of the calibration must be one number, at least 1"),
    ],
)
def test_calibration_that_does_not_fit(tmp_path, arrays, message):
    assert message in refused(*files(tmp_path, **arrays))
    assert not (tmp_path / "out.onnx").exists()


def test_operators_that_have_no_rule(tmp_path):
    assert "between (Sin:" in refused(*files(tmp_path, model("Sin")))
    assert not (tmp_path / "out.onnx").exists()


def test_a_file_of_calibration_that_is_missing(tmp_path):
    words = ["none.npz" if word == "samples.npz" else word for word in files(tmp_path)]
    assert refused(*words) == "--calibration must be a file that exists, not 'none.npz'"
