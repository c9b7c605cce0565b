"""Operators whose attributes or operands have no counterpart on integers are refused by name."""

import numpy as np
import pytest
from onnx import TensorProto

from hw.errors import InputError
from hw.network.graph.onnx_reader import read_network
from tests.support.networks.handmade import Handmade

_SCALES = np.linspace(0.001, 0.004, 16)


def conv(net, **weights):
    """Add a convolution of 3 x 3 to as many channels."""
    return net.add("Conv", net.image, net.weights(16, 16, 3, 3, **weights))


def biased(net, bias):
    """Add a convolution with a bias."""
    return net.add("Conv", net.image, net.weights(16, 16, 3, 3), bias)


def gemm(net, scales, axis, **attributes):
    """Add a product with a square matrix."""
    flat = net.add("Flatten", net.stored(net.add("GlobalAveragePool", net.image)))
    return net.add("Gemm", flat, net.weights(16, 16, scales=scales, axis=axis), **attributes)


def reshape(net, *shape):
    """Add a view of the mean."""
    mean = net.stored(net.add("GlobalAveragePool", net.image))
    return net.add("Reshape", mean, net.constant(np.array(shape)))


REFUSED = {
    "other scales than one": [
        lambda net: conv(net, scales=_SCALES, axis=1),
        lambda net: conv(net, scales=_SCALES[:3], axis=2),
        lambda net: gemm(net, _SCALES, 0),
        lambda net: gemm(net, _SCALES, 1, transB=1),
    ],
    "negative or not finite": [
        lambda net: conv(net, scales=-_SCALES),
        lambda net: conv(net, scales=np.where(np.arange(16) == 3, np.nan, _SCALES)),
    ],
    "bias is not finite, or exceeds int32": [
        lambda net: biased(net, net.constant(np.full(16, np.nan, np.float32))),
        lambda net: biased(net, net.constant(np.full(16, 1e30, np.float32))),
    ],
    "weights and bias can exceed int32": [
        lambda net: biased(
            net,
            net.add(
                "DequantizeLinear",
                net.constant(np.full(16, 2**31 - 1, np.int32)),
                net.constant(np.float32(0.05) * np.float32(0.00217)),
            ),
        )
    ],
    "operand bias is an input of the model": [lambda net: biased(net, net.input("bias", (16,)))],
    "only an image to a vector": [
        lambda net: reshape(net, 1, 1, 16, 1),
        lambda net: reshape(net, 1, 1, 4, 4),
        lambda net: net.add(
            "Reshape",
            net.stored(net.add("MaxPool", net.image, kernel_shape=[1, 5])),
            net.constant([1, 1, 6, 16]),
        ),
    ],
    "shapes .* equal, or one pixel or one channel": [
        lambda net: net.add("Mul", net.image, net.stored(net.add("MaxPool", net.image, kernel_shape=[1, 5])))
    ],
}


@pytest.mark.parametrize(
    ("message", "number"), [(message, n) for message, made in REFUSED.items() for n in range(len(made))]
)
def test_an_operator_without_a_counterpart_is_refused(message, number):
    net = Handmade((1, 16, 6, 5))
    net.output(net.stored(REFUSED[message][number](net)))
    with pytest.raises(InputError, match=message):
        read_network(net.model())


def test_a_column_that_is_switched_off_may_have_any_bias():
    net = Handmade((1, 16, 6, 5))
    scales = np.full(16, 0.00217, np.float32)
    scales[3] = 1e-20
    bias = np.zeros(16, np.int32)
    bias[3] = 2**31 - 1
    stated = net.add("DequantizeLinear", net.constant(bias), net.constant(scales * np.float32(0.05)), axis=0)
    net.output(net.stored(net.add("Conv", net.image, net.weights(16, 16, 3, 3, scales=scales), stated)))
    (convolution,) = read_network(net.model()).operators
    assert (convolution.bias == bias).all()


def test_an_old_softmax_over_an_image_is_refused():
    net = Handmade((1, 16, 6, 5), opset=11)
    net.output(net.stored(net.add("Softmax", net.image, axis=1)))
    with pytest.raises(InputError, match="over all dimensions"):
        read_network(net.model())


def test_a_softmax_over_a_column_of_pixels_is_refused():
    net = Handmade((1, 1, 7, 1))
    net.output(net.stored(net.add("Softmax", net.add("Flatten", net.image), axis=1)))
    with pytest.raises(InputError, match="over another dimension"):
        read_network(net.model())


@pytest.mark.parametrize("what", ["input", "view", "constant"])
def test_an_output_that_is_not_quantized_is_refused(what):
    net = Handmade((1, 16, 6, 5))
    net.output(net.stored(conv(net)))
    made = {
        "input": lambda: "x",
        "view": lambda: net.add("Identity", "x"),
        "constant": lambda: net.constant(np.float32([1, 2])),
    }
    net.output(made[what]())
    with pytest.raises(InputError, match="output of the model must be quantized"):
        read_network(net.model())


def test_a_transpose_of_an_input_that_reverses_it_is_refused():
    net = Handmade((1, 16, 6, 5))
    net.output(net.stored(net.add("Transpose", net.input("y", (1, 3, 6, 5)))))
    with pytest.raises(InputError, match="perm"):
        read_network(net.model())


def test_an_output_keeps_the_type_of_its_own_scale():
    net = Handmade((1, 16, 6, 5))
    positive = net.real(net.quantized(net.add("Relu", net.image), 0.05, -128), 0.05, -128)
    output = net.quantized(positive, 0.05, 0, np.uint8)
    net.output(output, TensorProto.UINT8)
    network = read_network(net.model())
    assert network.values[output].unsigned


def test_without_a_zero_point_a_tensor_has_its_own_type():
    net = Handmade((1, 16, 6, 5), opset=21)
    scale = net.constant(np.float32(0.05))
    output = net.add("QuantizeLinear", conv(net), scale, output_dtype=TensorProto.INT8)
    net.output(output, TensorProto.INT8)
    value = read_network(net.model()).values[output]
    assert (value.unsigned, value.zero) == (False, 0)


def test_scales_of_another_precision_are_refused():
    net = Handmade((1, 16, 6, 5), opset=21)
    output = net.add(
        "QuantizeLinear",
        net.input("y", (1, 3), TensorProto.FLOAT16),
        net.constant(np.float16(0.05)),
        net.constant(np.int8(0)),
    )
    net.output(output, TensorProto.INT8)
    with pytest.raises(InputError, match="must be of type float32"):
        read_network(net.model())
