"""The network kernel keeps to its budget of resources, and to the clock with its cells on two dies."""

import pytest

from hw.board import load_board
from hw.network.engine import NetworkEngine
from hw.verilog import generate
from sim.build.synthesis import synthesize
from sim.timing.kernel import kernel_timing


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "lut", "dsp", "uram"), [("u55c", 130_000, 2_592, 128), ("zcu104", 76_500, 1_296, 64)]
)
def test_default_kernel_within_budget(name, lut, dsp, uram):
    engine, board = NetworkEngine(), load_board(name)
    design = generate(engine, engine.default_config(board), board, sources=True)
    taken = synthesize(design.verilog, design.top_name).total
    assert taken.lut <= lut
    assert (taken.dsp, taken.uram) == (dsp, uram)
    found = kernel_timing(design.verilog, design.top_name, board, regions=design.regions)
    assert not found.endpoints_over, found.paths[:5]
    assert not any(region.over for region in found.regions)
