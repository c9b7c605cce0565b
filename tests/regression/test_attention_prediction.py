"""Predictions of random attention launches of all modes against the RTL with the calibrated HBM model."""

import numpy as np
import pytest

from hw.board import load_board
from hw.config import config_hash
from sim.engines.attention_cases import CONFIGS, random_tensors
from sim.run import run

LAUNCHES_IN_TEST, LAUNCHES_IN_SOAK = 20, 100
#: Cycles that any prediction may be off: where in the memory's refresh it begins and ends.
SLACK = 60


def parameters():
    for number, (board, config) in enumerate(CONFIGS):
        group = pytest.mark.xdist_group(f"attention-{config_hash('attention', config, load_board(board))}")
        for soak, count in ((False, LAUNCHES_IN_TEST), (True, LAUNCHES_IN_SOAK)):
            marks = [group, pytest.mark.soak] if soak else [group]
            yield pytest.param(number, count, id=f"{number}-{count}", marks=marks)


@pytest.mark.parametrize(("number", "count"), list(parameters()))
def test_predictions_of_random_launches(number, count, tmp_path):
    """Bytes exactly; cycles within 2 % in all, and each launch within 5 % and some cycles."""
    board, config = CONFIGS[number]
    simulated = wrong = 0
    for seed in range(count):
        tensors = random_tensors(np.random.default_rng([number, 1000 + seed]), config)
        result = run("attention", config, load_board(board), tensors, seed=seed, directory=tmp_path)
        assert result.bit_exact, (seed, result.mismatches)
        prediction, cycles = result.report.prediction, result.report.cycles.cycles_total
        assert prediction.predicted_read_error_bytes == 0, seed
        assert prediction.predicted_write_error_bytes == 0, seed
        error = abs(prediction.predicted_cycles - cycles)
        assert error <= SLACK + 0.05 * cycles, seed
        simulated += cycles
        wrong += error
    assert wrong <= 0.02 * simulated
