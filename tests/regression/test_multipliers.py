"""Simulations with models of multipliers: bytes, counters and cycles are those of the packaged text."""

import pytest

from hw.board import load_board
from hw.registry import ENGINES, find_engine
from sim.build.design import MULTIPLIERS_VARIABLE
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.run.run import find_adapter, run

#: Launches of a configuration.
LAUNCHES = 8


def launches():
    """Return some launches of each engine that has models, of each configuration of its regression."""
    for engine in ENGINES:
        if find_engine(engine).modelled:
            found = {}
            for case in find_adapter(engine).cases():
                alike = found.setdefault((case.board, repr(case.config)), [])
                if len(alike) < LAUNCHES:
                    alike.append(case)
            for number, alike in enumerate(found.values()):
                yield pytest.param(engine, alike, id=f"{engine}-{number}")


@pytest.mark.soak
@pytest.mark.parametrize(("engine", "cases"), list(launches()))
def test_models_change_no_byte_and_no_counter(engine, cases, tmp_path, subtests, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")
    for case in cases:
        with subtests.test(case.name):
            seen = []
            for multipliers in ("models", "cells"):
                monkeypatch.setenv(MULTIPLIERS_VARIABLE, multipliers)
                result = run(
                    engine,
                    case.config,
                    load_board(case.board),
                    case.tensors,
                    seed=case.seed,
                    memory_mode=case.memory,
                    directory=tmp_path,
                )
                assert result.bit_exact, result.mismatches
                report = result.report
                outputs = {name: value.tobytes() for name, value in result.integers.items()}
                cycles = report.simulated.cycles_start_to_done, report.simulated.cycles_simulated
                seen.append((outputs, cycles, report.cycles, report.traffic, report.details))
            assert seen[0] == seen[1]
