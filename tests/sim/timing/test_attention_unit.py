"""The attention unit of the network kernel keeps to the budget of the largest board."""

import pytest

from hw.board import load_board
from hw.lib.convert import UltraScalePlus, to_verilog
from hw.lib.place import CellPlacer
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.unit import AttentionUnit
from hw.network.scratchpad.shape import GranuleShape
from sim.build.synthesis import synthesize
from sim.timing.estimate import estimate


@pytest.mark.soak
def test_attention_unit_within_budget():
    """16 rows of 64 lanes: a multiplier a value, half of one a key, and seven for scales and division."""
    platform = UltraScalePlus()
    placer = CellPlacer(sources=True, platform=platform)
    unit = AttentionUnit(AttentionUnitConfig(shape=GranuleShape()), placer)
    top = to_verilog(unit, name="attention_unit", sources=True, platform=platform)
    verilog = f"{top}\n{placer.verilog}"
    taken = synthesize(verilog, "attention_unit").total
    assert taken.lut <= 113_000
    assert taken.dsp == 16 * (64 + 32 + 7)
    assert not estimate(verilog, "attention_unit", load_board("u55c")).endpoints_over
