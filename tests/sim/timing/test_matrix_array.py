"""The matrix array through Yosys: its cells and the broadcast around them keep to the clock."""

import pytest

from hw.board import load_board
from hw.lib.convert import UltraScalePlus, to_verilog
from hw.lib.place import CellPlacer
from hw.network.matrix.array import MatrixArray
from hw.network.matrix.config import MatrixConfig
from sim.build.synthesis import synthesize
from sim.timing.estimate import estimate

TOP = "matrix_array"


@pytest.mark.soak
def test_default_array_within_budget():
    placer = CellPlacer(sources=True, platform=UltraScalePlus())
    text = to_verilog(MatrixArray(MatrixConfig(), placer=placer), name=TOP, sources=True)
    verilog = f"{text}\n{placer.verilog}"
    cell = next(part for part in synthesize(verilog, TOP).parts if part.name == "network_cell")
    assert cell.count == 32
    assert cell.each.lut <= 1_100
    assert cell.each.ff <= 2_200
    assert (cell.each.dsp, cell.each.bram36) == (68, 1)
    found = estimate(verilog, TOP, load_board("u55c"))
    assert not found.endpoints_over, found.paths[:3]
