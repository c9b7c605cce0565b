"""The vector unit keeps to the budget of the largest board."""

import pytest

from hw.board import load_board
from hw.lib.convert import UltraScalePlus, to_verilog
from hw.lib.place import CellPlacer
from hw.network.scratchpad.shape import GranuleShape
from hw.network.vector.config import VectorConfig
from hw.network.vector.unit import VectorUnit
from sim.build.synthesis import synthesize
from sim.timing.estimate import estimate


@pytest.mark.soak
def test_vector_unit_within_budget():
    """64 lanes: two multipliers each for additions, scales and int16; 32 for softmax, and 5 for roots."""
    platform = UltraScalePlus()
    placer = CellPlacer(sources=True, platform=platform)
    unit = VectorUnit(VectorConfig(shape=GranuleShape()), placer)
    top = to_verilog(unit, name="vector_unit", sources=True, platform=platform)
    verilog = f"{top}\n{placer.verilog}"
    taken = synthesize(verilog, "vector_unit").total
    assert taken.lut <= 48_600
    assert taken.dsp == 6 * 64 + 32 + 5
    assert not estimate(verilog, "vector_unit", load_board("u55c")).endpoints_over
