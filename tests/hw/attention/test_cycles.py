"""The cycle model: its jump over repeated tiles, its law for dense jobs, and slow streams."""

import numpy as np
import pytest

from hw.attention import cycles
from hw.attention.config import AttentionConfig
from hw.attention.cycles import Supply, core_cycles, passes, predict_cycles
from hw.attention.engine import AttentionEngine
from hw.board import load_board
from tests.hw.attention.jobs import SMALL

BOARD = load_board("u55c")


@pytest.mark.parametrize("seed", range(20))
def test_jumping_over_tiles_changes_nothing(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    jobs = [(int(rng.integers(1, 5)), int(rng.integers(1, 900))) for _ in range(6)]
    quick = core_cycles(SMALL, jobs)
    monkeypatch.setattr(cycles.Schedule, "_skip", lambda *_: 0)
    assert core_cycles(SMALL, jobs) == quick


def test_dense_law():
    """Whole query tiles: a key a cycle, and what the first and the last tile take once."""
    config = AttentionConfig()
    for heads, tokens in ((1, 1024), (12, 1024), (12, 256)):
        count = core_cycles(config, passes(config, queries=tokens, keys=tokens, heads=heads))
        once = count - heads * tokens * tokens // config.rows
        # Load R queries; last key to its logit; last tile to its sums; merge, divide, normalize; R rows out.
        assert once == 33 + 9 + 64 + 57 + 1 + 32 * 4


def test_slow_streams_set_the_pace():
    slow = Supply(interval=4.0)
    schedule = cycles.Schedule(AttentionConfig(), beat_width=256, queries=Supply(), keys=slow, values=slow)
    for _ in range(4):
        schedule.add(rows=32, keys=1024)
    assert 0 < schedule.last_output - 4 * 4096 < 400


def test_prediction_grows_with_every_size():
    config = AttentionConfig()
    base = {"queries": 40, "keys": 100, "heads": 2}
    figure = predict_cycles(config, BOARD, **base)
    for name in base:
        assert predict_cycles(config, BOARD, **base | {name: 3 * base[name]}) > figure


def test_longest_job_is_predicted_in_a_moment():
    """65,536 queries and keys: tiles are jumped over, passes are not."""
    config = AttentionConfig()
    figure = predict_cycles(config, BOARD, queries=65536, keys=65536, heads=1)
    assert 0 < figure - 2048 * 65536 < 1000


#: Heads, queries and keys, and the ``cycles_total`` that `loomwork sim attention` measured on the default
#: configuration and the calibrated memory of the board.
MEASURED = {
    "u55c": {
        (1, 1024, 1024): 33198,
        (12, 256, 256): 25006,
        (12, 1024, 1024): 393646,
        (1, 1, 1): 170,
        (1, 32, 64): 494,
        (3, 40, 100): 962,
    },
    "zcu104": {(1, 256, 256): 33246, (4, 64, 64): 8671, (1, 1, 1): 151, (2, 20, 100): 2846},
}


@pytest.mark.parametrize("name", MEASURED)
def test_prediction_of_measured_launches(name):
    board = load_board(name)
    config = AttentionEngine().default_config(board)
    for (heads, queries, keys), measured in MEASURED[name].items():
        predicted = predict_cycles(config, board, queries=queries, keys=keys, heads=heads)
        assert abs(predicted / measured - 1) < (0.002 if measured > 20000 else 0.05)
