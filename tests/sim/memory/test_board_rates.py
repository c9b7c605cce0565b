"""The bandwidth of a copied board file changes prediction and simulation alike, or is refused by name."""

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from examples.vadd.engine import VaddConfig
from hw.board import load_board
from hw.board.files import board_names, find_board
from hw.errors import InputError
from sim.memory.config import memory_config
from sim.run.forecast import forecast
from sim.run.run import Target, run
from tests.support.memory.master import read_all
from tests.support.memory.native import NativeMemory
from tests.support.vadd import register_vadd

#: A U55C with half the bandwidth: data and column commands take twice as long.
HALF = {
    "460.8 GB/s": "230.4 GB/s",
    "412.5 GB/s": "206.25 GB/s",
    "data_ck: 2": "data_ck: 4",
    "ccd_short_ck: 2": "ccd_short_ck: 4",
    "        ccd_long_ck: 4": "        ccd_long_ck: 8",
}


def copied(folder, changes, name="u55c"):
    text = find_board(name).read_text()
    for old, new in changes.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "mine.yaml"
    path.write_text(text)
    return str(path)


def streamed(board):
    """Bytes a second of a port that reads its channel from end to end."""
    config = memory_config(board.memory, [0], clock_mhz=board.clock_mhz)
    with NativeMemory(config=replace(config, channel_bytes=1 << 24)) as memory:
        _, got = read_all(memory, [64 * 8 * n for n in range(500)], beats=16)
    beats = len(got) // 2
    return 32 * beats * board.clock_mhz * 1e6 / (got[-1] - got[-1 - beats])


@pytest.mark.soak
def test_half_the_bandwidth_is_half_for_the_memory_model(tmp_path):
    whole, half = load_board("u55c"), load_board(copied(tmp_path, HALF))
    for board in (whole, half):
        port = 32 * board.clock_mhz * 1e6
        assert streamed(board) == pytest.approx(min(port, board.memory.channel_bytes_per_second), rel=0.06)


def test_half_the_bandwidth_changes_prediction_and_simulation_alike(tmp_path, monkeypatch):
    """Sums of vectors are bound by memory."""
    register_vadd(monkeypatch)
    rng = np.random.default_rng(0)
    tensors = {name: rng.integers(-100, 100, 8000, np.int32) for name in "ab"}
    config, predicted, simulated = VaddConfig(fifo_beats=128), [], []
    for board in (load_board("u55c"), load_board(copied(tmp_path, HALF))):
        predicted.append(forecast(Target.of("vadd", config, board), tensors).cycles.cycles_total)
        report = run("vadd", config, board, tensors, directory=tmp_path).report
        assert report.bit_exact
        assert report.prediction.predicted_cycles == predicted[-1]
        simulated.append(report.cycles.cycles_total)
    assert simulated == pytest.approx(predicted, rel=0.06)
    assert simulated[1] > 1.3 * simulated[0]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"412.5 GB/s": "206.25 GB/s"},
            "hbm.realistic must be from 398.5 to 419.4 GB/s, which timing sustains",
        ),
        ({"412.5 GB/s": "425 GB/s"}, "hbm.realistic must be from 398.5 to 419.4 GB/s, which timing sustains"),
        (
            {"460.8 GB/s": "230.4 GB/s", "412.5 GB/s": "206.25 GB/s"},
            "hbm.peak must be 460.8 GB/s, channels * granule_bytes * command_clock_mhz / data_ck",
        ),
        ({"data_ck: 2": "data_ck: 4"}, "hbm.peak must be 230.4 GB/s, channels * granule_bytes"),
        (
            {"realistic:    {value: 12.77 GB/s": "realistic:    {value: 6 GB/s"},
            "host.realistic must be 12.77 GB/s",
        ),
    ],
)
def test_a_rate_that_only_predictions_follow_is_refused(tmp_path, changes, says):
    with pytest.raises(InputError, match=re.escape(says)) as caught:
        load_board(copied(tmp_path, changes))
    assert "mine.yaml:" in str(caught.value)
    assert str(caught.value).count("simulations follow it") == 1


@pytest.mark.parametrize("name", board_names())
def test_half_of_a_boards_realistic_rate_is_refused(tmp_path, name):
    board = load_board(name)
    written = re.search(r"realistic: +\{value: ([\d.]+) GB/s", find_board(name).read_text())
    half = f"{float(written[1]) / 2:g}"
    path = Path(copied(tmp_path, {written[0]: written[0].replace(written[1], half)}, name))
    with pytest.raises(InputError, match=rf"{board.memory.name}\.realistic must be from "):
        load_board(str(path))
