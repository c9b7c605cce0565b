"""Building ahead: what is wanted next is begun by another process, which ends when nobody waits for it."""

import time

from hw.board import load_board
from hw.scheduler.engine import SchedulerEngine
from sim.build.cache import VARIABLE
from sim.run.ahead import built_ahead


def test_it_builds_until_it_is_left(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path))
    board = load_board("u55c")
    with built_ahead(board) as build:
        build("scheduler", SchedulerEngine().default_config(board))
        until = time.monotonic() + 120
        while not list(tmp_path.glob("*/*/design.pickle")) or not list(
            tmp_path.glob("*/*.building-*/bench.sv")
        ):
            assert time.monotonic() < until
            time.sleep(0.1)
    assert not list(tmp_path.glob("*/*.building-*")), "what was begun is removed by who ends"


def test_what_does_not_build_is_found_out_where_it_is_wanted():
    with built_ahead(load_board("u55c")) as build:
        for _ in range(20):
            build("conv", None)
            time.sleep(0.05)
