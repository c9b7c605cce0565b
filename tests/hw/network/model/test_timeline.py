"""Cycles of programs without gates: parts add up, and each resource bounds the layers that it should."""

from dataclasses import replace

import pytest

from hw.board import load_board
from hw.errors import LoomworkError
from hw.network.commands import MatrixCommand
from hw.network.compile.compile import compile_network
from hw.network.config import NetworkConfig
from hw.network.graph.onnx_reader import read_network
from hw.network.matrix.timing import TAKE_CYCLES, sweep_cycles
from hw.network.model.latency import OFFER_CYCLES, PIXEL_CYCLES, drain_cycles
from hw.network.model.layers import layers_of
from hw.network.model.memory import MemoryModel
from hw.network.model.timeline import Bound, timeline
from hw.network.predict import predict
from hw.network.program.lower import program_of
from hw.network.program.order import order
from tests.hw.network.model.memories import ideal
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized

BOARD = load_board("u55c")
CONFIG = NetworkConfig()


def program_for(build, *shape, scratchpad_bytes=1 << 20):
    net = Builder("some")
    net.output(build(net, net.input("image", 1, *shape)))
    network = read_network(quantized(net.model()))
    return program_of(compile_network(network, scratchpad_bytes=scratchpad_bytes))


def layers(net, x):
    x = net.conv(x, 64, name="wide", kernel=3)
    x = net.conv(x, 512, name="thin", kernel=1)
    x = net.pool(x, name="pool", kernel=12, stride=12, padded=False)
    return net.conv(x, 1024, name="deep", kernel=1)


def residual(net, x):
    first = net.conv(x, 32, name="first", kernel=3)
    second = net.conv(net.conv(first, 32, name="between", kernel=3), 32, name="second", kernel=3)
    return net.add("Add", first, second, name="sum")


@pytest.fixture(scope="module")
def program():
    return program_for(layers, 64, 12, 12)


def test_parts_add_up(program):
    played = timeline(program, CONFIG, BOARD)
    end = played.load_cycles
    for made in played.steps:
        assert end < made.begin <= end + 3  # the first step waits for its row
        assert sum(made.spent.values()) == made.cycles
        assert all(cycles >= 0 for cycles in made.spent.values())
        end = made.end
    assert played.cycles == end + played.drain_cycles
    found = layers_of(program, played)
    assert [layer.name for layer in found] == [step.operator for step in program.steps]
    assert sum(layer.macs for layer in found) == 144 * 64 * (9 * 64 + 512) + 512 * 1024
    predicted = predict(program, CONFIG, BOARD)
    assert predicted.cycles_total == played.cycles
    assert predicted.useful_macs == sum(layer.macs for layer in found)
    moved = sum(layer.memory_bytes for layer in found) + played.image.bytes
    assert predicted.moved_bytes == moved


def test_each_layer_has_its_bound(program):
    """A layer of one pixel waits for its weights; one of many pixels does not."""
    played = timeline(program, CONFIG, BOARD, memory=ideal(CONFIG, latency=30))
    wide, thin, *_ = played.steps
    bounds = [made.bound for made in played.steps]
    assert bounds == [Bound.ARRAY, Bound.ARRAY, Bound.VECTOR, Bound.WEIGHTS]
    for made in (wide, thin):
        assert isinstance(made.step.command, MatrixCommand)
        waits = made.spent[Bound.READS] + made.spent[Bound.WRITES]
        swept = sweep_cycles(made.step.command, CONFIG.matrix)
        offered = OFFER_CYCLES * (1 + (made.spent[Bound.READS] > 0))
        assert (
            made.cycles - waits == offered + TAKE_CYCLES + PIXEL_CYCLES + swept - 1 + drain_cycles(CONFIG) + 1
        )


def test_weights_take_as_long_as_their_memory(program):
    """Every word of a port takes as long as the channel needs, refreshes included."""
    deep = program.steps[-1].command
    words = len(program.passes[deep.weights])
    memories = [ideal(CONFIG, latency=30, word_cycles=cycles) for cycles in (1.0, 3.0)]
    port = memories[1].weights._replace(refresh_interval=1000.0, refresh_cycles=200.0)
    memories.append(replace(memories[1], weights=port, first_refreshes=(500.0,) * 9))
    ahead, slow, late = (
        timeline(program, CONFIG, BOARD, memory=memory).steps[-1].cycles for memory in memories
    )
    # Words that come before the step are in the ports' buffers.
    assert 0 <= ahead - sweep_cycles(deep, CONFIG.matrix) <= 70
    assert 3 * (words - 600) <= slow <= 3 * words
    assert late - slow == pytest.approx(200 * slow / 800, abs=201)


def test_a_board_refreshes_its_channels_in_turn():
    memory = MemoryModel.of(BOARD, CONFIG)
    first = memory.first_refreshes
    assert len(first) == 9
    assert first == tuple(sorted(first))


def test_transfers_that_never_end_are_found(program):
    stuck = replace(program, steps=(replace(program.steps[0], wait_writes=1), *program.steps[1:]))
    with pytest.raises(LoomworkError, match="waits for itself"):
        timeline(stuck, CONFIG, BOARD)


def test_steps_that_overlap_are_not_predicted(program):
    with pytest.raises(LoomworkError, match="overlap"):
        timeline(order(program, CONFIG), CONFIG, BOARD)


def test_spilled_tensors_wait_for_their_transfers():
    """In a small scratchpad the same network takes longer, by transfers."""
    whole = program_for(residual, 16, 24, 24)
    spilled = program_for(residual, 16, 24, 24, scratchpad_bytes=20480)
    found = [timeline(each, CONFIG, BOARD) for each in (whole, spilled)]
    assert len(spilled.writes) > len(whole.writes)
    waits = [sum(each.total(cause) for cause in (Bound.READS, Bound.WRITES)) for each in found]
    assert waits[1] > waits[0]
