"""open_nsfw on photographs, beside onnxruntime: integers of every operator, features of the float model."""

import functools
from collections import Counter

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from hw.network.graph.onnx_reader import read_network
from sim.engines.network.demo.photograph import decibels
from sim.engines.network.nsfw import (
    CALIBRATION,
    FEATURES,
    INPUT,
    PHOTOGRAPHS,
    float_model,
    network_input,
    picture,
    quantized_model,
)
from sim.golden.network import result
from tests.support.networks.runtime import stored_values


@functools.cache
def model():
    found = quantized_model()
    return found, read_network(found, name="open_nsfw")


def test_photographs_are_of_the_networks_size_and_differ():
    names = (*PHOTOGRAPHS, *CALIBRATION)
    assert all(picture(name).shape == (224, 224, 3) for name in names)
    assert len({picture(name).tobytes() for name in names}) == len(names) == 9


@pytest.mark.soak
def test_operators_equal_the_integer_kernels_of_onnxruntime():
    content, network = model()
    differ, compared = Counter(), Counter()
    for name in PHOTOGRAPHS:
        known = {**network.constants, **stored_values(content, network, {INPUT: network_input(name)})}
        for operator in network.operators:
            mine = result(operator, [known[each] for each in operator.inputs], network.values)
            apart = np.abs(mine.astype(int) - known[operator.output])
            differ[operator.kind] += int(apart.sum())
            compared[operator.kind] += apart.size
    assert compared.total() > 40_000_000
    assert compared["add"] > 13_000_000
    assert not differ.total(), differ


@pytest.fixture(scope="module")
def exact():
    """Return the float model's features of each photograph."""
    session = onnxruntime.InferenceSession(float_model())
    return {name: session.run([FEATURES], {INPUT: network_input(name)})[0] for name in PHOTOGRAPHS}


@pytest.mark.soak
def test_features_are_near_those_of_the_float_model(exact):
    """Eight bits, 53 layers one after the other, leave 20 dB at least and 24 in the mean."""
    content, network = model()
    value = network.values[f"{FEATURES}_quantized"]
    found, rounded = [], []
    for name in PHOTOGRAPHS:
        stored = stored_values(content, network, {INPUT: network_input(name)})[value.name].reshape(-1)
        wanted = exact[name].reshape(-1)
        found.append(decibels(wanted, (stored - float(value.zero)) * value.scale))
        nearest = np.clip(np.rint(wanted / value.scale) + value.zero, -128, 127)
        rounded.append(decibels(wanted, (nearest - value.zero) * value.scale))
    assert min(found) > 20
    assert np.mean(found) > 24
    # The features' own rounding is a twentieth of the noise.
    assert 37 < np.mean(rounded) < 38


@pytest.mark.soak
def test_features_with_weights_of_eight_bits_and_activations_that_are_not_rounded(exact):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(unrounded(quantized_model(operators=False)), options)
    found = [
        decibels(exact[name], session.run([FEATURES], {INPUT: network_input(name)})[0].reshape(-1))
        for name in PHOTOGRAPHS
    ]
    assert min(found) > 20
    assert 26 < np.mean(found) < 28


def unrounded(content):
    """Return a model in QDQ form whose activations keep their ranges and are not rounded."""
    proto = onnx.load_model_from_string(content)
    constants = {each.name: numpy_helper.to_array(each) for each in proto.graph.initializer}
    ranges = []
    for node in proto.graph.node:
        if node.op_type == "QuantizeLinear":
            scale, zero = (constants[name].astype(float) for name in node.input[1:])
            ends = [f"{node.output[0]}_{end}" for end in ("least", "most")]
            for end, stored in zip(ends, (-128, 127), strict=True):
                bound = np.array((stored - zero) * scale, np.float32)
                ranges.append(numpy_helper.from_array(bound, end))
            node.CopyFrom(helper.make_node("Clip", [node.input[0], *ends], node.output))
        elif node.op_type == "DequantizeLinear" and node.input[0] not in constants:
            node.CopyFrom(helper.make_node("Identity", node.input[:1], node.output))
    proto.graph.initializer.extend(ranges)
    return proto.SerializeToString()
