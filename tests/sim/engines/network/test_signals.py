"""A quantized network beside its float model and a reference."""

import numpy as np
import pytest

from hw.errors import InputError
from hw.network.driver.tensors import stored_inputs
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.quantize import quantize
from sim.engines.network.compare.layerwise import layers
from sim.engines.network.compare.signals import first_difference, float_names, in_order, signals
from sim.golden.network import execute
from tests.support.networks.builder import Builder
from tests.support.networks.integer_models import integer_model
from tests.support.networks.quantized import drawn, samples


def small():
    net = Builder("small")
    image = net.input("image", 1, 3, 9, 8)
    x = net.relu(net.conv(image, 24, name="a", kernel=3))
    y = net.add("Add", net.conv(x, 24, name="b"), x, name="sum")
    net.output(net.dense(net.add("Flatten", y, name="flat", width=24 * 72), 5, name="classes"))
    return drawn(net.model())


@pytest.fixture(scope="module", params=[False, True], ids=["qdq", "qoperator"])
def models(request):
    exact = small()
    model = quantize(exact, samples(exact, 4), operators=request.param)
    return model, read_network(model), exact


def one(exact):
    return {name: array[:1] for name, array in samples(exact, seed=9).items()}


def test_every_result_has_its_tensor_in_the_float_model(models):
    model, network, exact = models
    names = float_names(model, network, exact)
    kinds = {operator.output: operator.kind for operator in network.operators}
    assert [(kinds[name], tensor) for name, tensor in names.items()] == [
        ("conv", "a.relu"),
        ("conv", "b"),
        ("add", "sum"),
        ("conv", "classes"),
    ]


def test_signals_are_those_of_eight_bits(models):
    model, network, exact = models
    found = signals(model, network, exact, samples(exact, 3, seed=9))
    assert len(found) == 4
    for signal in found:
        assert 20 < signal.decibels < 60
        assert 0 < signal.largest < 60


def test_the_first_tensor_that_differs(models):
    model, network, exact = models
    tensors = one(exact)
    values = execute(network, stored_inputs(network, tensors))
    names = float_names(model, network, exact)
    last, before = network.operators[-1].output, network.operators[-2].output
    image = values[before].transpose(2, 0, 1)[None]
    same = {before: image, names[last]: values[last].reshape(1, -1)}
    assert first_difference(model, network, tensors, same) is None
    wrong = image.copy()
    wrong[0, 7, 2, 3] ^= 2
    found = first_difference(model, network, tensors, {**same, before: wrong})
    assert (found.operator, found.tensor) == (network.operators[-2].name, before)
    assert (found.differ, found.elements, found.largest, found.at) == (1, 9 * 8 * 24, 2, (2, 3, 7))


def test_a_reference_of_real_numbers_is_compared_by_the_next_steps(models):
    model, network, exact = models
    tensors = one(exact)
    operator = network.operators[0]
    value = network.values[operator.output]
    stored = execute(network, stored_inputs(network, tensors))[operator.output]
    real = ((stored.astype(float) - value.zero + 0.3) * value.scale).transpose(2, 0, 1)
    assert first_difference(model, network, tensors, {operator.output: real}) is None
    found = first_difference(model, network, tensors, {operator.output: real + value.scale})
    assert found.largest == 1


def test_wrong_references_are_refused(models):
    model, network, exact = models
    last = network.operators[-1].output
    with pytest.raises(InputError, match="not 'nothing'"):
        first_difference(model, network, one(exact), {"nothing": np.zeros(5)})
    with pytest.raises(InputError, match="NaN"):
        first_difference(model, network, one(exact), {last: np.full(5, np.nan)})
    with pytest.raises(InputError, match="1 x 1 x 5 elements"):
        first_difference(model, network, one(exact), {last: np.zeros(6, np.int8)})
    with pytest.raises(InputError, match="samples"):
        signals(model, network, exact, {"image": np.zeros((0, 3, 9, 8))})


def test_orders_of_dimensions():
    image = np.arange(24).reshape(2, 3, 4)
    assert (in_order(image, (2, 3, 4)) == image).all()
    assert (in_order(image.transpose(2, 0, 1)[None], (2, 3, 4)) == image).all()
    assert (in_order(image.transpose(2, 0, 1).reshape(1, 24), (2, 3, 4)) == image).all()


def test_layers_are_the_network_in_parts():
    network = read_network(integer_model("squeezenet", 40))
    rng = np.random.default_rng(0)
    (image,) = network.inputs
    known = {image: rng.integers(-128, 128, network.values[image].shape).astype(np.int8)}
    wanted, parts = execute(network, known), list(layers(network))
    for part in parts:
        known |= execute(part, {name: known[name] for name in part.inputs})
    assert sum(len(part.operators) for part in parts) == len(network.operators)
    assert len(parts) < len(network.operators)
    for name in network.outputs:
        assert (known[name] == wanted[name]).all()
