"""Programs of compiled networks: the outputs of the network however early or late transfers run."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest

from hw.errors import InputError
from hw.network.check.check import check as check_order
from hw.network.commands import Core, VectorKind
from hw.network.compile.compile import compile_network
from hw.network.config import NetworkConfig
from hw.network.graph.network import Gather
from hw.network.graph.onnx_reader import read_network
from hw.network.graph.transformer.network import read_tokens
from hw.network.graph.transformer.writer import written
from hw.network.program.barriers import is_barriers
from hw.network.program.lower import program_of
from hw.network.program.order import order
from hw.scheduler.plan.plan import Direction
from sim.golden.network import execute
from tests.hw.network.program.replay import homes_mask, outputs_of, region_of, replay
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized, random_network
from tests.support.networks.sentences import small

CONFIG = NetworkConfig(attention_rows=16)


def drawn_inputs(network, seed=0):
    rng = np.random.default_rng(seed)
    gathered = {operator.inputs[0] for operator in network.operators if isinstance(operator, Gather)}
    return {
        name: rng.integers(0, 40, network.values[name].shape).astype(np.int32)
        if name in gathered
        else rng.integers(-128, 128, network.values[name].shape).astype(np.int8)
        for name in network.inputs
    }


def compiled_bands():
    """Compile two convolutions into a scratchpad that holds a part of their values."""
    net = Builder("bands")
    x = net.input("image", 1, 16, 40, 12)
    net.output(net.conv(net.conv(x, 32, name="a", kernel=3), 16, name="b", kernel=5))
    network = read_network(quantized(net.model()))
    return compile_network(network, scratchpad_bytes=16384)


def check(compiled):
    """Compare all orders of transfers, and drawn ones of commands, with the operators' golden model."""
    program, network = program_of(compiled), compiled.network
    inputs = drawn_inputs(network)
    wanted = execute(network, inputs)
    check_order(program, CONFIG)
    ordered = order(program, CONFIG)
    check_order(ordered, CONFIG)
    plays = [(program, *late, None) for late in itertools.product((False, True), repeat=2)]
    plays += [(ordered, seed % 2, seed > 1, random.Random(seed)) for seed in range(3)]
    for played, reads_late, writes_late, rng in plays:
        region, known = region_of(played, inputs), homes_mask(played)
        replay(played, region, CONFIG, reads_late=reads_late, writes_late=writes_late, rng=rng, known=known)
        found = outputs_of(program, region)
        assert set(found) == set(network.outputs)
        for name, elements in found.items():
            assert (elements == wanted[name]).all(), (name, reads_late, writes_late)
    return program


@pytest.mark.parametrize(
    ("seed", "spills"),
    [
        (1, False),
        (4, True),
        (5, False),
        pytest.param(13, True, marks=pytest.mark.soak),
        pytest.param(15, True, marks=pytest.mark.soak),
    ],
)
def test_random_networks_in_a_small_scratchpad(seed, spills):
    network = read_network(quantized(random_network(seed)))
    program = check(compile_network(network, scratchpad_bytes=12288))
    written = {each.dram_address for each in program.writes}
    assert any(each.dram_address in written for each in program.reads) == spills
    assert any(step.wait_writes for step in program.steps)


@pytest.mark.parametrize(
    "forms", [("mask", "heads"), pytest.param(("before", "causal", "gelu"), marks=pytest.mark.soak)]
)
def test_transformers(forms):
    """All cores have work, and commands follow words of each."""
    network = read_tokens(written(small(*forms)), (12,))
    program = check(compile_network(network, scratchpad_bytes=1 << 16))
    assert {step.core for step in program.steps} == {*Core}
    assert sum(step.macs for step in program.steps) == network.macs
    follows = {step.follow.core for step in order(program, CONFIG).steps if step.follow}
    assert follows == {*Core}


def test_first_tokens_of_sentences():
    """Each sentence's vector is a mean of one token."""
    network = read_tokens(written(small("gelu", first=True)), (5, 1, 9))
    program = check(compile_network(network, scratchpad_bytes=1 << 16))
    commands = [step.command for step in program.steps]
    means = [each for each in commands if getattr(each, "kind", None) is VectorKind.MEAN16]
    first, *others = (each.sources[0].base for each in means)
    pitch = means[0].sources[0].across
    assert [each - first for each in others] == [5 * pitch, 6 * pitch]
    assert [(each.taps, each.kernel_columns) for each in means] == [(1, 1)] * 3


def test_transfers_of_a_step_of_several_commands():
    """Its reads precede the first command, its writes follow the last one."""
    compiled = compiled_bands()
    program = check(compiled)
    plan = compiled.plan
    assert len(program.steps) > len(plan.steps)
    counts = [0, *itertools.accumulate(map(len, compiled.lowered.commands))]
    for direction, words, starts in (
        (Direction.READ, program.reads, counts),
        (Direction.WRITE, program.writes, counts[1:]),
    ):
        listed = [each for each in plan.transfers if each.direction is direction]
        assert [sum(each.starts) for each in words] == [starts[each.start_step] for each in listed]
        assert [each.words * 64 for each in words] == [each.size_bytes for each in listed]


def test_steps_are_barriers():
    program = program_of(compiled_bands())
    assert is_barriers(program)
    assert [sum(step.waits) for step in program.steps] == [*range(len(program.steps))]
    assert not is_barriers(order(program, CONFIG))


def test_steps_name_their_operators():
    net = Builder("two")
    x = net.input("image", 1, 16, 8, 8)
    net.output(net.concat(net.conv(x, 24, name="left"), net.conv(x, 16, name="right", kernel=3), name="both"))
    compiled = compile_network(read_network(quantized(net.model())), scratchpad_bytes=1 << 16)
    steps = program_of(compiled).steps
    assert [step.planned for step in steps] == [0, 0]
    assert ["left" in steps[0].operator, "right" in steps[1].operator] == [True, True]


def test_a_command_beyond_every_unit_names_its_operator():
    compiled = compiled_bands()
    (first, *others), *steps = compiled.lowered.commands
    wide = replace(first, bounds=replace(first.bounds, width=5000))
    lowered = replace(compiled.lowered, commands=((wide, *others), *steps))
    with pytest.raises(
        InputError, match=r"columns of an input of operator 'a.*' must be from 0 to 4096, not 5000"
    ):
        program_of(replace(compiled, lowered=lowered))
