"""The convolution kernel under Verilator, bit for bit: random layers of every kind, and blocks of networks.

In the soak alone: its simulator takes minutes to build.
"""

import pytest

from hw.board import load_board
from hw.registry import ENGINES
from sim.engines.conv.adapter import ADAPTER
from sim.run.run import run

CASES = list(ADAPTER.cases())


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case, tmp_path, monkeypatch):
    monkeypatch.setitem(ENGINES, "conv", "hw.conv.engine:ConvEngine")
    result = run(
        "conv",
        case.config,
        load_board(case.board),
        case.tensors,
        directory=tmp_path,
        memory_mode=case.memory,
        seed=case.seed,
    )
    assert result.bit_exact, result.mismatches
