"""Every registered engine's regression cases, generated, co-simulated and compared bit for bit.

What the models promise of a launch is asserted where its bits are: bytes exactly, and cycles on the memory
that the models describe.
"""

from itertools import groupby

import pytest

from hw.board import load_board
from hw.config import config_hash
from hw.registry import ENGINES
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.run.forecast import forecast
from sim.run.run import Target, find_adapter, run

#: Cycles that any prediction may be off: many launches take some hundred, most of them memory's latency.
SLACK = 100
#: What the errors of all predictions may add up to, as a share of the cycles. All ports of a ZCU104 share a
#: channel, and how they disturb each other is not part of the model.
SHARE = {"u55c": 0.02, "zcu104": 0.03}


def simulators():
    """Return the cases that share a simulator, those of `make test` apart from those of the soak."""
    for engine in ENGINES:
        for key, cases in groupby(
            find_adapter(engine).cases(), lambda case: (case.board, case.config, case.soak)
        ):
            board, config, soak = key
            digits = config_hash(engine, config, load_board(board))
            marks = [pytest.mark.soak] if soak else []
            yield pytest.param(engine, list(cases), id=f"{engine}-{board}-{digits}", marks=marks)


@pytest.mark.parametrize(("engine", "cases"), list(simulators()))
def test_rtl_equals_golden_bit_for_bit_and_the_prediction(engine, cases, tmp_path, subtests, monkeypatch):
    # Launches are short, in the soak too; but those of the map take up to 300,000 cycles there.
    long = engine == "oram" and cases[0].soak
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O1" if long else "-O0")
    simulated = wrong = 0
    board = cases[0].board
    for case in cases:
        with subtests.test(case.name):
            result = run(
                engine,
                case.config,
                load_board(board),
                case.tensors,
                seed=case.seed,
                memory_mode=case.memory,
                directory=tmp_path,
            )
            assert result.bit_exact, result.mismatches
            prediction, cycles = result.report.prediction, result.report.cycles.cycles_total
            target = Target.of(engine, case.config, load_board(board))
            assert forecast(target, case.tensors).cycles.cycles_total == prediction.predicted_cycles
            assert prediction.predicted_read_error_bytes == 0
            assert prediction.predicted_write_error_bytes == 0
            if case.memory == "model":
                error = abs(prediction.predicted_cycles - cycles)
                assert error <= SLACK + 0.2 * cycles
                simulated += cycles
                wrong += error
    # Whether a launch meets a refresh more or less cannot be known.
    assert wrong <= SLACK + SHARE[board] * simulated
