"""Convolution: random launches of jobs of all kinds, one after the other without a reset, to the last bit.

Predictions are compared with launches on a memory of fixed latency, without rows and refreshes.  A read that
meets a refresh waits longer than is allowed here, which no prediction can know.
"""

import pytest

from hw.board import load_board
from sim.build.simulator import OPTIMIZE_VARIABLE
from tests.support.boards import of_fixed_latency
from tests.support.conv.configs import CONFIGS, TESTED, drawn
from tests.support.conv.launches import run

#: Launches of a simulation in `make test` and in the soak; simulations of each configuration in the soak.
IN_TEST, IN_SOAK, RUNS = 5, 10, 4
#: Launches of each configuration for predictions in the soak.
PREDICTED = 45
#: Random engines for predictions in the soak, and launches of each.
ENGINES, LAUNCHES = 20, 15
#: Most error of a prediction, a share of the cycles, or cycles where a launch is shorter than that; launches
#: of a test that may exceed it, and by how much.  A map and its bypass that request their ports at once are
#: served in an order that earlier launches have left, and a read waits for a burst of results in its channel.
SHARE, SLACK, SELDOM = 0.02, 60, 2
WORST_SHARE, WORST_SLACK = 0.04, 120
_MEMORIES = ("model", "fast", "jitter")
SOAK = [pytest.mark.soak]


def cases():
    """Return configurations with a seed: one each of those of `make test`, more of all in the soak."""
    for number, name in enumerate(CONFIGS):
        for seed in range(RUNS + (name in TESTED)):
            quick = name in TESTED and not seed
            yield pytest.param(name, number + seed, quick, id=f"{name}-{seed}", marks=[] if quick else SOAK)


def off(launch):
    """Return whether a prediction exceeds the usual error; raises `AssertionError` if it exceeds the most.

    Samples that are fetched one by one are not predicted.
    """
    if launch.open_ended:
        return False
    wrong = abs(launch.predicted_cycles - launch.cycles)
    figures = launch.predicted_cycles, launch.cycles, launch.names
    assert wrong <= max(WORST_SLACK, WORST_SHARE * launch.cycles), figures
    return wrong > max(SLACK, SHARE * launch.cycles)


@pytest.mark.parametrize(("name", "seed", "quick"), list(cases()))
def test_launches_without_a_reset_are_exact(name, seed, quick, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # launches are short, in the soak too
    count, side = (IN_TEST, 12) if quick else (IN_SOAK, 20)
    memory = _MEMORIES[seed % len(_MEMORIES)]
    board = of_fixed_latency(load_board("u55c"))
    seen = run(CONFIGS[name], board, seed, count, tmp_path, memory=memory, side=side)
    assert len(seen) == count
    for launch in seen:
        causes = [value for key, value in launch.counters.items() if key.startswith("cycles_")]
        assert sum(causes) == 2 * launch.cycles  # with their sum
        assert sorted(launch.log) == launch.log
        if memory == "model":
            off(launch)


@pytest.mark.soak
@pytest.mark.parametrize("name", list(CONFIGS))
def test_predictions_of_sequences(name, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")
    board = of_fixed_latency(load_board("u55c"))
    seeds = range(1000, 1000 + PREDICTED)
    seen = [run(CONFIGS[name], board, seed, 1, tmp_path, control_only=True)[0] for seed in seeds]
    assert sum(map(off, seen)) <= SELDOM


@pytest.mark.soak
@pytest.mark.parametrize("number", range(ENGINES))
def test_predictions_of_random_engines(number, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")
    board = of_fixed_latency(load_board("u55c"))
    seen = run(drawn(number), board, 2000 + number, LAUNCHES, tmp_path, control_only=True)
    assert sum(map(off, seen)) <= SELDOM
