"""Addresses of passes against a loop over heads and positions; rows of memory that reads find open."""

import numpy as np
import pytest

from hw.attention.model.pieces import OpenRows, PassAddresses, Pieces
from hw.attention.model.refresh import Refreshes
from hw.board import load_board
from tests.hw.attention.plain import random_job, shape_of, small

BOARD = load_board("u55c")
#: Cycles from the start to the request that the first refresh of channel 0 holds.
REFRESH = 148


def piece(first, length=64):
    return Pieces(first=first, stride=0, count=1, length=length)


@pytest.mark.parametrize("seed", range(20))
def test_places_are_those_of_heads_one_behind_the_other(seed):
    rng = np.random.default_rng(seed)
    config = small(rows=4)
    places, end = PassAddresses(config), 0
    for job in (random_job(rng, config, most_keys=40) for _ in range(3)):
        shape = shape_of(job)
        touched = []
        for this in shape.passes(config):
            found = places.add(shape, this, row_bytes=48)
            assert found.count * found.length == 48 * this.shape.rows
            touched += [
                byte
                for n in range(found.count)
                for byte in range(
                    found.first + n * found.stride, found.first + n * found.stride + found.length
                )
            ]
        size = 48 * shape.queries * shape.heads if touched else 0
        assert sorted(touched) == list(range(end, end + size))
        end += size


def test_a_row_that_was_read_is_open():
    """Rows of two bank groups hold 2 KiB in turns of 32 bytes; opening one takes 14 cycles of 900 MHz."""
    reads = OpenRows(BOARD, Refreshes(BOARD, start=460))
    assert reads.later(0, piece(0)) == 0
    assert reads.later(10, piece(64)) == -5
    assert reads.later(20, piece(2048)) == 0
    assert reads.later(30, piece(2048 + 64, length=32)) == -5
    # The last one left the row of one group open.
    assert reads.later(40, piece(2048 + 96, length=32)) == 0


def test_a_refresh_holds_reads_and_closes_rows():
    reads = OpenRows(BOARD, Refreshes(BOARD, start=460))
    reads.later(0, piece(0))
    held = [reads.later(cycle, piece(0)) for cycle in range(REFRESH - 20, REFRESH + 120)]
    assert held[0] == held[-1] == -5
    assert 105 <= max(held) <= 110
    first = held.index(max(held))
    assert held[first + 50] == max(held) - 50 - 5
