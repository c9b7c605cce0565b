"""The channel of queries and results, by hand."""

from hw.attention.model.supply import ResultChannel
from hw.lib.dma_write import WriteDMA


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
