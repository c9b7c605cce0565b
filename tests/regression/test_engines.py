"""Every registered engine's regression cases, generated, co-simulated and compared bit for bit."""

import importlib

import pytest

from hw.board import load_board
from hw.config import config_hash
from hw.registry import ENGINES
from sim.run.run import run


def engine_cases():
    for engine in ENGINES:
        adapter = importlib.import_module(f"sim.engines.{engine}.adapter").ADAPTER
        for case in adapter.cases():
            marks = [pytest.mark.soak] if case.soak else []
            # One built simulator a configuration: keep its cases on one worker.
            digits = config_hash(engine, case.config, load_board(case.board))
            marks.append(pytest.mark.xdist_group(f"{engine}-{digits}"))
            yield pytest.param(engine, case, id=f"{engine}-{case.name}", marks=marks)


@pytest.mark.parametrize(("engine", "case"), list(engine_cases()))
def test_rtl_equals_golden_bit_for_bit(engine, case, tmp_path):
    result = run(
        engine,
        case.config,
        load_board(case.board),
        case.tensors,
        seed=case.seed,
        memory_mode=case.memory,
        directory=tmp_path,
    )
    assert result.bit_exact
