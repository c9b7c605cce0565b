"""open_nsfw on photographs, beside onnxruntime: integers of every operator, features of the float model."""

import functools

import numpy as np
import onnxruntime
import pytest

from hw.network.graph.onnx_reader import read_network
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
@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_every_operator_equals_the_integer_kernels_of_onnxruntime(name):
    content, network = model()
    known = {**network.constants, **stored_values(content, network, {INPUT: network_input(name)})}
    compared = 0
    for operator in network.operators:
        mine = result(operator, [known[each] for each in operator.inputs], network.values)
        differ = int((mine != known[operator.output]).sum())
        assert differ == 0, f"{operator.name}: {differ}"
        compared += mine.size
    assert compared > 6_000_000


@pytest.mark.soak
def test_features_are_near_those_of_the_float_model():
    """Eight bits of 53 layers after another leave 21 dB at least, 24 in the mean."""
    content, network = model()
    session = onnxruntime.InferenceSession(float_model())
    found = []
    for name in PHOTOGRAPHS:
        feeds = {INPUT: network_input(name)}
        (exact,) = session.run([FEATURES], feeds)
        stored = stored_values(content, network, feeds)[f"{FEATURES}_quantized"]
        value = network.values[f"{FEATURES}_quantized"]
        error = (stored.reshape(-1) - float(value.zero)) * value.scale - exact.reshape(-1)
        found.append(10 * np.log10((exact**2).sum() / (error**2).sum()))
    assert min(found) > 21
    assert np.mean(found) > 24
