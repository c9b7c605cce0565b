"""Refreshes of channels, against a list of them."""

import pytest

from hw.attention.config import AttentionConfig
from hw.attention.engine import AttentionEngine
from hw.attention.kernel.arguments import argument_table
from hw.attention.model.refresh import Refreshes, host_cycles
from hw.board import load_board


@pytest.mark.parametrize("board", ["u55c", "zcu104"])
def test_waits_are_those_of_a_list(board):
    board = load_board(board)
    timing, channels = board.memory.timing, board.memory.channels
    interval, blocked = (board.cycles(time) for time in (timing.refresh_interval_ns, timing.refresh_ns))
    refreshes = Refreshes(board, start=460)
    for channel in range(channels):
        first = interval / 2 + interval * (channel + 1) / channels - 460
        begins = [first + n * interval for n in range(4)]
        for cycle in range(0, 3_000, 7):
            comes = cycle + board.cycles(timing.request_ns)
            ends = [begin + blocked - comes for begin in begins if begin <= comes < begin + blocked]
            assert refreshes.wait([channel], cycle) == int(sum(ends))
    slowest = max(refreshes.wait([channel], 500) for channel in range(channels))
    assert refreshes.wait(range(channels), 500) == slowest
    assert refreshes.wait([], 500) == 0


def test_what_is_moved_is_what_a_channel_moves_cycle_by_cycle():
    board = load_board("u55c")
    timing = board.memory.timing
    interval, blocked = (board.cycles(time) for time in (timing.refresh_interval_ns, timing.refresh_ns))
    for start in (460, 1237):
        refreshes = Refreshes(board, start=start)
        assert refreshes.share == blocked / interval
        for channel in (0, 13, 31):
            first = interval / 2 + interval * (channel + 1) / board.memory.channels - start
            begins = [first + n * interval - board.cycles(timing.request_ns) for n in range(8)]
            for cycle in range(0, 2_400, 173):
                for cycles in (1, 300, 1_500, 3_000):
                    moved, now = 0, cycle
                    while moved < cycles:
                        moved += not any(begin <= now < begin + blocked for begin in begins)
                        now += 1
                    assert abs(refreshes.transferred(channel, cycle, cycles) - now) <= 2


@pytest.mark.parametrize("streams", [1, 2, 4])
def test_a_kernel_of_fewer_arguments_starts_earlier(streams):
    """Memory refreshes from its own start on, and a host writes a word in four cycles."""
    board = load_board("u55c")
    default = AttentionEngine().default_config(board)
    small = AttentionConfig(rows=2, streams=streams, ports_per_stream=2, query_ports=2, result_ports=4)
    words = [
        sum(argument.bits // 32 for argument in argument_table(config).call) for config in (default, small)
    ]
    assert host_cycles(default) == 460
    assert host_cycles(default) - host_cycles(small) == 4 * (words[0] - words[1])
