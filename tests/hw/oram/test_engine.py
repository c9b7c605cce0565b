"""The map's engine on every board: default, ports, refusals."""

import pytest

from hw.board import board_names, load_board
from hw.config import check_fits
from hw.errors import InputError
from hw.oram.config import OramConfig
from hw.oram.engine import OramEngine
from tests.support.command_line import refused

ENGINE = OramEngine()


@pytest.mark.parametrize("name", board_names())
def test_the_default_fits_or_the_board_is_refused_by_name(name):
    board = load_board(name)
    if board.host is None:
        with pytest.raises(InputError, match=f"access to the host's memory.*'{name}'"):
            ENGINE.default_config(board)
    else:
        config = ENGINE.default_config(board)
        check_fits(ENGINE, config, board)
        assert config.keys >= 1 << 20


def test_one_line_says_that_the_host_s_memory_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    legal = "u250, u280, u50, u55c, or a path to a .yaml file of another"
    message = f"board must be one with access to the host's memory, where pages lie: {legal}, not 'zcu104'"
    assert refused("verilog", "--engine", "oram", "--board", "zcu104") == message
    assert not any(tmp_path.iterdir())


def test_a_map_that_does_not_fit_is_refused_with_a_table():
    with pytest.raises(InputError, match=r"AMD Alveo U55C(.|\n)*lists and HBM bins .* MiB a channel"):
        ENGINE.arguments(OramConfig(log_n=30, value_bytes=512), load_board("u55c"))


def test_ports_to_hbm_have_channels_of_their_own():
    placement = ENGINE.placement(OramConfig(), load_board("u55c"))
    assert (placement["host0"], placement["host1"]) == (0, 0)
    channels = [channel for port, channel in placement.items() if port.startswith("gmem")]
    assert channels == list(range(24))
