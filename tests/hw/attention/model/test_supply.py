"""Sources, and the channel of queries and results, by hand."""

import math

import numpy as np
import pytest

from hw.attention.model.refresh import Refreshes
from hw.attention.model.supply import LockstepPorts, ResultChannel, Supply, SupplySchedule
from hw.board import load_board
from hw.lib.dma.write import WriteDMA

BOARD = load_board("u55c")


def test_a_channel_that_is_ahead_sends_a_beat_a_cycle():
    channel = ResultChannel(read_interval=0.75, write_interval=0.8)
    channel.read(32, first=10)
    assert channel.write(64, first=100) == (163, 163)
    channel.read(32, first=110)
    assert channel.write(64, first=200) == (263, 263)


def test_a_channel_that_is_behind_sends_later_and_stops_the_core_when_the_buffer_is_full():
    channel = ResultChannel(read_interval=1.0, write_interval=1.0)
    sent = 0
    for number in range(1, 11):
        channel.read(100, first=100 * number)
        drained, sent = channel.write(100, first=100 * number)
        # Two beats a cycle are asked of it.
        assert sent == 100 + 200 * number - 1
        assert drained == max(100 * number + 99, sent - WriteDMA.FIFO_BEATS)
    assert sent - drained == WriteDMA.FIFO_BEATS


def test_without_a_limit_nothing_waits():
    channel = ResultChannel()
    channel.read(1000, first=0)
    assert channel.write(5, first=3) == (7, 7)


def test_a_channel_that_takes_longer_for_pieces_is_behind_by_that():
    channel = ResultChannel(write_interval=0.75)
    assert channel.write(32, first=0, least=40.0) == (31, 39)
    assert channel.write(32, first=32) == (63, 63)


def test_an_odd_number_of_items_leaves_a_port_idle():
    """Two ports give an item each, in two beats: three items keep the first port for four beats."""
    source = SupplySchedule(Supply(turn=2, beats=1.0))
    assert source.ask(3) == (0, 2)
    assert source.ask(2) == (4, 5)


def test_a_channel_runs_ahead_of_its_port_while_it_is_faster():
    """Cycles of the channel for ten items, in turn fewer and more than the port's: only their sum counts."""
    source = SupplySchedule(Supply(depth=100))
    assert [source.ask(10, least=least) for least in (4.0, 16.0, 4.0)] == [(0, 9), (10, 20), (21, 30)]
    assert source.ask(10, least=30.0) == (31, 54)


def test_a_channel_is_ahead_by_no_more_than_there_is_room():
    source = SupplySchedule(Supply(depth=10))
    source.ask(10)
    source.take(100)
    assert source.ask(10, least=20.0) == (91, 120)


def test_ports_in_lockstep_give_an_item_when_the_last_of_them_does():
    """Two ports, a part each in 2 cycles: one refreshes during the first ask, the other during the second."""
    refreshes = Refreshes(BOARD, start=460)
    behind = 50
    ports = LockstepPorts(channels=(0, 16), refreshes=refreshes, behind=behind)
    source = SupplySchedule(Supply(latency=100, interval=2, lockstep=ports))
    times = dict.fromkeys(ports.channels, 0.0)
    apart = []
    for items, known in ((60, 20), (300, 0), (1, 2_000), (200, 2_000)):
        came = []  # a port's, part by part
        for channel, before in times.items():
            begins = max(before, known + 100) - behind
            parts = [refreshes.transferred(channel, begins, 0)]
            while len(parts) <= items:
                parts.append(refreshes.transferred(channel, parts[-1], 2))
            came.append([parts[n] + behind for n in (0, items - 1, items)])
        first, last, after = zip(*came, strict=True)
        times = dict(zip(times, after, strict=True))
        assert source.ask(items, earliest=known) == (math.ceil(max(first)), math.ceil(max(last)))
        apart.append(times[0] != times[16])
    assert apart[0]


@pytest.mark.parametrize(("interval", "gap", "ahead"), [(0.34, 1.0, 512), (0.68, 1.0, 256), (0.9, 1.0, 40)])
def test_a_channel_that_is_faster_than_its_bus_hides_refreshes(interval, gap, ahead):
    """Part by part: the channel moves one when it does not refresh and memory has room, the bus follows."""
    refreshes, behind, latency = Refreshes(BOARD, start=460), 50, 100
    for channel in (0, 5, 16, 31):
        ports = LockstepPorts(
            channels=(channel,), refreshes=refreshes, behind=behind, interval=interval, ahead=ahead
        )
        source = SupplySchedule(Supply(latency=latency, interval=gap, gap=gap, lockstep=ports))
        assert source.supply.ahead
        given, moved = [-math.inf], latency - interval
        for items, known in ((30, 0), (900, 20), (200, 2_500), (1_400, 0)):
            moved = max(moved, known + latency - interval)
            first = len(given)
            for n in range(first, first + items):
                held = given[n - ahead] if n > ahead else 0.0
                moved = ports.transferred(channel, max(moved, held), interval)
                given.append(max(moved, given[-1] + gap))
            found = source.ask(items, earliest=known)
            assert np.allclose(found, (given[first], given[-1]), atol=2 if ahead > 40 else 8)
