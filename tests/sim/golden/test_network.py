"""The golden model of networks beside onnxruntime: every operator, on onnxruntime's own inputs."""

import numpy as np
import pytest

from hw.network.graph.onnx_reader import read_network
from sim.golden.network import execute, result
from tests.support.networks.quantized import quantized, random_network, samples
from tests.support.networks.runtime import stored_values

#: Averages and tables of a QDQ graph are floats, whose ties fall either way.
_FLOAT = ("average_pool", "table")


def differences(model, seed):
    """Return the elements of each kind that differ, and all elements, operator by operator."""
    network = read_network(model)
    feeds = {name: array[:1] for name, array in samples(random_network(seed), seed=seed + 1).items()}
    known = {**network.constants, **stored_values(model, network, feeds)}
    differ, count = {}, 0
    for operator in network.operators:
        mine = result(operator, [known[name] for name in operator.inputs], network.values)
        theirs = known.setdefault(operator.output, mine)
        apart = np.abs(mine.astype(int) - theirs)
        assert apart.max() <= 1
        count += apart.size
        differ[operator.kind] = differ.get(operator.kind, 0) + int((apart > 0).sum())
    return differ, count


@pytest.mark.parametrize("seed", [0, 2, 4, 6, 8, 9, 12, 15, 19, 20])
def test_operators_equal_the_integer_kernels_of_onnxruntime(seed):
    model = quantized(random_network(seed), operators=True, unsigned=bool(seed % 4), seed=seed)
    differ, count = differences(model, seed)
    table = differ.pop("table", 0)
    assert not any(differ.values())
    assert table <= 1e-3 * count


@pytest.mark.parametrize("seed", range(20))
def test_operators_equal_a_float_graph_up_to_ties(seed):
    differ, _ = differences(quantized(random_network(seed), seed=seed), seed)
    assert not any(number for kind, number in differ.items() if kind not in _FLOAT)


def test_a_network_runs_from_inputs_to_outputs():
    model = quantized(random_network(4), operators=True, seed=4)
    network = read_network(model)
    feeds = {name: array[:1] for name, array in samples(random_network(4), seed=5).items()}
    theirs = stored_values(model, network, feeds)
    mine = execute(network, {name: theirs[name] for name in network.inputs})
    for name in network.outputs:
        assert (mine[name] == theirs[name]).all()
