"""The figures of docs/oram.md: launches measured on the RTL, predicted."""

from __future__ import annotations

import contextlib
import io
import re
import subprocess
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from hw.board import load_board
from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from hw.oram.model.predict import predict
from hw.oram.movers.timing import PathTiming
from sim.engines.oram.adapter import ADAPTER
from sim.run.run import run
from tests.support.oram.bus import BOARD
from tests.support.oram.links import with_fast_link

PAGE = Path(__file__).parents[2] / "docs" / "oram.md"
#: Lines of ops.csv in use: the rings and the pages of 2^18 keys fit the host's cache.
OPERATIONS = 8192
#: By log_n: cycles of the launch on the RTL, and those before its first command. Operations wait for write
#: bursts and the rate of the link; with 2^20 keys also for the shared rate.
MEASURED = {18: (253_745, 192_567), 20: (849_069, 767_650)}
#: Operations on one key, of which the first ones take a launch's latency; cycles of each, at most.
ONE_KEY, MOST_CYCLES = 16_384, 4.33


@pytest.fixture(scope="module")
def all_operations(tmp_path_factory):
    """The file that the page's script writes."""
    (script,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    with contextlib.redirect_stdout(io.StringIO()) as written:
        exec(script, {})
    path = tmp_path_factory.mktemp("operations") / "ops.csv"
    path.write_text(written.getvalue())
    return path


@pytest.fixture(scope="module")
def operations(all_operations):
    """Its beginning."""
    path = all_operations.with_name("first.csv")
    path.write_text("".join(all_operations.read_text().splitlines(keepends=True)[: 1 + OPERATIONS]))
    return path


def predicted(path, config, board):
    job = ADAPTER.job(ADAPTER.read_files({"ops": path}, config, seed=0), config)
    return predict(ADAPTER.workload(job, config), config, board)


@pytest.fixture(scope="module")
def fast_board(tmp_path_factory):
    """The board whose file the page's command writes."""
    (command,) = re.findall(r"```\n(sed .*?)```", PAGE.read_text(), re.DOTALL)
    directory = tmp_path_factory.mktemp("fast")
    (directory / "boards").symlink_to(PAGE.parents[1] / "boards")
    subprocess.run(["sh", "-c", command], cwd=directory, check=True)
    return load_board(str(directory / "fast.yaml"))


def test_the_pages_fast_board(fast_board, all_operations):
    """Its link alone differs from the U55C's, and no longer limits: an operation takes its interval."""
    assert fast_board.memory == BOARD.memory
    assert asdict(fast_board.host.timing) == asdict(with_fast_link(BOARD).host.timing)
    found = predicted(all_operations, OramConfig(), fast_board)
    (row,) = re.findall(r"\| `log_n: 20` \| `fast.yaml` \| 100,000 \|.*\| (\S+) \| none \|", PAGE.read_text())
    assert f"{found.details['operating_cycles_per_operation']:.2f}" == row


@pytest.mark.parametrize("log_n", MEASURED)
def test_steady_launches_are_predicted(operations, log_n):
    config = OramConfig(log_n=log_n)
    found = predicted(operations, config, BOARD)
    (row,) = re.findall(rf"\| `log_n: {log_n}` \| u55c \| 8,192 \|.*\| (\S+) \| host", PAGE.read_text())
    assert f"{found.details['operating_cycles_per_operation']:.2f}" == row
    cycles, before = MEASURED[log_n]
    assert found.cycles_total == pytest.approx(cycles, rel=0.01)
    operating = OPERATIONS * found.details["cycles_per_operation"]
    assert operating == pytest.approx(cycles - before, rel=0.02)


@pytest.mark.soak
def test_one_key_takes_no_longer_than_others(tmp_path):
    """Each operation waits for the one before: on a link that never limits it takes its interval."""
    config, rng = OramConfig(), np.random.default_rng(2)
    tensors = {
        "codes": rng.choice([Code.GET, Code.PUT, Code.DELETE], ONE_KEY, p=[0.45, 0.47, 0.08]),
        "keys": np.full(ONE_KEY, 1 << 40),
        "values": rng.integers(256, size=(ONE_KEY, config.value_bytes)),
    }
    result = run("oram", config, with_fast_link(BOARD), tensors, directory=tmp_path)
    assert result.bit_exact, result.mismatches
    cycles = result.report.cycles.cycles_total - result.report.details["initialization_cycles"]
    assert (cycles - PathTiming(config).end) / ONE_KEY <= MOST_CYCLES
