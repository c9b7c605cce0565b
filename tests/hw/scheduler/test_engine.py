"""The scheduler as the generator sees it: Verilog of every size, resources, refusals."""

import dataclasses

import pytest

from hw.board import board_names, load_board
from hw.errors import InputError
from hw.lib.place import InlinePlacer
from hw.scheduler.config import frozen
from hw.scheduler.engine import SchedulerEngine
from hw.verilog import generate, write_package
from tests.support.program.example import example_program

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
    # One bank and one tile, placed many times, and no initial content.
    assert design.verilog.count("module scheduler_bank(") == 1
    assert design.verilog.count("module scheduler_tile(") == 1
    assert design.verilog.count("scheduler_bank bank_") == config.banks
    assert len(design.verilog) < 1_000_000
    # An UltraRAM has 4096 words of 72 bits: four of them, 128 KiB.
    assert ENGINE.resources(config, board).uram == 16 * 1024 // 128 * 4
    assert design.meta["estimated_resources"]["dsp"] == 0


def test_a_program_may_be_frozen():
    board = load_board("u55c")
    program = example_program(32)
    design = generate(ENGINE, frozen(program), board)
    assert "loader" not in design.verilog
    assert [argument.name for argument in ENGINE.arguments(frozen(program), board).call] == ["memory"]
    loading = ENGINE.arguments(ENGINE.default_config(board), board)
    assert [argument.name for argument in loading.call] == ["memory", "program", "program_records"]


def test_block_ram_is_counted():
    board = load_board("u55c")
    config = frozen(example_program(32), scratchpad_bytes=96 << 10, memory="block")
    ultra = ENGINE.resources(dataclasses.replace(config, memory="ultra"), board)
    block = ENGINE.resources(config, board)
    # 384 words of 256 bits a bank: four block RAMs, or four UltraRAMs.
    assert (ultra.uram, block.uram) == (32, 0)
    assert block.bram36 - ultra.bram36 == 32
    # Tables of 1,025 rows take three block RAMs where those of five take one, and transfers and commands of
    # more than 72 bits twice as many: steps, two transfers, two commands, four of operands.
    rows = {"max_steps": 1025, "max_operands": 1025, "max_transfers": 1025}
    more = ENGINE.resources(dataclasses.replace(config, program=None, **rows), board)
    assert more.bram36 - block.bram36 == 2 * (1 + 2 * 1 + 2 * 2 + 4)


def test_a_small_device_gets_a_small_scratchpad():
    sizes = {name: ENGINE.default_config(load_board(name)).scratchpad_bytes >> 10 for name in board_names()}
    assert sizes == {
        **dict.fromkeys(("u250", "u280", "u50", "u55c"), 2048),
        **dict.fromkeys(("kv260", "zcu104"), 1024),
        **dict.fromkeys(("aupzu3", "ultra96v2"), 128),
    }


def test_the_package(tmp_path):
    board = load_board("u55c")
    design = generate(ENGINE, ENGINE.default_config(board), board)
    write_package(design, tmp_path)
    assert design.meta["estimated_resources"]["uram"] == 64
    assert "module loomwork_scheduler(" in design.verilog
    assert [port.name for port in design.ports] == ["gmem0"]


def test_words_must_be_as_wide_as_the_port():
    board, other = load_board("u55c"), load_board("zcu104")
    with pytest.raises(InputError, match="word_bytes must be 32, the port of u55c's memory, not 16"):
        ENGINE.body(ENGINE.default_config(other), board, InlinePlacer())
