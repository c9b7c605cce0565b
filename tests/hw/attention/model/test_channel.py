"""How long a channel takes for pieces, by hand: HBM of 900 MHz beside a kernel of 300 MHz."""

import pytest

from hw.attention.model.channel import PieceTimes
from hw.attention.model.pieces import Pieces
from hw.board import load_board

BOARD = load_board("u55c")
#: Of the time, what refreshes of 14 + 315 in 3,510 cycles leave.
LEFT = 1 - 329 / 3510


def pieces(stride, *, count=8, length=128):
    return Pieces(first=0, stride=stride, count=count, length=length)


def test_heads_in_banks_of_their_own_take_no_longer_than_their_beats():
    times = PieceTimes(BOARD, write=False)
    assert times.cycles(pieces(2048)) == 0  # three bits of an address choose bank and half of the groups
    assert times.cycles(pieces(128)) == 0  # one row
    assert times.cycles(pieces(16384, count=1)) == 0


def test_heads_in_one_bank_take_turns():
    """A read window of 32 granules has a pass of 8 pieces of 4; with the first one out, the next pass's."""
    assert PieceTimes(BOARD, write=False).cycles(pieces(16384)) == pytest.approx(8 * 45 / 2 / 3 / LEFT)
    # Of three heads four passes' pieces go together: the window moves on by what has gone.
    visit = 14 + 7 * 4 + (5 + 14)
    assert PieceTimes(BOARD, write=False).cycles(pieces(16384, count=3)) == pytest.approx(
        3 * visit / 4 / 3 / LEFT
    )
    # A write window of 64 has two more: 12 to the first write, 5 more in a group, 35 until the row is closed.
    visit = 12 + 5 * 4 + (4 + 2 + 15 + 14)
    assert PieceTimes(BOARD, write=True).cycles(pieces(16384)) == pytest.approx(8 * visit / 3 / 3 / LEFT)


def test_the_fewer_share_a_bank_the_less_time_they_take():
    times = PieceTimes(BOARD, write=False)
    assert 0 < times.cycles(pieces(16384 + 1024)) < times.cycles(pieces(8192)) < times.cycles(pieces(16384))
