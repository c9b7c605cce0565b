"""The estimate of resources against counts by Yosys, and the defaults that boards get by it."""

import pytest

from hw.board import board_names, load_board
from hw.board.resources import Resources
from hw.conv.config import ConvConfig
from hw.conv.core.pointwise.cell import PointwiseCell
from hw.conv.engine import ConvEngine
from hw.lib.convert import to_verilog
from sim.build.synthesis import synthesize

ENGINE = ConvEngine()

#: Counts of the default of three boards by ``loomwork resources conv --board BOARD``.
COUNTED = {
    "ultra96v2": Resources(lut=47_726, ff=64_771, dsp=280, bram36=116, uram=0),
    "zcu104": Resources(lut=113_365, ff=157_347, dsp=1_131, bram36=78, uram=28),
    "u55c": Resources(lut=304_043, ff=450_342, dsp=3_610, bram36=231, uram=130),
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_estimate_errs_on_the_high_side_by_little(name):
    board = load_board(name)
    estimated = dict(ENGINE.resources(ENGINE.default_config(board), board).items())
    for resource, counted in COUNTED[name].items():
        assert counted <= estimated[resource] <= 1.15 * counted, resource
    assert estimated["dsp"] == COUNTED[name].dsp


@pytest.mark.parametrize("name", board_names())
def test_the_default_leaves_a_fifth_of_its_board(name):
    board = load_board(name)
    estimated = ENGINE.resources(ENGINE.default_config(board), board)
    for resource, available in board.user.items():
        assert dict(estimated.items())[resource] <= 0.8 * available, resource


@pytest.mark.soak
@pytest.mark.parametrize(("bits", "columns"), [(8, 2), (4, 3)])
def test_columns_share_multipliers(bits, columns):
    """Two products of int8, or three of 4 bits, in a DSP, and two for the scale of each column."""
    config = ConvConfig(weight_bits=bits, inputs=8, outputs=8)
    cell = PointwiseCell(config, columns=columns, beat_bits=256)
    assert synthesize(to_verilog(cell, name="cell"), "cell").total.dsp == 8 + 2 * columns
