"""Tiles swept many at once equal those swept one by one."""

import copy

import numpy as np
import pytest

from hw.board import load_board
from hw.conv.config import ConvConfig
from hw.conv.model.latency import Latency
from hw.conv.model.maps import Ports
from hw.conv.model.supply import TileBeats, Weights


def one_by_one(weights, tiles, begin, *, pitch, reload, ready):
    begins = []
    for beats in tiles:
        begin = max(weights.tile(beats, free=begin + reload) + ready, begin + pitch)
        begins.append(begin)
    return begins


def state(weights):
    return weights._arrives, weights._count, weights._last, list(weights._taken)


@pytest.mark.parametrize("board", ["u55c", "ultra96v2"])
def test_sweeps_of_many_tiles_are_those_of_each(board):
    """Also where memory is slower than a beat a cycle, and where tiles wait for the reader's queue."""
    rng = np.random.default_rng(5)
    board = load_board(board)
    config, steady = ConvConfig(ports=1), 0
    latency = Latency(config, board)
    for _ in range(60):
        weights = Weights(Ports(config, board, first=True), latency)
        weights.ask(int(rng.integers(0, 100)))
        most = int(rng.choice([6, 40, 200]))
        beats = [int(n) for n in rng.integers(2, most, 300)] if rng.random() < 0.3 else [most] * 300
        pace = {"pitch": int(rng.integers(8, 200)), "reload": int(rng.integers(2, 7)), "ready": 3}
        begin = weights.tile(beats[0], free=0) + 3
        [each, many, at_once] = (copy.deepcopy(weights) for _ in range(3))
        begins = one_by_one(each, beats[1:], begin, **pace)
        assert many.sweeps(beats[1:], begin, **pace) == begins
        assert state(many) == state(each)
        first = int(rng.integers(1, 200))
        for weights in (each, at_once):
            weights.__dict__ |= copy.deepcopy(many.__dict__)
        begin = begins[-1]
        room = pace["pitch"] - pace["reload"] - pace["ready"]
        count = at_once.steady(
            TileBeats(beats), first, free=begin + pace["reload"], pitch=pace["pitch"], room=room
        )
        ahead = one_by_one(each, beats[first : first + count], begin, **pace)
        assert ahead == [begin + n * pace["pitch"] for n in range(1, count + 1)]
        assert state(at_once) == state(each)
        steady += count
    assert steady > 1000
