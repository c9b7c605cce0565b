"""Bursts of results by hand: when the last of them is on the bus."""

import numpy as np
import pytest

from hw.attention.model.pieces import Pieces
from hw.attention.model.results import bursts, sent
from hw.attention.movers.result_writer import ResultWriter


def on_the_bus(pieces, row_bytes, *, drained=1000, free=0):
    return sent(drained, free=free, pieces=pieces, row_bytes=row_bytes, beat_bytes=32, burst_beats=16)


def piece(first, length):
    return Pieces(first=first, stride=0, count=1, length=length)


@pytest.mark.parametrize("seed", range(20))
def test_bursts_end_at_blocks_and_have_every_beat_once(seed):
    rng = np.random.default_rng(seed)
    first, length = int(rng.integers(0, 4096)), int(rng.integers(1, 4096))
    found = list(bursts(first, first + length, beat_bytes=32, burst_beats=16))
    start = first
    for beats, end in found:
        assert beats == len({byte // 32 for byte in range(start, end)})
        assert end == first + length or end % 512 == 0
        assert start // 512 == (end - 1) // 512
        start = end
    assert start == first + length


def test_a_burst_goes_when_its_last_beat_has_come():
    assert on_the_bus(piece(0, 512), 32) == 1000 + ResultWriter.LATENCY + 15
    assert on_the_bus(piece(0, 64), 32) == 1000 + ResultWriter.LATENCY + 1


def test_a_short_last_burst_waits_for_the_one_before_it():
    """Twelve beats and four: the first twelve have come four cycles before the last."""
    assert on_the_bus(piece(128, 512), 32) == 1000 + ResultWriter.LATENCY - 4 + 16 - 1


def test_rows_narrower_than_a_beat_come_slower_than_they_leave():
    """Sixteen rows of 16 bytes: eight beats on the bus. The bursts' halves do not wait for each other."""
    assert on_the_bus(piece(0, 256), 16) == 1000 + ResultWriter.LATENCY + 7
    assert on_the_bus(piece(384, 256), 16) == 1000 + ResultWriter.LATENCY + 3


def test_pieces_are_bursts_of_their_own():
    four = Pieces(first=0, stride=4096, count=4, length=64)
    assert on_the_bus(four, 32) == 1000 + ResultWriter.LATENCY + 1


def test_results_of_a_pass_wait_for_those_before_it():
    assert on_the_bus(piece(0, 64), 32, free=1020) == 1022
