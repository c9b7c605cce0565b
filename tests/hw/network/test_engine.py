"""The network engine on each board: its default, its ports, its refusals."""

import pytest

from hw.board import load_board
from hw.config import check_fits
from hw.errors import InputError
from hw.lib.place import InlinePlacer
from hw.network.config import NetworkConfig
from hw.network.engine import NetworkEngine

ENGINE = NetworkEngine()


@pytest.mark.parametrize(
    ("name", "columns", "ports"), [("u55c", 64, 8), ("u280", 64, 8), ("u50", 64, 8), ("zcu104", 32, 4)]
)
def test_the_default_fits(name, columns, ports):
    board = load_board(name)
    config = ENGINE.default_config(board)
    assert (config.columns, config.weight_ports) == (columns, ports)
    assert 8 * config.port_bytes == board.memory.port_data_width
    check_fits(ENGINE, config, board)


def test_the_smallest_board_is_refused():
    board = load_board("ultra96v2")
    with pytest.raises(InputError, match="DSP of network"):
        check_fits(ENGINE, ENGINE.default_config(board), board)


@pytest.mark.parametrize(
    ("columns", "port_bytes", "legal"),
    [(64, 32, "2 or 4 or 8 of 32 bytes"), (32, 32, "1 or 2 or 4 of 32 bytes"), (16, 64, "1 of 64 bytes")],
)
def test_columns_limit_the_ports_of_weights(columns, port_bytes, legal):
    with pytest.raises(InputError, match=f"^weight_ports must be {legal} for {columns} columns, not 3$"):
        NetworkConfig(columns=columns, port_bytes=port_bytes, weight_ports=3)


def test_ports_have_channels_of_their_own_where_there_are_any():
    for name, most in (("u55c", 8), ("zcu104", 0)):
        board = load_board(name)
        placed = ENGINE.placement(ENGINE.default_config(board), board)
        assert max(placed.values()) == most
        assert set(placed) == set(ENGINE.arguments(ENGINE.default_config(board), board).ports)


def test_only_weights_decide_nothing():
    board = load_board("u55c")
    ports = ENGINE.arguments(NetworkConfig(), board).ports
    assert set(ports) - set(ENGINE.data_ports(NetworkConfig(), board)) == {"gmem0"}


def test_a_word_of_another_memory_is_refused():
    config = ENGINE.default_config(load_board("zcu104"))
    with pytest.raises(InputError, match="port_bytes must be 32"):
        ENGINE.body(config, load_board("u55c"), InlinePlacer())
