"""Readers and writers of lines before the calibrated HBM: the oblivious map's rate and deadlines."""

from __future__ import annotations

import dataclasses

import pytest

from hw.board import load_board
from hw.launch import Buffer, Launch
from hw.oram.config import OramConfig
from sim.run.launch import simulate
from tests.support.memory.line_kernel import CLASSES, STEP, TIMED, line_kernel, line_table

PORTS = 16


@pytest.mark.soak
def test_waits_stay_within_the_deadlines(tmp_path):
    """An operation every 4 cycles of 250 MHz, as many as have each channel refreshed a hundred times."""
    operations, interval, config = 25_000, 4, OramConfig()
    board = dataclasses.replace(load_board("u55c"), clock_mhz=250.0)
    table = line_table(PORTS)
    sizes = [128 << 14] * (PORTS // 2) + [256 << 14] * (PORTS // 2)
    launch = Launch(
        scalars={"operations": operations, "interval": interval},
        buffers=tuple(
            Buffer(argument=f"lines{n}", data=None, size_bytes=size) for n, size in enumerate(sizes)
        ),
    )
    done = simulate(
        line_kernel(table).on(board, {f"gmem{n}": n for n in range(PORTS)}),
        launch,
        directory=tmp_path / "run",
        expected_cycles=operations * interval,
    )
    counted = done.answer.calls[0].counters
    for kind in TIMED:
        assert sum(counted[f"{kind}_{n}"] for n in range(CLASSES)) == operations
        assert counted[f"{kind}_{CLASSES - 1}"] == 0 or counted[f"{kind}_longest"] > STEP * (CLASSES - 1)
    assert counted["bucket_longest"] < config.position.read_cycles
    assert max(counted[f"{kind}_longest"] for kind in TIMED[1:]) < config.record_sizes.touch_cycles
    assert counted["late"] == 0
    refreshed = [channel["refreshes"] for channel in done.answer.memories["hbm"]["channels"][:PORTS]]
    assert min(refreshed) >= 100
