"""The whole kernel behind its AXI ports: compiled networks, byte for byte, under any memory stalls."""

from dataclasses import replace

import numpy as np
import pytest

from hw.board import load_board
from hw.network.check.check import check as check_order
from hw.network.commands import (
    AttentionCommand,
    Bounds,
    HeadTensor,
    MatrixCommand,
    Source,
    TapTile,
    Target,
    VectorCommand,
    VectorKind,
)
from hw.network.compile.compile import compile_network
from hw.network.compile.form import Form
from hw.network.graph.network import Value
from hw.network.graph.onnx_reader import read_network
from hw.network.model.timeline import timeline
from hw.network.normalization import channel_rows
from hw.network.program.barriers import finished_before
from hw.network.program.lower import program_of
from hw.network.program.order import FOLLOWERS, order
from hw.network.program.program import Gathered, Home, Transfer
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


def with_rows(one):
    """Return a launch whose first read gathers words of the same home, by drawn numbers."""
    program = one.program
    first, *others = program.reads
    numbers = np.random.default_rng(3).integers(0, first.words, (1, 1, first.words)).astype(np.int32)
    value = Value(name="numbers", shape=numbers.shape, scale=1.0, zero=0, bits=32)
    end = program.memory_words
    home = Home(value=value, form=Form.plain(value.shape, bits=32), address=64 * end, first_row=0, rows=1)
    rows = Gathered(rows=first.words, table=first.dram_address, table_rows=first.words)
    made = replace(
        program,
        reads=(replace(first, dram_address=end, gathered=rows), *others),
        constants=(*program.constants, home),
        contents={**program.contents, "numbers": numbers},
    )
    return replace(one, program=made)


@pytest.mark.soak
def test_a_launch_that_gathers_rows():
    one = launch(tiny(), SMALL)
    play([one, with_rows(one), one], SMALL, stall=0.2)


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


@pytest.mark.soak
def test_results_are_exact_and_steps_end_when_the_model_says():
    """Without barriers, and with commands that follow others, the same commands take less time."""
    one = launch(tiny(), SMALL)
    ordered, following = (
        replace(one, program=order(one.program, SMALL, follows=follows)) for follows in ((), FOLLOWERS)
    )
    assert any(step.follow for step in following.program.steps)
    # Records that come when commands wait for them: all behind the header.
    launches = [ordered, following, replace(following, opening=1), one]
    outcomes = run(launches, config=SMALL, latency=(20, 20), limit=7000)
    for each, outcome in zip(launches, outcomes, strict=True):
        check(each, outcome, SMALL)
    check_times(one, outcomes[3], SMALL, latency=20)
    assert outcomes[2].counters["cycles_stall_load"] < outcomes[1].counters["cycles_stall_load"]
    cycles = [outcomes[at].counters["cycles_total"] for at in (3, 0, 1)]
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
@pytest.mark.parametrize("seed", [0, 1, 2, 3, 6, 7])
def test_random_networks_without_barriers(seed):
    one = launch(random_network(seed), CONFIG, scratchpad_bytes=12288, seed=seed)
    ordered = replace(one, program=order(one.program, CONFIG))
    play([ordered, one, replace(ordered, opening=1)], CONFIG, stall=0.3, limit=300_000)


@pytest.mark.soak
@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_every_table_of_both_units(stall):
    play(
        [launch(every(), CONFIG), launch(tiny(), CONFIG), launch(every(), CONFIG, seed=1)],
        CONFIG,
        stall=stall,
    )


def with_tokens(one, config):
    """Add commands on int16 and attention to a launch, behind the places of its network."""
    program = one.program
    first = (program.scratchpad_bytes // 16) // 2
    command = next(each.command for each in program.steps if isinstance(each.command, MatrixCommand))
    taps = (*program.taps, TapTile(offset=0, row=0, columns=(0,) * 4))
    rows = channel_rows([30.0] * 30, [4.0, -7.5] * 15, bits=8, zero=-3)
    plain = {
        "rows": 1,
        "columns": 6,
        "sources": (Source(base=first, across=4),),
        "bounds": Bounds(height=1, width=1),
        "first_tap": len(program.taps),
        "channels": 30,
    }

    def heads(base):
        return HeadTensor(base=first + base, pitch=2, step=14)

    added = [
        replace(command, target=replace(command.target, base=first), residual=None, addition=None, table=-1),
        VectorCommand(kind=VectorKind.STATS, target=Target(base=0, pitch=0, granules=0), **plain),
        VectorCommand(
            kind=VectorKind.NORM,
            target=Target(base=first + 40, pitch=2, granules=2),
            norm=0,
            shift=rows.shift,
            **plain,
        ),
        AttentionCommand(
            heads=2,
            queries=5,
            keys=6,
            head_dim=32,
            q=heads(20),
            k=heads(40),
            v=heads(38),
            out=heads(80),
            multiplier=40_000,
            shift=20,
            output_multiplier=70_000,
            output_shift=30,
        ),
        replace(
            command,
            source=replace(command.source, base=first + 80),
            target=replace(command.target, base=first + 140),
            residual=None,
            addition=None,
            table=-1,
        ),
    ]
    commands = [step.command for step in program.steps] + added
    before = finished_before(commands)
    last = program.steps[-1]
    steps = [
        replace(last, command=command, waits=waits, wait_reads=len(program.reads) + 1)
        for command, waits in zip(added, before[len(program.steps) :], strict=False)
    ]
    # Their places are filled with copies of the image, two words each.
    home, begin = program.inputs[0], program.memory_words
    homes = [replace(home, address=64 * begin + 128 * n) for n in range(30)]
    filled = Transfer(dram_address=begin, address=first // 4, words=60)
    results = Transfer(dram_address=begin + 60, address=first // 4, words=60, starts=before[-1])
    return replace(
        one,
        program=replace(
            program,
            steps=(*program.steps, *steps),
            reads=(*program.reads, filled),
            writes=(*program.writes, results),
            inputs=(*program.inputs, *homes),
            taps=taps,
            norms=(rows,),
        ),
    )


@pytest.mark.soak
def test_all_cores_at_work():
    """Commands of int16 and attention beside a network, as barriers and as their accesses need it."""
    config = replace(SMALL, attention_rows=2, attention_tokens=16, pixels=16, channels=8)
    one = with_tokens(launch(tiny(), config), config)
    check_order(one.program, config)
    ordered = replace(one, program=order(one.program, config))
    check_order(ordered.program, config)
    launches = [one, ordered, replace(ordered, opening=1), one]
    outcomes = run(launches, config=config, latency=(20, 20), limit=12_000)
    for each, outcome in zip(launches, outcomes, strict=True):
        check(each, outcome, config)
    assert outcomes[1].counters["cycles_total"] < outcomes[0].counters["cycles_total"]
