"""Regions: what leaves the memory's die, what then fits, and ports that are registers."""

import re

import pytest

from hw.board import load_board
from hw.board.resources import Resources
from hw.lib.convert import to_verilog
from hw.lib.place import CellPlacer
from hw.oram.config import OramConfig
from hw.oram.core.pages.sealer import PageSealer
from hw.oram.core.session.response_sealer import ResponseSealer
from hw.oram.regions import regions
from hw.oram.resources import answers_estimate, estimate, sealer_estimate
from tests.support.oram.workloads import SMALLEST

SEALERS = {"body.answers": answers_estimate, "body.sealer": sealer_estimate}


@pytest.mark.parametrize("board", ["u55c", "u280", "u50"])
@pytest.mark.parametrize("config", [{}, {"value_bytes": 64}, {"value_bytes": 384}, {"log_n": 24}])
def test_the_sealers_leave_a_die_that_is_too_small(config, board):
    config, board = OramConfig(**config), load_board(board)
    here, there = regions(config, board)
    assert (here.parts, there.parts) == ((), tuple(SEALERS))
    held = [part(config) for part in SEALERS.values()]
    moved = held[0] + held[1]
    kept = {name: count - getattr(moved, name) for name, count in estimate(config).items()}
    assert estimate(config).over_shares(board.die)
    assert not moved.over_shares(board.die)
    assert not Resources(**kept).over_shares(board.die)


def test_a_small_map_stays_on_the_memory_s_die():
    (only,) = regions(OramConfig(aes_lanes=1), load_board("u55c"))
    assert only.rest


@pytest.mark.parametrize("part", [PageSealer, ResponseSealer])
def test_ports_are_registers(part):
    """Inputs are sampled as they come, but for the reset of valid bits; outputs are flip-flops."""
    text = to_verilog(part(OramConfig(**SMALLEST, aes_lanes=1), CellPlacer()), name="part")
    module = text[text.index("module part(") :]
    module = module[: module.index("\nendmodule")]
    ports = re.findall(r"^  (input|output) (?:\[\d+:0\] )?(\w+);", module, re.MULTILINE)
    assert {"round_keys", "power", "i__payload", "o__payload"} <= {name for _, name in ports}
    for way, name in ports:
        if name in ("clk", "rst"):
            continue
        used = re.findall(rf"^ +(.*[^\w$.\\]{name}(?:\[.*)?;)$", module, re.MULTILINE)
        used = [line for line in used if not re.match(rf"(?:in|out)put |wire |assign \\{name}[.\[]", line)]
        if way == "output":
            assert any(re.match(rf"reg (?:\[\d+:0\] )?{name};", line) for line in used), name
        else:
            sampled = r"\S+ +=" if name.endswith(("valid", "enable")) else r"\w+ <="
            assert len(used) == 1, name
            assert re.fullmatch(rf"{sampled} {name};", used[0]), name
