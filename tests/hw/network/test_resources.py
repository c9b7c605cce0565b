"""The estimate of resources against a count by Yosys, and the regions of a kernel larger than a die."""

from dataclasses import replace

import pytest

from hw.board import load_board
from hw.board.resources import Resources
from hw.network.engine import NetworkEngine

ENGINE = NetworkEngine()

#: By board and rows of attention: counts of ``loomwork resources network --board BOARD``, with attention of
#: ``loomwork resources network tokens.yaml``, which has `TOKENS`.
COUNTED = {
    ("u55c", 0): Resources(lut=163_129, ff=229_699, dsp=2_725, bram36=242, uram=128),
    ("u55c", 16): Resources(lut=288_476, ff=297_161, dsp=4_373, bram36=287, uram=128),
    ("zcu104", 0): Resources(lut=92_659, ff=127_172, dsp=1_365, bram36=155, uram=64),
}
TOKENS = {"attention_rows": 16, "tables": 256}


@pytest.mark.parametrize(("name", "rows"), COUNTED)
def test_the_estimate_errs_on_the_high_side_by_little(name, rows):
    board, counts = load_board(name), COUNTED[name, rows]
    config = replace(ENGINE.default_config(board), **(TOKENS if rows else {}))
    estimated = dict(ENGINE.resources(config, board).items())
    for resource, counted in counts.items():
        assert counted <= estimated[resource] <= 1.12 * counted, resource
    assert estimated["dsp"] == counts.dsp


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
