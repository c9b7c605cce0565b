"""Programs of compiled networks: the outputs of the network however early or late transfers run."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hw.errors import InputError
from hw.network.compile.compile import compile_network
from hw.network.graph.onnx_reader import read_network
from hw.network.program.lower import program_of
from hw.scheduler.plan.plan import Direction
from sim.golden.network import execute
from tests.hw.network.program.replay import outputs_of, region_of, replay
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized, random_network


def drawn_inputs(network, seed=0):
    rng = np.random.default_rng(seed)
    return {
        name: rng.integers(-128, 128, network.values[name].shape).astype(np.int8) for name in network.inputs
    }


def compiled_bands():
    """Compile two convolutions into a scratchpad that holds a part of their values."""
    net = Builder("bands")
    x = net.input("image", 1, 16, 40, 12)
    net.output(net.conv(net.conv(x, 32, name="a", kernel=3), 16, name="b", kernel=5))
    network = read_network(quantized(net.model()))
    return compile_network(network, scratchpad_bytes=16384)


def check(compiled):
    """Compare all orders of transfers with the operators' golden model."""
    program, network = program_of(compiled), compiled.network
    inputs = drawn_inputs(network)
    wanted = execute(network, inputs)
    for reads_late, writes_late in itertools.product((False, True), repeat=2):
        region = region_of(program, inputs)
        replay(program, region, reads_late=reads_late, writes_late=writes_late)
        found = outputs_of(program, region)
        assert set(found) == set(network.outputs)
        for name, elements in found.items():
            assert (elements == wanted[name]).all(), (name, reads_late, writes_late)
    return program


@pytest.mark.parametrize(
    ("seed", "spills"),
    [
        (1, 0),
        (4, 1),
        (5, 0),
        pytest.param(13, 12, marks=pytest.mark.soak),
        pytest.param(15, 7, marks=pytest.mark.soak),
    ],
)
def test_random_networks_in_a_small_scratchpad(seed, spills):
    network = read_network(quantized(random_network(seed)))
    program = check(compile_network(network, scratchpad_bytes=12288))
    written = {each.dram_address for each in program.writes}
    assert sum(each.dram_address in written for each in program.reads) == spills
    assert any(step.wait_writes for step in program.steps)


def test_transfers_of_a_step_of_several_commands():
    """Its reads precede the first command, its writes follow the last one."""
    compiled = compiled_bands()
    program = check(compiled)
    plan = compiled.plan
    assert len(program.steps) > len(plan.steps)
    firsts = [
        next(n for n, each in enumerate(program.steps) if each.planned == s) for s in range(len(plan.steps))
    ]
    lasts = [*(first - 1 for first in firsts[1:]), len(program.steps) - 1]
    for direction, words, starts in (
        (Direction.READ, program.reads, firsts),
        (Direction.WRITE, program.writes, lasts),
    ):
        listed = [each for each in plan.transfers if each.direction is direction]
        assert [each.start_step for each in words] == [starts[each.start_step] for each in listed]
        assert [each.words * 64 for each in words] == [each.size_bytes for each in listed]


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
