"""Models that no quantizer writes: onnxruntime, the golden network and its compiled commands agree."""

import numpy as np
import onnxruntime
import pytest

from hw.network.compile.compile import compile_network
from hw.network.driver.tensors import real_outputs, stored_inputs
from hw.network.graph.onnx_reader import read_network
from sim.golden.network import execute
from sim.golden.program import run
from tests.support.networks.handmade import Handmade

_IMAGE = (1, 16, 5, 4)


def conv(net, x, channels, inputs=16):
    """Add a convolution of 1 x 1, stored."""
    return net.stored(net.add("Conv", x, net.weights(channels, inputs, 1, 1)), 0.0731, 4)


def concat(net, *operands):
    """Add a concat of images."""
    return net.add("Concat", *operands, axis=1)


def clip(net, x, low, high):
    """Add a Clip."""
    return net.add("Clip", x, net.constant(np.float32(low)), net.constant(np.float32(high)))


def mean(net, x):
    """Add a mean, stored."""
    return net.stored(net.add("GlobalAveragePool", x), 0.0137, 7)


#: The last operator of a model before its scale.
CASES = {
    "a Relu behind a concat": lambda net: net.add(
        "Relu", concat(net, conv(net, net.image, 24), conv(net, net.image, 7))
    ),
    "bounds behind a concat of the same scale": lambda net: clip(
        net, concat(net, net.stored(net.image), conv(net, net.image, 7)), -1, 1.5
    ),
    "a concat of a value with itself": lambda net: concat(net, net.image, net.image),
    "a Relu behind negative bounds": lambda net: net.add("Relu", clip(net, net.image, -5, -1)),
    "a Clip behind another": lambda net: clip(
        net, clip(net, net.add("Add", net.image, net.image), -5, -1), 0, 1
    ),
    "one element for all": lambda net: net.add("Mul", net.image, mean(net, conv(net, net.image, 1))),
    "one channel for all": lambda net: net.add("Mul", conv(net, net.image, 1), net.image),
    "one pixel times one channel": lambda net: net.add("Mul", mean(net, net.image), conv(net, net.image, 1)),
    "Gelu by tanh": lambda net: net.add("Gelu", net.image, approximate="tanh"),
    "weights with a scale a row of a transposed matrix": lambda net: net.add(
        "Gemm",
        net.add("Flatten", net.image),
        net.weights(9, 320, scales=np.linspace(1e-4, 5e-4, 9)),
        transB=1,
    ),
    "an image flattened before its scale": lambda net: net.add(
        "MatMul", net.stored(net.add("Flatten", net.input("y", (1, 3, 2, 2)))), net.weights(12, 5)
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_model_is_exact(case):
    net = Handmade(_IMAGE, opset=20)
    net.output(net.stored(CASES[case](net)))
    network = read_network(net.model())
    rng = np.random.default_rng(1)
    real = {each.name: rng.normal(size=each.shape).astype(np.float32) * 3 for each in network.model_inputs}
    stored = stored_inputs(network, real)
    golden = execute(network, stored)
    compiled = compile_network(network, scratchpad_bytes=1 << 16)
    for name, made in run(compiled, stored).items():
        assert (made == golden[name]).all()
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(net.model(), options)
    feeds = {each.name: real.get(each.name, np.zeros(_IMAGE, np.float32)) for each in session.get_inputs()}
    (theirs,) = session.run(None, feeds)
    (mine,) = real_outputs(network, golden).values()
    assert mine.shape == theirs.shape
    # The graph is float in onnxruntime: 1 step apart at most, where a result is near a tie.
    apart = np.abs(mine - theirs) / 0.0613
    assert apart.max() < 1.01
    assert (apart > 0.01).mean() < 0.02
