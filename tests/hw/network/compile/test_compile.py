"""A plan that was made before gives the same commands, and serves its own network only."""

from dataclasses import replace

import pytest

from hw.errors import InputError
from hw.network.compile.compile import compile_network, lower_plan
from hw.network.graph.onnx_reader import read_network
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized


def network_of(*, chained, channels=16, rows=8):
    """Return two convolutions, one behind the other or both behind the input."""
    net = Builder("two")
    x = net.input("image", 1, 16, rows, 8)
    first = net.conv(x, channels, name="first", kernel=3)
    net.output(first)
    net.output(net.conv(first if chained else x, channels, name="second", kernel=3))
    return read_network(quantized(net.model()))


def test_a_plan_is_lowered_again_to_the_same_commands():
    network = network_of(chained=True, rows=30)
    made = compile_network(network, scratchpad_bytes=6144)
    again = lower_plan(network, made.plan, columns=64)
    assert len(made.lowered.commands) > 2
    assert again.lowered.commands == made.lowered.commands
    assert again.lowered.taps == made.lowered.taps


@pytest.mark.parametrize(
    "other", [{"chained": False}, {"chained": True, "rows": 9}, {"chained": True, "channels": 32}]
)
def test_a_plan_of_another_network_is_refused(other):
    plan = compile_network(network_of(chained=True), scratchpad_bytes=1 << 16).plan
    with pytest.raises(InputError, match="plan must be of the network two: it is of another one"):
        lower_plan(network_of(**other), plan, columns=64)


def test_a_plan_in_other_words_is_refused():
    network = network_of(chained=True)
    plan = compile_network(network, scratchpad_bytes=1 << 16).plan
    with pytest.raises(InputError, match="plan must be of"):
        lower_plan(network, replace(plan, word_bytes=32), columns=64)


def test_a_plan_without_rows_is_refused():
    network = network_of(chained=True)
    plan = compile_network(network, scratchpad_bytes=1 << 16).plan
    tensors = tuple(replace(tensor, shape=(tensor.size_bytes,)) for tensor in plan.graph.tensors)
    flat = replace(plan, graph=replace(plan.graph, tensors=tensors))
    with pytest.raises(InputError, match="plan must be of"):
        lower_plan(network, flat, columns=64)
