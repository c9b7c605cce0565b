"""The engine's configuration: legal ranges, and what follows from it on each board."""

import pytest

from hw.attention.config import AttentionConfig
from hw.attention.engine import AttentionEngine
from hw.attention.row import Timing
from hw.board import board_names, load_board
from hw.errors import InputError
from sim.adapter import EngineAdapter
from sim.engines.attention import ADAPTER

ENGINE = AttentionEngine()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": 0}, "rows must be from 1 to 64, not 0"),
        ({"rows": 65}, "rows must be from 1 to 64, not 65"),
        ({"rows": 2.5}, "rows must be a whole number, not 2.5"),
        ({"rows": True}, "rows must be a whole number, not True"),
        ({"head_dim": 48}, "head_dim must be 32 or 64, not 48"),
        ({"tile_keys": 8}, "tile_keys must be a power of two from 16 to 128, not 8"),
        ({"tile_keys": 100}, "tile_keys must be a power of two from 16 to 128, not 100"),
        ({"tile_keys": 256}, "tile_keys must be a power of two from 16 to 128, not 256"),
        ({"ports_per_stream": 3}, "ports_per_stream must be a power of two from 1 to 16, not 3"),
        ({"ports_per_stream": 32}, "ports_per_stream must be a power of two from 1 to 16, not 32"),
        ({"merge_lanes": 16}, "merge_lanes must be a power of two from 1 to 8, not 16"),
        ({"merge_lanes": 2, "tile_keys": 16}, "merge_lanes must be a power of two from 4 to 8, not 2"),
    ],
)
def test_illegal_values(changes, message):
    with pytest.raises(InputError) as raised:
        AttentionConfig(**changes)
    assert str(raised.value) == message


def test_stages_follow_each_other():
    """The figures the package's drawing gives."""
    timing = Timing(AttentionConfig())
    assert (timing.write, timing.ready, timing.value) == (7, 9, 6)
    assert (timing.merge, timing.divide, timing.normalize, timing.drained) == (8, 11, 19, 19 + 32 + 6)


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
