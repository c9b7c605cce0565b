# amaranth: UnusedElaboratable=no
"""Commands on int16 in gates, equal to the golden model of programs on every byte of the scratchpad."""

import numpy as np
import pytest

from tests.hw.network.vector.bench import run, unit_of
from tests.hw.network.vector.wide import DrawnWide
from tests.support.gateware.streams import hash_seed

#: Lanes, share of cycles in which a port does not move, seed; those of `make test` first.
_POINTS = [(16, 0.0, 0), (32, 0.5, 1)]
_SOAK = [(lanes, stall, seed) for lanes in (16, 32, 64) for stall in (0.0, 0.3, 0.8) for seed in range(2, 6)]


def check(drawn, commands, lanes, **options):
    """Run commands in gates, and compare all bytes."""
    program, memory = drawn.program(commands), drawn.memory()
    found = run(unit_of(lanes), program, memory, **options)
    wrong = np.argwhere(found.memory != program.expected(memory))
    assert not len(wrong), f"{len(wrong)} bytes differ, the first at granule and byte {wrong[0]}"
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("lanes", "stall", "seed"), [*_POINTS, *(pytest.param(*p, marks=pytest.mark.soak) for p in _SOAK)]
)
def test_programs_equal_the_golden_model(lanes, stall, seed):
    """Full and cut words, one pixel and several, statistics that stay while others are gathered."""
    drawn = DrawnWide(hash_seed(seed, f"{lanes} {stall}"))
    commands = []
    sizes = ((96, 1), (40, 2), (62, 3), (128, 4), (24, 6), (8, 4))
    for channels, pixels in sizes[: 3 if stall else 6]:
        commands += drawn.norms(channels, pixels)
        commands.append(drawn.sum() if channels % 3 else drawn.mean())
    check(drawn, commands, lanes, stall=stall, seed=seed)
