"""The network kernel keeps to its budget of resources, and to the clock with its cells on two dies."""

from dataclasses import replace

import pytest

from hw.board import load_board
from hw.network.engine import NetworkEngine
from sim.build.design import kernel_design
from sim.build.synthesis import synthesize
from sim.timing.kernel import kernel_timing


@pytest.mark.soak
@pytest.mark.parametrize(
    ("name", "changes", "lut", "dsp", "uram"),
    [
        ("u55c", {}, 170_000, 2_725, 128),
        ("u55c", {"attention_rows": 16, "tables": 256}, 300_000, 4_373, 128),
        ("zcu104", {}, 97_000, 1_365, 64),
    ],
)
def test_kernel_within_budget(name, changes, lut, dsp, uram):
    engine, board = NetworkEngine(), load_board(name)
    config = replace(engine.default_config(board), **changes)
    # Kept, as for `loomwork timing`: the tests share its netlists.
    design = kernel_design(engine, config, board, sources=True)
    taken = synthesize(design.verilog, design.top_name).total
    assert taken.lut <= lut
    assert (taken.dsp, taken.uram) == (dsp, uram)
    found = kernel_timing(design.verilog, design.top_name, board, regions=design.regions)
    assert not found.endpoints_over, found.paths[:5]
    assert not any(region.over for region in found.regions)
