# amaranth: UnusedElaboratable=no
"""Multipliers that a synthesis tool takes for a pair of rows."""

import re

import pytest

from hw.attention.config import AttentionConfig
from hw.attention.core.row.cell import AttentionRows
from hw.attention.core.row.score import ScoreUnit
from hw.attention.core.row.value import ValueUnit
from hw.lib.convert import to_verilog
from tests.support.gateware.verilog import yosys


def multipliers(component, folder):
    """Count the DSP48E2 of a component: Yosys' mapping for UltraScale+, up to where they are made."""
    (folder / "cell.v").write_text(to_verilog(component, name="cell"))
    report = folder / "stat.txt"
    assert (
        yosys(
            f"read_verilog {folder / 'cell.v'}",
            "synth_xilinx -family xcup -flatten -top cell -run begin:coarse",
            "synth_xilinx -family xcup -flatten -top cell -run coarse:map_memory",
            f"tee -o {report} stat",
        )
        == "done"
    )
    counted = re.search(r"^ +(\d+) .*DSP48E2|DSP48E2 +(\d+)", report.read_text(), re.MULTILINE)
    return int(counted[1] or counted[2]) if counted else 0


@pytest.mark.sample(1)
@pytest.mark.parametrize(("rows", "expected"), [(2, 16), (1, 16)])
def test_two_rows_share_the_multipliers_of_their_scores(rows, expected, tmp_path):
    """16 lanes: 8 multipliers a row in a pair, 16 for a row by itself."""
    unit = ScoreUnit(AttentionConfig(lanes=16, merge_lanes=2, folds=1), rows=rows)
    assert multipliers(unit, tmp_path) == expected


def test_two_values_share_a_multiplier(tmp_path):
    """16 lanes: 8 multipliers for the values of a row, whose probabilities are short."""
    unit = ValueUnit(AttentionConfig(lanes=16, merge_lanes=2, probability_bits=8))
    assert multipliers(unit, tmp_path) == 8


@pytest.mark.soak
@pytest.mark.parametrize(("bits", "values"), [(20, 16), (8, 8)])
def test_multipliers_of_a_pair(bits, values, tmp_path):
    """16 lanes: 16 for the scores of both rows; in each a scale, a slope, and those of the values."""
    config = AttentionConfig(lanes=16, merge_lanes=2, probability_bits=bits)
    assert multipliers(AttentionRows(config, rows=2), tmp_path) == 16 + 2 * (2 + values)
