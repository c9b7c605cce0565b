"""What follows from the engine's configuration on each board."""

import pytest

from hw.attention.config import AttentionConfig
from hw.attention.engine import AttentionEngine
from hw.board import board_names, load_board
from sim.adapter import EngineAdapter
from sim.engines.attention import ADAPTER

ENGINE = AttentionEngine()


@pytest.mark.parametrize("name", board_names())
def test_default_fits_its_board(name):
    board = load_board(name)
    config = ENGINE.default_config(board)
    assert ENGINE.resources(config, board).first_over(board.user) is None
    placement = ENGINE.placement(config, board)
    assert list(placement) == list(ENGINE.arguments(config, board).ports)
    assert set(placement.values()) <= set(range(board.memory.channels))


def test_cards_with_hbm_get_the_full_array():
    config = ENGINE.default_config(load_board("u55c"))
    assert config == AttentionConfig(rows=32, head_dim=64, tile_keys=64, ports_per_stream=2)


def test_arguments_are_the_adapters():
    board, config = load_board("u55c"), AttentionConfig()
    table = ENGINE.arguments(config, board)
    assert isinstance(ADAPTER, EngineAdapter)
    case = next(iter(ADAPTER.cases()))
    launch = ADAPTER.launch(ADAPTER.job(case.tensors, case.config), case.config, board)
    call = [argument.name for argument in ENGINE.arguments(case.config, board).call]
    assert sorted([*launch.scalars, *(buffer.argument for buffer in launch.buffers)]) == sorted(call)
    assert table.ports == ("gmem0", "gmem1", "gmem2", "gmem3", "gmem4")
