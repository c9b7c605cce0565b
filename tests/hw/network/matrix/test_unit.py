# amaranth: UnusedElaboratable=no
"""The matrix unit on its scratchpad: layers equal the golden model byte for byte, in the cycles it says."""

import random

import pytest

from hw.network.config import NetworkConfig
from hw.network.graph.network import Table
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.timing import (
    COMMAND_CYCLES,
    HELD_TABLE_CYCLES,
    NEW_TABLE_CYCLES,
    TAKE_CYCLES,
    steps_of_blocks,
    sweep_cycles,
)
from hw.network.scratchpad.shape import GranuleShape
from tests.hw.network.matrix.bench import UnitBench, run
from tests.support.gateware.streams import seeds
from tests.support.networks.layers import drawn_convolution

CONFIG = MatrixConfig(columns=32, ports=4, port_bits=128, tables=8)
BENCH = UnitBench(GranuleShape(banks=4, rows=64, memory="block"), CONFIG)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_layers_equal_the_golden_model(seed):
    """On memories that stall; `make test` has whole networks on such ones."""
    rng = random.Random(seed)
    found = run(BENCH, [drawn_convolution(rng) for _ in range(3)], stall=0.5, seed=seed)
    assert (found.after == found.wanted).all()


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_cycles_are_those_of_the_formula(seed):
    """A step a cycle, but for sweeps shorter than a packet.  A table is copied once for several commands."""
    rng = random.Random(seed)
    mapped = drawn_convolution(rng)
    while not any(isinstance(operator, Table) for operator in mapped.operators):
        mapped = drawn_convolution(rng)
    networks = [*(drawn_convolution(rng) for _ in range(3)), mapped, mapped]
    found = run(BENCH, networks, stall=0, seed=seed)
    assert (found.after == found.wanted).all()
    held = None
    for work, taken in found.commands:
        copy = HELD_TABLE_CYCLES if work.table == held else NEW_TABLE_CYCLES
        assert taken.waited == (TAKE_CYCLES if work.table is None else copy)
        held = work.table or held
        command = work.command
        assert taken.busy == sum(steps_of_blocks(command)) * command.taps * command.column_tiles
        assert 0 <= sweep_cycles(command, CONFIG) + COMMAND_CYCLES - taken.cycles <= 16


@pytest.mark.soak
@pytest.mark.parametrize(
    "config",
    [
        NetworkConfig(),
        NetworkConfig(scratchpad_bytes=2 << 20, banks=8, columns=32, weight_ports=4, port_bytes=16, lanes=32),
    ],
    ids=["64 columns", "32 columns"],
)
def test_layers_on_the_units_of_boards(config):
    rng = random.Random(5)
    networks = [drawn_convolution(rng, most_channels=90, most_side=6) for _ in range(3)]
    found = run(UnitBench(config.shape, config.matrix), networks, stall=0.1, seed=0)
    assert (found.after == found.wanted).all()
    assert {work.command.halves for work, _ in found.commands} == {False, True}
