"""Quantized models become networks of integers, in both forms; others are refused by name."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from hw.errors import InputError
from hw.network.graph.network import AveragePool, Convolution, Table
from hw.network.graph.onnx_reader import read_network
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import drawn, quantized


def flattening():
    """Return a convolution, and a product that reads its flattened image."""
    net = Builder("flattening")
    x = net.conv(net.input("image", 1, 3, 5, 4), 6, name="first", kernel=3)
    flat = net.add("Flatten", x, name="flat", width=6 * 5 * 4)
    net.output(net.dense(flat, 5, name="classes"))
    return net.model()


@pytest.mark.parametrize("unsigned", [False, True])
def test_both_forms_are_the_same_network(unsigned):
    forms = [
        read_network(quantized(flattening(), operators=operators, unsigned=unsigned))
        for operators in (True, False)
    ]
    first, second = ([each for each in form.operators if isinstance(each, Convolution)] for form in forms)
    assert [each.window for each in first] == [each.window for each in second]
    for left, right in zip(first, second, strict=True):
        assert (left.weights == right.weights).all()
        assert np.abs(left.bias.astype(int) - right.bias).max() <= 1
        assert np.allclose(left.weight_scales, right.weight_scales)
    assert forms[0].macs == forms[1].macs == 5 * 4 * 27 * 6 + 120 * 5


def test_a_product_reads_a_flattened_image_as_a_kernel_of_its_size():
    network = read_network(quantized(flattening()))
    product = next(each for each in network.operators if each.name.startswith("classes"))
    assert product.window.kernel == (5, 4)
    assert product.weights.shape == (5, 4, 6, 5)


def test_what_is_not_quantized_is_named_at_once():
    net = Builder("plain")
    x = net.conv(net.input("image", 1, 3, 5, 4), 6, name="first", kernel=3)
    net.output(net.add("Sigmoid", x, name="second"))
    with pytest.raises(InputError, match=r"first .*input of the model that is not quantized"):
        read_network(drawn(net.model()))


def test_every_operator_that_is_not_supported_is_named_at_once_with_what_would_replace_it():
    def change(model):
        (output,) = (each.name for each in model.graph.output)
        before = output
        for kind, more in (("Selu", ()), ("Tanh", ()), ("Sub", (output,))):
            model.graph.node.append(helper.make_node(kind, [before, *more], [kind], name=f"my_{kind}"))
            before = kind
        model.graph.output.append(helper.make_tensor_value_info(before, TensorProto.FLOAT, [1, 5]))

    wanted = r"my_Selu \(Selu: there is no such .*; instead: Elu\); my_Sub \(Sub: .*; instead: Mul of"
    with pytest.raises(InputError, match=wanted):
        read_network(changed(change))


def changed(change):
    model = onnx.load_model_from_string(quantized(flattening(), operators=True))
    change(model)
    return model.SerializeToString()


def node_of(model, kind):
    return next(node for node in model.graph.node if node.op_type == kind)


def parameter(model, name):
    return next(each for each in model.graph.initializer if each.name == name)


def test_weights_that_are_computed_are_refused():
    def change(model):
        weights = node_of(model, "QLinearConv").input[3]
        shape = list(parameter(model, weights).dims)
        model.graph.initializer.remove(parameter(model, weights))
        model.graph.input.append(helper.make_tensor_value_info(weights, TensorProto.INT8, shape))

    with pytest.raises(InputError, match=r"not quantized constants|scale"):
        read_network(changed(change))


def test_a_tensor_read_with_another_scale_is_refused():
    def change(model):
        model.graph.initializer.append(numpy_helper.from_array(np.float32(0.5), "other"))
        node_of(model, "QGemm").input[1] = "other"

    with pytest.raises(InputError, match="another scale than it was written with"):
        read_network(changed(change))


def test_a_batch_is_refused():
    def change(model):
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
        del model.graph.value_info[:]

    with pytest.raises(InputError, match="batch of 2"):
        read_network(changed(change))


def test_a_tensor_with_a_second_scale_keeps_its_other_readers():
    """One reader wants another scale; the others still read the tensor as it was."""
    model = onnx.load_model_from_string(quantized(flattening()))
    output = model.graph.output[0].name
    last = next(node for node in model.graph.node if output in node.output)
    assert last.op_type == "DequantizeLinear"
    zero = last.input[2]
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0.125), "other"))
    model.graph.node.extend(
        [
            helper.make_node("QuantizeLinear", [output, "other", zero], ["copy"]),
            helper.make_node("Sigmoid", [output], ["real"]),
            helper.make_node("QuantizeLinear", ["real", "other", zero], ["mapped"]),
        ]
    )
    for name in ("copy", "mapped"):
        model.graph.output.append(helper.make_tensor_value_info(name, TensorProto.INT8, None))
    network = read_network(model.SerializeToString())
    copy, mapped = (
        next(each for each in network.operators if each.output == name) for name in ("copy", "mapped")
    )
    assert copy.inputs == mapped.inputs
    assert (copy.function, mapped.function) == ("Requantize", "Sigmoid")


def test_a_result_without_a_scale_is_refused():
    def change(model):
        node = node_of(model, "QGemm")
        del node.input[7:]

    with pytest.raises(InputError, match="QGemm: its result has no scale"):
        read_network(changed(change))


def test_a_scale_that_is_computed_is_refused():
    def change(model):
        model.graph.input.append(helper.make_tensor_value_info("scale", TensorProto.FLOAT, []))
        node_of(model, "QLinearConv").input[6] = "scale"

    with pytest.raises(InputError, match="scale or zero point scale is no constant"):
        read_network(changed(change))


@pytest.mark.parametrize("axes", [[2, 3], [-1, -2]])
def test_a_mean_takes_its_axes_as_an_operand(axes):
    net = Builder("mean")
    x = net.conv(net.input("image", 1, 3, 5, 4), 6, name="first")
    mean = net.add("ReduceMean", x, net.constant(axes, TensorProto.INT64), name="mean", keepdims=0)
    net.output(net.dense(mean, 5, name="classes"))
    network = read_network(quantized(net.model()))
    (pool,) = (each for each in network.operators if isinstance(each, AveragePool))
    assert pool.window.kernel == (5, 4)


def test_results_beyond_float32_are_clamped():
    """exp(89) is infinite in float32."""
    net = Builder("large")
    x = net.conv(net.input("image", 1, 3, 5, 4), 6, name="first")
    net.output(net.add("Exp", x, name="exp"))
    model = onnx.load_model_from_string(quantized(net.model()))
    scale = next(
        node.input[1]
        for node in model.graph.node
        if node.op_type == "QuantizeLinear" and "first" in node.input[0]
    )
    for tensor in model.graph.initializer:
        if tensor.name == scale:
            tensor.CopyFrom(numpy_helper.from_array(np.float32(1.0), tensor.name))
    network = read_network(model.SerializeToString())
    (table,) = (each for each in network.operators if isinstance(each, Table))
    assert table.results[-1] == 127
    assert (np.diff(table.results.astype(int)) >= 0).all()
