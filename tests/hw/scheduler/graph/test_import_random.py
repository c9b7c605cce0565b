"""Random networks: every shape and all multiply-accumulates are onnxruntime's."""

import pytest

from hw.errors import InputError
from hw.scheduler.graph.importers.onnx_model import import_onnx
from tests.hw.scheduler.graph.random_networks import Network


def refused(seed):
    """Compare a network; return the text of a refusal."""
    network = Network(seed)
    content, dimensions = network.model()
    try:
        graph = import_onnx(content, dimensions=dimensions)
    except InputError as error:
        return [str(error)]
    shapes = {tensor.name: tensor.shape for tensor in graph.tensors if tensor.name in network.shapes}
    assert shapes == {name: network.shapes[name] for name in shapes}, seed
    assert sum(operator.macs for operator in graph.operators) == network.macs, seed
    read = {name for operator in graph.operators for name in operator.inputs}
    assert not read - {tensor.name for tensor in graph.tensors}
    return []


@pytest.mark.parametrize(("first", "count"), [(0, 40), pytest.param(1000, 400, marks=pytest.mark.soak)])
def test_random_networks(first, count):
    words = [word for seed in range(first, first + count) for word in refused(seed)]
    assert len(words) <= count // 20, words
