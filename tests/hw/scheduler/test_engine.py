"""The scheduler as the generator sees it: Verilog of every size, resources, refusals."""

import dataclasses

import pytest

from hw.board import board_names, load_board
from hw.errors import InputError
from hw.lib.place import InlinePlacer
from hw.scheduler.engine import SchedulerEngine
from hw.verilog import generate, write_package

ENGINE = SchedulerEngine()


@pytest.mark.parametrize("name", board_names())
def test_default_fits_every_board(name):
    board = load_board(name)
    config = ENGINE.default_config(board)
    assert config.word_bits == board.memory.port_data_width
    assert ENGINE.resources(config, board).first_over(board.user) is None
    assert ENGINE.placement(config, board) == {"gmem0": 0}


def test_a_large_scratchpad_is_small_text():
    board = load_board("u55c")
    config = dataclasses.replace(ENGINE.default_config(board), scratchpad_bytes=16 << 20)
    design = generate(ENGINE, config, board)
    # One bank and one tile, placed many times, and no initial content but the ROMs'.
    assert design.verilog.count("module scheduler_bank(") == 1
    assert design.verilog.count("module scheduler_tile(") == 1
    assert design.verilog.count("scheduler_bank bank_") == config.banks
    assert len(design.verilog) < 1_000_000
    # An UltraRAM has 4096 words of 72 bits: four of them, 128 KiB.
    assert ENGINE.resources(config, board).uram == 16 * 1024 // 128 * 4
    assert design.meta["estimated_resources"]["dsp"] == 0


def test_block_ram_is_counted():
    board = load_board("u55c")
    config = dataclasses.replace(ENGINE.default_config(board), memory="block")
    ultra = ENGINE.resources(dataclasses.replace(config, memory="ultra"), board)
    block = ENGINE.resources(config, board)
    # 384 words of 256 bits a bank: four block RAMs, or four UltraRAMs.
    assert (ultra.uram, block.uram) == (32, 0)
    assert block.bram36 - ultra.bram36 == 32


def test_the_package_by_default_is_a_network_s(tmp_path):
    board = load_board("u55c")
    design = generate(ENGINE, ENGINE.default_config(board), board)
    write_package(design, tmp_path)
    assert design.meta["estimated_resources"]["uram"] == 32
    assert "module loomwork_scheduler(" in design.verilog
    assert [port.name for port in design.ports] == ["gmem0"]


def test_words_must_be_as_wide_as_the_port():
    board, other = load_board("u55c"), load_board("zcu104")
    with pytest.raises(InputError, match="word_bytes must be 32, the port of u55c's memory, not 16"):
        ENGINE.body(ENGINE.default_config(other), board, InlinePlacer())
