"""Defaults on devices that no file describes: a fifth is left free, and a fair share is used."""

import itertools
import random
from dataclasses import replace

import pytest

from hw.attention.config import AttentionConfig
from hw.attention.engine import AttentionEngine
from hw.board import Board
from hw.board.memory_timing import DdrTiming, HbmTiming
from hw.board.resources import Resources
from hw.config import check_fits
from hw.conv.config import ConvConfig
from hw.conv.engine import ConvEngine
from hw.engine import Engine
from hw.errors import InputError
from hw.network.config import NetworkConfig
from hw.network.engine import NetworkEngine
from hw.registry import ENGINES, find_engine
from tests.support.boards import small_board

#: Of which the first are in `make test`.
SEEDS = [pytest.param(seed, marks=[] if seed < 15 else pytest.mark.soak) for seed in range(60)]


def device(seed: int) -> Board:
    """Return a board of 10,000 to 2 million LUT, with other resources and a memory in any proportion."""
    rng = random.Random(seed)
    lut = int(10 ** rng.uniform(4, 6.3))
    near = 10 ** rng.uniform(-0.5, 0.5)
    user = Resources(
        lut=lut,
        ff=2 * lut,
        dsp=int(lut * near / rng.uniform(100, 400)),
        bram36=int(lut * near / rng.uniform(300, 1500)),
        uram=rng.choice((0, int(lut * near / rng.uniform(1000, 4000)))),
    )
    board = small_board()
    hbm = rng.random() < 0.3
    memory = replace(
        board.memory,
        kind="hbm2" if hbm else "ddr4",
        timing=HbmTiming() if hbm else DdrTiming(),
        channels=32 if hbm else rng.choice((1, 1, 2, 4)),
        port_data_width=256 if hbm else rng.choice((32, 64, 128, 128, 256, 512, 1024)),
        channel_bytes=1 << 28,
        burst_beats=16,
    )
    slrs = rng.choice((1, 1, 2, 3, 4))
    return replace(board, name=f"device{seed}", device=user, user=user, slrs=slrs, memories=(memory,))


def free(engine: Engine, config: object, board: Board) -> bool:
    """Return whether a fifth of each resource is left."""
    need = engine.resources(config, board)
    return all(dict(need.items())[name] <= 0.8 * count for name, count in board.user.items())


@pytest.mark.parametrize("name", sorted(ENGINES))
@pytest.mark.parametrize("seed", SEEDS)
def test_a_default_leaves_a_fifth_or_the_board_is_refused_once(name, seed):
    engine, board = find_engine(name), device(seed)
    try:
        config = engine.default_config(board)
        check_fits(engine, config, board)
    except InputError:
        return
    smallest = engine.default_config(replace(board, user=Resources(lut=0, ff=0, dsp=0, bram36=0, uram=0)))
    assert free(engine, config, board) or config == smallest or name == "oram"


def scan_attention(board):
    """Every width and number of rows with one and two streams, with no cache and with a small one."""
    for lanes, rows, streams, keys in itertools.product((16, 32, 48, 64), range(1, 33), (1, 2), (0, 1024)):
        if rows * streams <= 32 and streams <= board.memory.channels:
            lanes_a_cycle = max(2, -(-lanes // 64))
            config = AttentionConfig(
                lanes=lanes, rows=rows, streams=streams, cached_keys=keys, merge_lanes=lanes_a_cycle
            )
            yield config, rows * streams * lanes


def scan_conv(board):
    """Square and other arrays of 8 to 64 lanes, with all options and with none, in either RAM."""
    for lanes, inputs, outputs in itertools.product((8, 16, 32, 64), repeat=3):
        if max(inputs, outputs) > lanes or inputs < lanes // 2:
            continue
        for full, memory in itertools.product((True, False), ("ultra", "block")):
            config = ConvConfig(
                lanes=lanes,
                inputs=inputs,
                outputs=outputs,
                taps=2 if full and lanes == 64 else 1,
                strip=full,
                mask=full,
                gather_words=512 if full else 0,
                memory=memory,
                bank_words=1024,
                block_words=512,
                bypass_words=256,
                ports=1,
            )
            yield config, inputs * outputs + lanes * config.taps * 4


def scan_network(board):
    """Every number of columns with the least scratchpad, in either RAM."""
    width = board.memory.port_data_width // 8
    for columns, memory in itertools.product((16, 32, 64), ("ultra", "block")):
        config = NetworkConfig(
            columns=columns,
            lanes=16,
            memory=memory,
            scratchpad_bytes=1 << 18,
            banks=4,
            port_bytes=width,
            weight_ports=max(1, 8 * columns // (8 * width)),
        )
        yield config, columns


SCANS = {
    "attention": (AttentionEngine(), scan_attention, lambda c: c.rows * c.streams * c.lanes),
    "conv": (ConvEngine(), scan_conv, lambda c: c.inputs * c.outputs + 4 * c.lanes * c.taps),
    "network": (NetworkEngine(), scan_network, lambda c: c.columns),
}


@pytest.mark.parametrize("name", SCANS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_default_has_half_the_multipliers_of_the_best_that_fits(name, seed):
    engine, scan, multipliers = SCANS[name]
    board = device(seed)
    if name == "network" and board.memory.port_data_width not in (128, 256, 512):
        with pytest.raises(
            InputError, match=f"port_width of {board.name}'s memory must be one of 128, 256, 512"
        ):
            engine.default_config(board)
        return
    config = engine.default_config(board)
    best = max((count for each, count in scan(board) if free(engine, each, board)), default=0)
    assert best == 0 or free(engine, config, board)
    assert 2 * multipliers(config) >= best
