"""open_nsfw on photographs, beside onnxruntime: integers of every operator, features of the float model."""

import functools
from collections import Counter

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
def test_operators_equal_the_integer_kernels_of_onnxruntime():
    """Sums apart: onnxruntime adds in float32, whose error moves results that are next to a tie."""
    content, network = model()
    differ, compared = Counter(), Counter()
    for name in PHOTOGRAPHS:
        known = {**network.constants, **stored_values(content, network, {INPUT: network_input(name)})}
        for operator in network.operators:
            mine = result(operator, [known[each] for each in operator.inputs], network.values)
            apart = np.abs(mine.astype(int) - known[operator.output])
            assert apart.max() <= 1, operator.name
            differ[operator.kind] += int(apart.sum())
            compared[operator.kind] += apart.size
    assert compared.total() > 40_000_000
    assert differ.pop("add") <= 2e-6 * compared["add"]
    assert not differ.total()


@pytest.mark.soak
def test_features_are_near_those_of_the_float_model():
    """Eight bits, 53 layers one after the other, leave 20 dB at least and 24 in the mean."""
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
    assert min(found) > 20
    assert np.mean(found) > 24
