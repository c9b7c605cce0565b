"""What follows from the engine's configuration on each board, and Verilog of shapes at their limits."""

import pytest

from hw.attention.config import AttentionConfig
from hw.attention.engine import AttentionEngine
from hw.attention.resources import estimate
from hw.board import board_names, load_board
from hw.lib.place import InlinePlacer
from hw.package import render
from hw.verilog import generate
from sim.build.lint import lint
from sim.engines.attention.adapter import ADAPTER
from sim.run.adapter import EngineAdapter
from tests.hw.attention.plain import small

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
    shape = {"rows": 16, "streams": 2, "lanes": 64, "tile_keys": 32, "merge_lanes": 4, "cached_keys": 8192}
    assert config == AttentionConfig(**shape, query_ports=2, result_ports=4, decode=True)
    assert (config.ports, config.decode_streams, config.query_port_count) == (8, 16, 4)


def test_arguments_are_the_adapters():
    board, config = load_board("u55c"), AttentionConfig()
    table = ENGINE.arguments(config, board)
    assert isinstance(ADAPTER, EngineAdapter)
    assert table.ports == tuple(f"gmem{n}" for n in range(7))


def test_ports_are_as_wide_as_the_board_or_the_configuration_says():
    board = load_board("u55c")
    for bits, wanted in ((0, 256), (128, 128), (1024, 1024)):
        config = small(port_bits=bits)
        assert config.port_width(board.memory.port_data_width) == wanted
        body = ENGINE.body(config, board, InlinePlacer())
        for part in (body, body._core, body._movers):
            part._MustUse__used = True  # it is only asked: Amaranth is not to warn
        assert {port.data_width for port in body.signature.ports.values()} == {wanted}


@pytest.mark.soak  # the linter reads every engine in test_verilog
def test_linter_has_nothing_to_say_of_the_least(tmp_path):
    """Members without bits; `tests.hw.test_verilog` reads a kernel with everything switched on."""
    config = small(lanes=16, merge_lanes=2, rows=1, folds=1, cached_keys=0)
    for name, text in render(generate(ENGINE, config, load_board("u55c"))).items():
        if name.endswith(".v"):
            (tmp_path / name).write_text(text)
    assert lint(tmp_path / "loomwork_attention.v", "-Wall") == ""


def test_more_of_anything_takes_no_less():
    base = {"rows": 8, "lanes": 64, "folds": 1, "streams": 2, "cached_keys": 1024, "probability_bits": 16}
    least = estimate(AttentionConfig(**base), 256)
    for changes in (
        {"rows": 16},
        {"lanes": 128},
        {"folds": 3},
        {"streams": 4},
        {"ports_per_stream": 4},
        {"query_ports": 4},
        {"result_ports": 4},
        {"cached_keys": 65536},
        {"probability_bits": 20},
        {"merge_lanes": 8},
        {"logit_cap": True},
        {"alibi": True},
    ):
        more = estimate(AttentionConfig(**base | changes), 256)
        assert more != least
        for (name, need), (_, count) in zip(least.items(), more.items(), strict=True):
            assert need <= count or (name == "bram36" and more.uram > least.uram), changes


def test_decoding_takes_wires_and_buffers_but_no_multipliers():
    shape = {"rows": 8, "lanes": 32, "streams": 2, "tile_keys": 32, "ports_per_stream": 4, "port_bits": 256}
    plain, decode = (estimate(AttentionConfig(**shape, decode=decode), 256) for decode in (False, True))
    assert decode.dsp == plain.dsp
    # A cell chooses between two keys and two values; readers cut nothing, and four of them are for queries.
    ports = (16 + 1) * 5000 - (16 + 4) * 400
    assert decode.lut == plain.lut - ports + (16 + 4) * 256 + 5000


def test_two_rows_share_multipliers():
    """64 lanes: 32 for the scores of a row in a pair; with 8 bits 32 for its values, else 64; four more.

    Beside them 14 for addresses and lengths.
    """
    for rows, bits, wanted in ((32, 20, 32 * 100), (32, 8, 32 * 68), (1, 20, 64 + 64 + 4)):
        config = AttentionConfig(rows=rows, probability_bits=bits)
        assert estimate(config, 256).dsp == wanted + 14
