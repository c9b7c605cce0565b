"""The whole kernel behind its AXI ports: compiled networks, byte for byte, under any memory stalls."""

from dataclasses import replace

import numpy as np
import pytest

from hw.board import load_board
from hw.network.compile.compile import compile_network
from hw.network.graph.onnx_reader import read_network
from hw.network.model.timeline import timeline
from hw.network.program.lower import program_of
from hw.network.program.order import FOLLOWERS, order
from tests.hw.network.kernel.bench import CONFIG, Launch, check, run
from tests.hw.network.model.memories import ideal
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized, random_network

#: The least array and vector unit.
SMALL = replace(CONFIG, columns=16, lanes=16, banks=2, weight_ports=1)


def launch(model, config, *, scratchpad_bytes=CONFIG.scratchpad_bytes, seed=0):
    """Compile a model of shapes, with drawn weights and inputs."""
    network = read_network(quantized(model))
    made = compile_network(network, scratchpad_bytes=scratchpad_bytes, columns=config.columns)
    numbers = np.random.default_rng(seed)
    inputs = {
        name: numbers.integers(-128, 128, network.values[name].shape).astype(np.int8)
        for name in network.inputs
    }
    return Launch(program=program_of(made), inputs=inputs)


def tiny():
    """Return a network of few pixels: a residual, a table, a product, and a pool beside them."""
    net = Builder("tiny")
    x = net.input("image", 1, 16, 2, 3)
    y = net.add("Add", net.conv(x, 16, name="left", kernel=3), net.conv(x, 16, name="right"), name="sum")
    y = net.add("Mul", y, net.add("Sigmoid", y, name="table"), name="gate")
    net.output(net.conv(net.add("MaxPool", y, name="pool", kernel_shape=[2, 2]), 20, name="last"))
    net.output(net.add("MaxPool", x, name="beside", kernel_shape=[1, 2]))
    return net.model()


def every():
    """Return a network that needs every table of both units, two pixels a cycle, and several outputs."""
    net = Builder("every")
    x = net.input("image", 1, 20, 5, 6)
    left = net.add("Sigmoid", net.conv(x, 24, name="left", kernel=3), name="table")
    right = net.conv(x, 24, name="right")
    y = net.add("Mul", net.add("Add", right, net.conv(left, 24, name="more"), name="sum"), left, name="gate")
    net.output(net.conv(y, 16, name="half"))
    y = net.add("MaxPool", y, name="pool", kernel_shape=[2, 2], strides=[2, 2])
    y = net.add("Flatten", net.add("GlobalAveragePool", y, name="mean"), name="flat")
    net.output(net.add("Softmax", net.dense(y, 21, name="classes"), name="softmax", axis=-1))
    return net.model()


def play(launches, config, **options):
    for one, outcome in zip(launches, run(launches, config=config, **options), strict=True):
        check(one, outcome, config)


@pytest.mark.soak
@pytest.mark.parametrize("stall", [0.0, 0.3, 0.7])
def test_a_launch_and_the_same_again(stall):
    play([launch(tiny(), SMALL)] * 3, SMALL, stall=stall)


def check_times(one, outcome, config, *, latency):
    """Compare the end of each step, and of the launch, with the model's.

    A unit alone waits for no bank; the drain and residuals may, beside feeds.
    """
    memory = ideal(config, latency=latency)
    played = timeline(one.program, config, load_board("u55c"), memory=memory)
    begin = played.load_cycles
    assert outcome.counters["cycles_stall_load"] == begin
    for made, end in zip(played.steps, outcome.ends, strict=True):
        taken = end - begin
        assert abs(made.cycles - taken) <= max(12, 0.02 * taken), made
        begin = end
    total = outcome.counters["cycles_total"]
    assert abs(played.cycles - total) <= max(12, 0.01 * total)


def test_results_are_exact_and_steps_end_when_the_model_says():
    """Without barriers, and with commands that follow others, the same commands take less time."""
    one = launch(tiny(), SMALL)
    ordered, following = (
        replace(one, program=order(one.program, SMALL, follows=follows)) for follows in ((), FOLLOWERS)
    )
    assert any(step.follow for step in following.program.steps)
    launches = [one, ordered, following]
    outcomes = run(launches, config=SMALL, latency=(20, 20), limit=4000)
    for each, outcome in zip(launches, outcomes, strict=True):
        check(each, outcome, SMALL)
    check_times(one, outcomes[0], SMALL, latency=20)
    cycles = [outcome.counters["cycles_total"] for outcome in outcomes]
    assert cycles == sorted(cycles, reverse=True)
    assert cycles[-1] < cycles[0]


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(8))
def test_steps_of_random_networks_end_when_the_model_says(seed):
    """In a scratchpad in which some of them spill."""
    one = launch(random_network(seed), CONFIG, scratchpad_bytes=12288, seed=seed)
    (outcome,) = run([one], latency=(40, 40), limit=200_000)
    check_times(one, outcome, CONFIG, latency=40)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(8))
def test_random_networks_without_barriers(seed):
    one = launch(random_network(seed), CONFIG, scratchpad_bytes=12288, seed=seed)
    ordered = replace(one, program=order(one.program, CONFIG))
    play([ordered, one, ordered], CONFIG, stall=0.3, limit=300_000)


@pytest.mark.soak
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_every_table_of_both_units(stall):
    play(
        [launch(every(), CONFIG), launch(tiny(), CONFIG), launch(every(), CONFIG, seed=1)],
        CONFIG,
        stall=stall,
    )
