"""The estimate of resources against a count by Yosys, and the regions of a kernel larger than a die."""

from dataclasses import replace

import pytest

from hw.board import load_board
from hw.board.resources import Resources
from hw.network.engine import NetworkEngine

ENGINE = NetworkEngine()

#: Counts of the default of a board by ``loomwork resources network --board BOARD``.
COUNTED = {
    "zcu104": Resources(lut=92_659, ff=127_172, dsp=1_365, bram36=155, uram=64),
}


@pytest.mark.parametrize("name", COUNTED)
def test_the_estimate_errs_on_the_high_side_by_little(name):
    board = load_board(name)
    estimated = dict(ENGINE.resources(ENGINE.default_config(board), board).items())
    for resource, counted in COUNTED[name].items():
        assert counted <= estimated[resource] <= 1.15 * counted, resource
    assert estimated["dsp"] == COUNTED[name].dsp


def test_the_attention_unit_is_counted():
    """As ``pytest -m soak tests/sim/timing/test_attention_unit.py`` counts it, beside ports and table."""
    counted = Resources(lut=105_656, ff=57_641, dsp=1_648, bram36=15, uram=0)
    board = load_board("u55c")
    config = ENGINE.default_config(board)
    before, after = (
        dict(ENGINE.resources(each, board).items()) for each in (config, replace(config, attention_rows=16))
    )
    for resource, count in counted.items():
        assert count <= after[resource] - before[resource], resource
    assert after["lut"] - before["lut"] <= 1.25 * counted.lut
    assert after["ff"] - before["ff"] <= 1.25 * counted.ff
    assert after["dsp"] - before["dsp"] == counted.dsp


def test_rows_of_attention_leave_the_die_of_the_memory():
    board = load_board("u55c")
    config = replace(ENGINE.default_config(board), attention_rows=16)
    near, far = ENGINE.regions(config, board)
    assert near.rest
    assert len(near.parts) + len(far.parts) == 32 + 2 * 8
    assert {f"body.attention.core.{kind}_14" for kind in ("rows_0", "results")} <= {*far.parts}


@pytest.mark.parametrize(("name", "cells"), [("u55c", [8, 24]), ("zcu104", [16])])
def test_cells_leave_a_die_that_is_too_small(name, cells):
    board = load_board(name)
    found = ENGINE.regions(ENGINE.default_config(board), board)
    assert [len(region.parts) for region in found] == cells
    assert [region.slr for region in found] == [*range(len(cells))]
