"""The scratchpad in granules and its pixel feed keep to the budget of the largest board."""

import pytest

from hw.board import load_board
from hw.lib.convert import to_verilog
from hw.lib.place import CellPlacer
from hw.network.matrix.feed import PixelFeed
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from hw.network.scratchpad.shape import GranuleShape
from sim.build.synthesis import synthesize
from sim.timing.estimate import estimate

READERS, WRITERS = 5, 3


@pytest.mark.soak
def test_crossbar_within_budget():
    """4 MiB in UltraRAM: 16 banks a slice, 5 readers and 3 writers."""
    placer = CellPlacer(sources=True)
    scratchpad = GranuleScratchpad(GranuleShape(), placer, readers=READERS, writers=WRITERS)
    top = to_verilog(scratchpad, name="granule_scratchpad", sources=True)
    verilog = f"{top}\n{placer.verilog}"
    taken = synthesize(verilog, "granule_scratchpad").total
    assert taken.lut <= 36_000
    assert taken.uram == 128
    found = estimate(verilog, "granule_scratchpad", load_board("u55c"))
    assert not found.endpoints_over
    assert not found.doubt.long_wires_over


@pytest.mark.soak
def test_pixel_feed_within_budget():
    verilog = to_verilog(PixelFeed(GranuleShape()), name="pixel_feed", sources=True)
    assert synthesize(verilog, "pixel_feed").total.lut <= 1_400
    assert not estimate(verilog, "pixel_feed", load_board("u55c")).endpoints_over
