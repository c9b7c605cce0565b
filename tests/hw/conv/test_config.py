"""The default engine of every board, and refused configurations."""

import pytest

from hw.board.files import board_names, load_board
from hw.config import check_fits
from hw.conv.config import ConvConfig
from hw.conv.engine import ConvEngine
from hw.errors import InputError

ENGINE = ConvEngine()


@pytest.mark.parametrize("name", board_names())
def test_every_board_s_default_fits_and_ports_have_channels(name):
    board = load_board(name)
    config = ENGINE.default_config(board)
    check_fits(ENGINE, config, board)
    placed = ENGINE.placement(config, board)
    assert list(placed) == list(ENGINE.arguments(config, board).ports)
    assert len(set(placed.values())) == min(len(placed), board.memory.channels)


def test_an_alveo_card_has_the_largest_shape():
    config = ENGINE.default_config(load_board("u55c"))
    assert config.inputs * config.outputs >= 4096
    assert config == ConvConfig()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"lanes": 48}, "lanes must be a power of two from 8 to 128, not 48"),
        ({"taps": 3}, "taps must be 1 or 2, not 3"),
        ({"taps": True}, "taps must be a whole number, not True"),
        ({"strip": 1}, "strip must be true or false, not 1"),
        ({"strip_words": 8}, "strip_words must be a power of two from 16 to 512, not 8"),
        ({"generators": 16}, "generators must be a power of two from 1 to 8, not 16"),
        ({"bank_words": 32}, "bank_words must be a power of two from 64 to 65536, not 32"),
        ({"memory": "lut"}, "memory must be ultra or block, not 'lut'"),
        ({"fraction_bits": 9}, "fraction_bits must be from 0 to 8, not 9"),
        ({"fraction_bits": 2.5}, "fraction_bits must be a whole number, not 2.5"),
        ({"offset_entries": 32}, "offset_entries must be a power of two from 64 to 65536, not 32"),
        ({"dot_words": 8}, "dot_words must be 0 or a power of two from 16 to 4096, not 8"),
        ({"tap_words": 100}, "tap_words must be a power of two from 64 to 4096, not 100"),
        ({"inputs": 128}, "inputs must be a power of two from 8 to 64, not 128"),
        ({"outputs": 4}, "outputs must be a power of two from 8 to 64, not 4"),
        ({"weight_bits": 6}, "weight_bits must be 4 or 8, not 6"),
        ({"block_pixels": 1024}, "block_pixels must be a power of two from 16 to 512, not 1024"),
        ({"block_words": 32}, "block_words must be a power of two from 64 to 65536, not 32"),
        ({"bypass_words": 32}, "bypass_words must be a power of two from 64 to 65536, not 32"),
        ({"ports": 16}, "ports must be a power of two from 1 to 8, not 16"),
        ({"gather_words": 32}, "gather_words must be 0 or a power of two from 64 to 4096, not 32"),
        ({"port_bits": 64}, "port_bits must be 0 or a power of two from 128 to 512, not 64"),
    ],
)
def test_illegal_values(changes, message):
    with pytest.raises(InputError) as caught:
        ConvConfig(**changes)
    assert str(caught.value) == message
