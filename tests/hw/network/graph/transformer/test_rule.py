"""The rule by which a transformer is quantized, its file, and the network of integers."""

from dataclasses import fields, replace

import numpy as np
import onnx
import pytest

from hw.errors import InputError
from hw.network.graph.network import Convolution, LayerNorm, Table
from hw.network.graph.transformer.blocks import Function
from hw.network.graph.transformer.network import network_of, read_tokens
from hw.network.graph.transformer.ranges import measured
from hw.network.graph.transformer.reader import read_blocks
from hw.network.graph.transformer.rule import Rule, quantized
from hw.network.graph.transformer.writer import written
from tests.support.networks.sentences import POSITIONS, model, sentences, small

_SEGMENTS = (5, 1, 12)


def same(one, other):
    """Return whether two fields of operators are equal."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return one == other


@pytest.mark.parametrize("forms", [("mask", "heads"), ("before", "causal", "gelu")])
def test_the_file_is_the_same_network(forms):
    blocks = small(*forms)
    mine, read = network_of(blocks, _SEGMENTS), read_tokens(written(blocks), _SEGMENTS)
    assert (mine.values, mine.inputs, mine.outputs) == (read.values, read.inputs, read.outputs)
    assert all(same(array, read.constants[name]) for name, array in mine.constants.items())
    for one, other in zip(mine.operators, read.operators, strict=True):
        names = [each.name for each in fields(one) if each.name != "name"]
        assert all(same(getattr(one, name), getattr(other, name)) for name in names)


def test_sums_and_their_operands_are_wide_and_products_read_bytes():
    network = network_of(small("gelu"), _SEGMENTS)
    bits = {name: value.bits for name, value in network.values.items()}
    for operator in network.operators:
        read = {bits[name] for name in operator.inputs}
        wide = operator.kind in ("add", "layer_norm", "token_mean")
        assert read == ({32} if operator.kind == "gather" else {16} if wide else {8})
    norms = [each for each in network.operators if isinstance(each, LayerNorm)]
    # Each is made for a sum and for a product, but for the last one, whose mean is taken.
    assert len(norms) == 2 * 5 - 1


def test_an_equalized_product_is_the_same_product():
    blocks, plain = small("gelu"), small("gelu", equalize=0)
    for one, other in zip(network_of(blocks, (4,)).operators, network_of(plain, (4,)).operators, strict=True):
        if isinstance(one, Convolution) and one.inputs[0].endswith(":equalized"):
            gains = [
                next(each for each in network_of(made, (4,)).operators if each.output == one.inputs[0]).gain
                for made in (blocks, plain)
            ]
            weights = [
                gain[:, np.newaxis] * each.weights[0, 0] * each.weight_scales
                for gain, each in zip(gains, (one, other), strict=True)
            ]
            assert np.ptp(np.log(gains[0] / gains[1])) > 0.1
            assert np.abs(weights[0] - weights[1]).max() < 0.02 * np.abs(weights[1]).max()


def test_groups_behind_a_function_have_scales_a_power_of_two_apart():
    source = model("gelu")
    proto = onnx.load_model_from_string(source)
    # The second group's results are a fifth of the first one's.
    (node,) = (each for each in proto.graph.node if each.op_type == "Gelu")
    (bias,) = (each for each in proto.graph.node if each.output[0] == node.input[0])
    for name in (
        bias.input[0],
        next(each for each in proto.graph.node if each.output[0] == bias.input[1]).input[1],
    ):
        (parameter,) = (each for each in proto.graph.initializer if each.name == name)
        array = onnx.numpy_helper.to_array(parameter).copy()
        array[..., 64:] *= 0.2
        parameter.CopyFrom(onnx.numpy_helper.from_array(array, name))
    source = proto.SerializeToString()
    blocks = read_blocks(source, tokens=POSITIONS)
    ranges = measured(blocks, source, sentences(8))
    network = network_of(quantized(blocks, ranges, Rule()), (6,))
    (table,) = (each for each in network.operators if isinstance(each, Table))
    value = network.values[table.output]
    assert value.group_shifts[0] == 0
    assert value.group_shifts[1] in (1, 2)
    assert table.results.shape == (2, 256)
    # A result of the second group is as many times as large as the first one's, but for its rounding.
    first, second = (
        (row.astype(int) - value.zero) / 2.0**shift
        for row, shift in zip(table.results, value.group_shifts, strict=True)
    )
    few = (table.results[1] < 127) & (table.results[1] > -128)
    assert np.abs(first - second)[few].max() <= 1
    one = network_of(quantized(blocks, ranges, Rule(groups=False)), (6,))
    assert not one.values[table.output].group_shifts


@pytest.mark.parametrize(
    ("segments", "message"),
    [
        ((POSITIONS + 1,), "tokens of a sentence must be as many as the model has rows for"),
        ((0,), "tokens of a sentence"),
        ((4000, 97), "of all"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(segments, message):
    with pytest.raises(InputError, match=message):
        read_tokens(written(small("gelu")), segments)


def test_a_float_model_is_no_network():
    with pytest.raises(InputError, match="its result is not quantized: see `loomwork quantize`"):
        read_tokens(model(), (4,))


def test_a_tensor_of_two_widths_is_refused():
    source = model("gelu")
    blocks = read_blocks(source, tokens=POSITIONS)
    output = next(block.output for block in blocks.blocks if isinstance(block, Function))
    twice = replace(blocks, outputs={"inner": output})
    with pytest.raises(InputError, match="only a LayerNorm has two forms"):
        quantized(twice, measured(twice, source, sentences(2)), Rule())
