"""Deadlines of an operation that is alone, against the HBM model at all times around a refresh."""

import random

import pytest

from hw.oram.config import OramConfig
from hw.oram.sizing.idle import idle_sizes
from tests.support.memory.native import NativeMemory
from tests.support.oram.bucket_traffic import BEATS, BYTES, hbm
from tests.support.oram.idle_reads import Line, read

#: Cycles of the refresh interval in which a read meets the refresh's beginning at channel 0.
PHASES = range(596, 612)
#: Cycles from a record's address to its header's; least cycles of a read that met a refresh.
LATER, MET = 2, 170
#: Bytes from row to row of a bank.
ROW = 1 << 14


@pytest.mark.parametrize("seed", [0, 1])
def test_reads_that_meet_a_refresh_are_in_time(seed):
    config, rng = OramConfig(), random.Random(seed)
    sizes, beats = idle_sizes(config), config.record_bytes // 32
    longest = [0, 0, 0]
    with NativeMemory(config=hbm(1)) as memory:
        for phase in PHASES:
            bucket = Line(later=0, address=BYTES * rng.randrange(1 << 13), beats=BEATS, kind=0)
            longest[0] = max(longest[0], read(memory, [bucket], phase)[0])
            # Its header in another row of its bank.
            address = config.record_bytes * rng.randrange(ROW // config.record_bytes)
            lines = [
                Line(later=0, address=address, beats=beats, kind=0),
                Line(later=LATER, address=address + ROW * rng.randrange(1, 60), beats=1, kind=1),
            ]
            last, head = read(memory, lines, phase)
            longest[1:] = max(longest[1], last), max(longest[2], head)
    assert MET < longest[0] <= sizes.position_cycles
    assert longest[0] < longest[1] <= sizes.touch_cycles
    assert MET < longest[2] <= sizes.head_cycles
