# amaranth: UnusedElaboratable=no
"""The cycle model against the gates on the scratchpad; rows of the core change no cycle."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from hw.attention.driver.shapes import PassShape
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.timing import cycles, steps
from hw.network.commands import AttentionCommand, HeadTensor
from hw.network.scratchpad.shape import GranuleShape
from tests.hw.network.attention.bench import RowlessPlacer, UnitBench, run
from tests.support.attention.cycles import core_cycles
from tests.support.gateware.streams import built

SHAPE = GranuleShape(banks=16, rows=16, memory="block")
CONFIG = AttentionUnitConfig(shape=SHAPE)


def layer(*, tokens: int, head_dim: int, heads: int, command_heads: int, causal: bool = False):
    """Return the commands of a layer; rows lie so that keys and queries never meet at a bank."""
    tensors = {
        name: HeadTensor(base=base, pitch=4, step=4 * tokens)
        for name, base in (("q", 0), ("k", 8), ("v", 0), ("out", 0))
    }
    command = AttentionCommand(
        heads=command_heads,
        queries=tokens,
        keys=tokens,
        head_dim=head_dim,
        causal=causal,
        **tensors,
        multiplier=70_000,
        shift=20,
        output_multiplier=70_000,
        output_shift=33,
    )
    return [command] * (heads // command_heads)


def found(commands):
    """Return the cycles from the first command's acceptance to the end of each command."""
    ran = run(built(UnitBench, CONFIG, placer=RowlessPlacer), commands, np.zeros((0, 16), np.int8))
    return [done - ran.taken[0] for done in ran.done]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "shape",
    [
        pytest.param({"tokens": 128, "head_dim": 32, "heads": 4, "command_heads": 2}, marks=pytest.mark.soak),
        {"tokens": 48, "head_dim": 32, "heads": 2, "command_heads": 1},
        {"tokens": 40, "head_dim": 64, "heads": 2, "command_heads": 1, "causal": True},
        {"tokens": 17, "head_dim": 48, "heads": 4, "command_heads": 2},
        {"tokens": 8, "head_dim": 16, "heads": 6, "command_heads": 2},
        {"tokens": 1, "head_dim": 32, "heads": 2, "command_heads": 1},
    ],
    ids=str,
)
def test_cycles_are_those_of_the_model(shape):
    """Also of commands that follow each other; words wait for banks, and the first values for queries."""
    commands = layer(**shape)
    ends = found(commands)
    own, following = cycles(CONFIG, commands[0]), steps(CONFIG, commands[0])
    assert -4 <= ends[0] - own <= 18
    assert all(0 <= later - earlier - following <= 8 for earlier, later in itertools.pairwise(ends))


@pytest.mark.sample(4)
@pytest.mark.parametrize("merge_lanes", [2, 4])
@pytest.mark.parametrize("keys", [1, 7, 16, 31, 32, 33, 47, 64, 65, 100, 128, 500])
def test_steps_are_those_of_the_core(keys, merge_lanes):
    """The core's own model, which is exact, for passes that follow each other; or the words of port 1."""
    config = replace(CONFIG, merge_lanes=merge_lanes)
    for head_dim in (16, 32, 64):
        shape = PassShape(rows=16, keys=(keys,), leads=(0,), value_units=head_dim // 16)
        some, more = (core_cycles(config.core, [shape] * count, beat_width=256) for count in (80, 160))
        (command,) = layer(tokens=keys, head_dim=head_dim, heads=1, command_heads=1)
        assert steps(config, replace(command, queries=1280)) == max(more - some, 1280 + keys)


def test_a_layer_of_minilm_takes_a_cycle_a_key():
    """128 tokens, 12 heads of 32: 12 heads x 8 query tiles x 128 keys."""
    commands = layer(tokens=128, head_dim=32, heads=12, command_heads=2)
    assert sum(steps(CONFIG, command) for command in commands) == 12 * 8 * 128
    assert cycles(CONFIG, commands[0]) == steps(CONFIG, commands[0]) + 143
