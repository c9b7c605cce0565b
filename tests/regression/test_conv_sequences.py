"""Convolution: random launches of jobs of all kinds, one after the other without a reset, to the last bit."""

import pytest

from hw.board import load_board
from sim.build.simulator import OPTIMIZE_VARIABLE
from tests.support.conv.configs import CONFIGS, TESTED
from tests.support.conv.launches import run

#: Launches of a simulation, in `make test` and in the soak, and simulations of a configuration in the soak.
IN_TEST, IN_SOAK, RUNS = 5, 10, 4
_MEMORIES = ("model", "fast", "jitter")


def cases():
    """Give configurations with a seed: one each of those of `make test`, more of all in the soak."""
    for number, name in enumerate(CONFIGS):
        for seed in range(RUNS + (name in TESTED)):
            quick = name in TESTED and not seed
            yield pytest.param(name, number + seed, quick, id=f"{name}-{seed}", marks=[] if quick else SOAK)


SOAK = [pytest.mark.soak]


@pytest.mark.parametrize(("name", "seed", "quick"), list(cases()))
def test_launches_without_a_reset_are_exact(name, seed, quick, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # launches are short, in the soak too
    count, side = (IN_TEST, 12) if quick else (IN_SOAK, 20)
    memory = _MEMORIES[seed % len(_MEMORIES)]
    seen = run(CONFIGS[name], load_board("u55c"), seed, count, tmp_path, memory=memory, side=side)
    assert len(seen) == count
    for launch in seen:
        assert launch.counters["cycles_total"] == sum(
            value
            for key, value in launch.counters.items()
            if key.startswith("cycles_") and key != "cycles_total"
        )
        assert sorted(launch.log) == launch.log
