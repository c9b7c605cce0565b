"""Compiled networks on the golden model of programs: bytes as of the golden model of operators."""

import contextlib
from dataclasses import replace

import numpy as np
import pytest

from hw.errors import InputError
from hw.network.commands import MatrixCommand
from hw.network.compile.compile import compile_network
from hw.network.graph.network import Convolution, Network, Sum, Value
from hw.network.graph.onnx_reader import read_network
from sim.golden.network import execute
from sim.golden.program import run
from tests.support.networks.builder import Builder
from tests.support.networks.integer_models import NETWORKS, integer_model
from tests.support.networks.pairs import Scales
from tests.support.networks.plans import QUICK
from tests.support.networks.quantized import quantized, random_network


def drawn_inputs(network, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: rng.integers(-128, 128, network.values[name].shape).astype(np.int8) for name in network.inputs
    }


def compiled(model, scratchpad_bytes=1 << 18):
    network = read_network(quantized(model))
    return network, compile_network(network, scratchpad_bytes=scratchpad_bytes, techniques=QUICK)


def check(network, made):
    inputs = drawn_inputs(network)
    wanted, found = execute(network, inputs), run(made, inputs)
    assert set(found) == set(network.outputs)
    for name, elements in found.items():
        assert (elements == wanted[name]).all(), name


@pytest.mark.parametrize("seed", range(6))
def test_random_networks(seed):
    check(*compiled(random_network(seed)))


@pytest.mark.parametrize("seed", range(6))
def test_random_networks_in_a_small_scratchpad(seed):
    """Tensors are spilled and cut into bands."""
    check(*compiled(random_network(seed), 12288))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(6, 200))
def test_further_random_networks(seed):
    """A third runs in a scratchpad that is hardly large enough, where a plan exists."""
    network = read_network(quantized(random_network(seed), unsigned=seed % 4 == 1, seed=seed))
    sizes = [1 << 14, 1 << 18] if seed % 3 == 0 else [1 << 18]
    for size in sizes:
        with contextlib.suppress(InputError):
            check(network, compile_network(network, scratchpad_bytes=size, techniques=QUICK))
            return
    pytest.fail("no plan")


@pytest.mark.parametrize(("name", "side"), [("squeezenet", 64), ("mobilenet_v2", 32)])
def test_published_networks_of_small_images(name, side):
    network = read_network(integer_model(name, side))
    check(network, compile_network(network, scratchpad_bytes=1 << 20))


@pytest.mark.soak
@pytest.mark.parametrize("name", NETWORKS)
def test_published_networks(name):
    network = read_network(integer_model(name))
    check(network, compile_network(network, scratchpad_bytes=4 << 20))


#: Scales of two operands and their sum, with an exception that differs in the other order.
_SCALES = Scales(
    scales=(2.509516477584839, 1.9802117347717285, 5.544975280761719), zeros=(54, 33, 123), unsigned=True
)


@pytest.mark.parametrize("joins", [True, False])
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_sums_of_all_bytes_in_either_order(joins, first, last):
    """In the drain and in the vector unit.  Operand 0 is a convolution's result, by the unit matrix."""
    size = (64, 64, 16)
    left, right, total = (replace(value, shape=size) for value in _SCALES.values)
    copied = replace(left, name="copied")
    convolution = Convolution(
        name="copy",
        inputs=("v0",),
        output="copied",
        weights=np.eye(16, dtype=np.int8)[None, None],
        bias=np.zeros(16, np.int32),
        weight_scales=np.ones(16, np.float32),
    )
    names = ["copied" if joins else "v0", "v1"]
    inputs = names[first], names[1 - first]
    added = Sum(name="sum", inputs=inputs, output="v2", last=last)
    network = Network(
        name="sum",
        values={value.name: value for value in (left, copied, right, total)},
        operators=(convolution, added) if joins else (added,),
        inputs=("v0", "v1"),
        outputs=("v2",),
        constants={},
    )
    made = compile_network(network, scratchpad_bytes=1 << 19, techniques=QUICK)
    additions = {each.addition for commands in made.lowered.commands for each in commands}
    assert len(additions) == 1
    # Only where operand 0 is added last is there an exception.
    assert len(additions.pop().exceptions) == int(first == last)
    stored = np.meshgrid(np.arange(-128, 128), np.arange(-128, 128), indexing="ij")
    inputs = {
        name: side.astype(np.int8).reshape(size) for name, side in zip(("v0", "v1"), stored, strict=True)
    }
    assert (run(made, inputs)["v2"] == execute(network, inputs)["v2"]).all()


def image(*shape):
    net = Builder("one")
    return net, net.input("image", 1, *shape)


def test_bands_of_a_convolution_read_across_their_borders():
    net, x = image(16, 40, 12)
    net.output(net.conv(net.conv(x, 32, name="a", kernel=3), 16, name="b", kernel=5))
    network, made = compiled(net.model(), 16384)
    commands = [command for step in made.lowered.commands for command in step]
    assert len(made.plan.steps) > 2
    assert len(commands) > len(made.plan.steps)  # rows whose taps lie in two bands
    check(network, made)


@pytest.mark.parametrize(
    ("stride", "kernel", "channels"), [(2, 7, 3), (2, 3, 3), (4, 11, 3), (2, 2, 4), (1, 3, 3)]
)
def test_first_layers_share_granules(stride, kernel, channels):
    net, x = image(channels, 23, 26)
    net.output(net.conv(x, 24, name="a", kernel=kernel, stride=stride))
    network, made = compiled(net.model())
    (command,) = (command for step in made.lowered.commands for command in step)
    convolution = next(each for each in network.operators if isinstance(each, Convolution))
    plain = convolution.weights.shape[0] * -(-kernel * 16 // 64)
    assert command.taps < plain
    check(network, made)


@pytest.mark.parametrize(
    ("channels", "outputs", "groups", "commands", "step"),
    [(40, 40, 40, 1, 4), (64, 64, 2, 2, 0), (128, 128, 16, 1, 4), (20, 30, 10, 1, 0)],
)
def test_groups(channels, outputs, groups, commands, step):
    net, x = image(channels, 7, 6)
    net.output(net.conv(x, outputs, name="a", kernel=3, groups=groups))
    network, made = compiled(net.model())
    found = [command for each in made.lowered.commands for command in each]
    assert len(found) == commands
    assert found[0].group_step == step
    check(network, made)


def test_two_pixels_a_cycle_where_columns_allow():
    net, x = image(64, 9, 7)
    net.output(net.conv(x, 32, name="a"))
    network, made = compiled(net.model())
    (command,) = (command for step in made.lowered.commands for command in step)
    assert isinstance(command, MatrixCommand)
    assert command.halves
    check(network, made)


def test_concat_is_written_in_place_and_sums_join_their_convolution():
    net, x = image(16, 8, 8)
    left, right = net.conv(x, 24, name="left"), net.relu(net.conv(x, 16, name="right", kernel=3))
    both = net.concat(left, right, name="both")
    y = net.conv(both, 40, name="c")
    net.output(net.add("Add", y, net.conv(both, 40, name="d"), name="sum"))
    network, made = compiled(net.model())
    kinds = [[type(command).__name__ for command in step] for step in made.lowered.commands]
    assert kinds == [["MatrixCommand"] * 2, ["MatrixCommand"], ["MatrixCommand"]]
    check(network, made)


def test_a_sum_beyond_the_drains_factors_runs_on_the_vector_unit():
    """An addend of more than four steps of the result needs a factor of more than 26 bits."""
    numbers = np.random.default_rng(0)
    shape, scales = (3, 4, 16), {"x": 1.0, "a": 1.0, "b": 0.25, "y": 0.125}
    values = {name: Value(name=name, shape=shape, scale=scale, zero=0) for name, scale in scales.items()}
    convolution = Convolution(
        name="a",
        inputs=("x",),
        output="a",
        weights=numbers.integers(-3, 4, (1, 1, 16, 16)).astype(np.int8),
        bias=np.zeros(16, np.int32),
        weight_scales=np.full(16, 0.001, np.float32),
    )
    network = Network(
        name="wide",
        values=values,
        operators=(convolution, Sum(name="y", inputs=("a", "b"), output="y")),
        inputs=("x", "b"),
        outputs=("y",),
        constants={},
    )
    made = compile_network(network, scratchpad_bytes=1 << 14)
    kinds = [type(command).__name__ for step in made.lowered.commands for command in step]
    assert kinds == ["MatrixCommand", "VectorCommand"]
    check(network, made)
