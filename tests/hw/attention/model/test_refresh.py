"""Refreshes of channels, against a list of them."""

import pytest

from hw.attention.model.refresh import HOST_CYCLES, Refreshes
from hw.board import load_board


@pytest.mark.parametrize("board", ["u55c", "zcu104"])
def test_waits_are_those_of_a_list(board):
    board = load_board(board)
    timing, channels = board.memory.timing, board.memory.channels
    interval, blocked = (board.cycles(time) for time in (timing.refresh_interval_ns, timing.refresh_ns))
    refreshes = Refreshes(board)
    for channel in range(channels):
        first = interval / 2 + interval * (channel + 1) / channels - HOST_CYCLES
        begins = [first + n * interval for n in range(4)]
        for cycle in range(0, 3_000, 7):
            comes = cycle + board.cycles(timing.request_ns)
            ends = [begin + blocked - comes for begin in begins if begin <= comes < begin + blocked]
            assert refreshes.wait([channel], cycle) == int(sum(ends))
    slowest = max(refreshes.wait([channel], 500) for channel in range(channels))
    assert refreshes.wait(range(channels), 500) == slowest
    assert refreshes.wait([], 500) == 0
