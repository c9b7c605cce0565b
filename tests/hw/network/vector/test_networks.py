# amaranth: UnusedElaboratable=no
"""Vector commands of compiled networks in gates: taps over bands, slices of concats, operands of any form."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hw.network.commands import VectorCommand, VectorKind
from hw.network.compile.compile import compile_network
from hw.network.graph.onnx_reader import read_network
from sim.golden import program as golden
from tests.hw.network.vector.bench import GRANULES, Program, run, unit_of
from tests.support.networks.quantized import quantized, random_network

#: Commands of each kind that are simulated.
_MOST_COMMANDS = 3


def seen_commands(seed, monkeypatch):
    """Compile and execute a random network; return its vector commands, each with the memory before it."""
    network = read_network(quantized(random_network(seed)))
    compiled = compile_network(network, scratchpad_bytes=16 * GRANULES)
    found = []
    execute = golden.execute

    def watched(command, lowered, scratchpad, kept):
        if isinstance(command, VectorCommand):
            found.append((command, scratchpad.copy()))
        execute(command, lowered, scratchpad, kept)

    rng = np.random.default_rng(seed)
    shapes = {name: network.values[name].shape for name in network.inputs}
    inputs = {name: rng.integers(-128, 128, shape).astype(np.int8) for name, shape in shapes.items()}
    with monkeypatch.context() as patch:
        patch.setattr(golden, "execute", watched)
        golden.run(compiled, inputs)
    return compiled.lowered, found


def alone(command, lowered):
    """Return a program of one command, with the rows of tables that it refers to."""
    taps = lowered.taps[command.first_tap : command.first_tap + command.taps]
    own = {}
    if command.kind is VectorKind.SOFTMAX:
        own["exponentials"] = (lowered.exponentials[command.table],)
    elif command.table >= 0:
        own["tables"] = (lowered.tables[command.table],)
    command = replace(command, first_tap=0, table=0 if command.table >= 0 else -1)
    return Program(commands=[command], lowered=replace(lowered, taps=taps, **own))


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "seed",
    [18, 20, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(30) if seed not in (18, 20))],
)
def test_commands_of_networks(seed, monkeypatch):
    lowered, found = seen_commands(seed, monkeypatch)
    kinds = Counter()
    for command, memory in found:
        kinds[command.kind] += 1
        if kinds[command.kind] <= _MOST_COMMANDS:
            program = alone(command, lowered)
            gates = run(unit_of(32), program, memory, stall=0.2, seed=seed)
            assert (gates.memory == program.expected(memory)).all(), command
