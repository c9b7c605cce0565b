# amaranth: UnusedElaboratable=no
"""Commands in gates, equal to the golden model on every byte of the scratchpad."""

import random
from dataclasses import replace

import numpy as np
import pytest

from hw.network.attention.config import AttentionUnitConfig
from hw.network.scratchpad.shape import GranuleShape
from tests.hw.network.attention.bench import Drawn, UnitBench, expected, run
from tests.support.gateware.streams import built, hash_seed

SHAPE = GranuleShape(banks=4, rows=64, memory="block")
GRANULES = SHAPE.words * SHAPE.granules
#: Granules that the other writer overwrites.
SPARE = 64

SMALL = AttentionUnitConfig(shape=SHAPE, rows=2, lanes=32, tile_keys=16, merge_lanes=4, tokens=32)
ODD = AttentionUnitConfig(shape=SHAPE, rows=3, lanes=16, tile_keys=16, merge_lanes=2, tokens=16)
WHOLE = AttentionUnitConfig(shape=SHAPE)


def check(config, commands, *, waits=None, disturb, seed):
    """Run commands; compare every byte but those of the other writer, and return the run."""
    memory = np.random.default_rng(seed).integers(-128, 128, (GRANULES, 16), dtype=np.int8)
    found = run(
        built(UnitBench, config),
        commands,
        memory,
        waits=waits,
        disturb=(disturb, disturb),
        seed=seed,
        spare=SPARE,
    )
    wanted = expected(config, commands, memory)
    wrong = np.argwhere(found.memory[:-SPARE] != wanted[:-SPARE])
    assert not len(wrong), f"{len(wrong)} bytes differ, the first at granule and byte {wrong[0]}"
    return found


def draw(config, seed, **limits):
    """Draw commands until the scratchpad is full, the second one on the results of the first."""
    drawn = Drawn(random.Random(hash_seed(seed, "commands")), config, GRANULES - SPARE)
    commands = [drawn.command(**limits)]
    first = commands[0]
    own = drawn.tensor(first.heads, first.queries, first.head_dim // 16)
    commands.append(replace(first, keys=first.queries, q=first.out, k=first.out, v=first.out, out=own))
    while (command := drawn.command(**limits)) is not None:
        commands.append(command)
    return commands


@pytest.mark.parametrize(
    ("config", "tokens", "disturb", "seed"),
    [
        (SMALL, 20, 0.9, 1),
        pytest.param(SMALL, 32, 0.0, 2, marks=pytest.mark.soak),
        *(pytest.param(SMALL, 32, 0.8, seed, marks=pytest.mark.soak) for seed in range(3, 8)),
        *(pytest.param(ODD, 16, 0.8, seed, marks=pytest.mark.soak) for seed in range(3, 8)),
    ],
    ids=lambda value: f"{value.rows}x{value.lanes}" if isinstance(value, AttentionUnitConfig) else None,
)
def test_commands_equal_the_golden_model(config, tokens, disturb, seed):
    """Commands of all sizes back to back, causal or not, at busy banks; one reads another's results."""
    commands = draw(config, seed, tokens=tokens)
    found = check(config, commands, waits={1: 1}, disturb=disturb, seed=seed)
    assert found.taken[1] > found.done[0]


@pytest.mark.soak
def test_whole_size_with_heads_of_32():
    """The core of the kernel: 16 rows of 64 lanes, half of which are zero."""
    commands = draw(WHOLE, 1, tokens=40, units=2, heads=2)
    check(WHOLE, commands, waits={1: 1}, disturb=0.5, seed=1)
