"""Waits of a residual for banks, beside the naive model of the scratchpad, which is held to the gates."""

import numpy as np
import pytest

from hw.network.matrix.drain import RESULTS
from hw.network.model.latency import RESPONSE_CYCLES
from hw.network.model.residual import ReadTiming, ResidualCommand, residual_waits
from hw.network.scratchpad.response import READS_AHEAD
from hw.network.scratchpad.shape import GranuleShape
from tests.hw.network.scratchpad.naive import NaiveReaders

SHAPE = GranuleShape(banks=4, rows=64, memory="block")
TIMING = ReadTiming(
    banks=SHAPE.banks,
    words=SHAPE.words,
    ahead=READS_AHEAD,
    response_cycles=RESPONSE_CYCLES,
    result_cycles=27,
    results=RESULTS,
    lead=4,
)
#: A tap of a whole word in the image.
TAP = (0, 0, 0, 0, 0, 0, 1, 1, 1, 1)


def command(**fields):
    given = {
        "steps": 300,
        "block_steps": 128,
        "feeds": 1,
        "n_tiles": 1,
        "columns": 300,
        "base": 0,
        "across": 4,
        "down": 0,
        "group_step": 0,
        "height": 1,
        "width": 300,
        "stride_y": 1,
        "stride_x": 1,
        "residual_base": 0,
        "residual_pitch": 4,
        "residual_granules": 4,
    }
    return ResidualCommand(**(given | fields))


def requests(made, taps):
    """Return the requests of the feed, with whether each is of a last tap, and those of the residual."""
    feed, residual = [], []
    for first in range(0, made.steps, made.block_steps):
        steps = range(first, min(first + made.block_steps, made.steps))
        for tile in range(made.n_tiles):
            for number, tap in enumerate(taps):
                feed += [
                    (made.base + made.across * step + tap[0], 15, number == len(taps) - 1) for step in steps
                ]
            at = made.residual_base + tile * made.residual_granules
            enable = 2**made.residual_granules - 1
            residual += [(at + step * made.residual_pitch, enable) for step in steps]
    size = SHAPE.words * SHAPE.granules
    return [(at % size, enable, last) for at, enable, last in feed], [(at % size, on) for at, on in residual]


def naive(made, taps):
    """Return the waits of the last step and of the last result, port by port in Python."""
    feed, residual = requests(made, taps)
    model = NaiveReaders(SHAPE, 2)
    asked, stepped, words, sent = [0, 0], 0, [], 0
    first = last_step = last_sent = 0
    while sent < len(residual):
        now = model.now
        words_in, residual_in = (port.valid for port in model.ports)
        steps = words_in and (not feed[stepped][2] or len(words) - sent < TIMING.results)
        goes = residual_in and sent < len(words) and words[sent] + TIMING.result_cycles <= now
        first = first or (now if steps else 0)
        offers = [
            feed[asked[0]][:2] if asked[0] < len(feed) and now >= TIMING.lead else None,
            residual[asked[1]] if asked[1] < len(residual) else None,
        ]
        taken = model.cycle(offers, [steps, goes])
        asked = [count + was for count, was in zip(asked, taken, strict=True)]
        if steps:
            words += [now] * feed[stepped][2]
            stepped, last_step = stepped + 1, now
        if goes:
            sent, last_sent = sent + 1, now
    ideal = first + len(feed) - 1
    return last_step - ideal, last_sent - ideal - TIMING.result_cycles


@pytest.mark.parametrize(
    "fields",
    [
        {"residual_pitch": 16, "across": 8},
        {"residual_pitch": 8, "residual_base": 37, "residual_granules": 2},
        {"residual_base": 6, "across": 3},
        {"n_tiles": 3, "residual_pitch": 12, "residual_base": 6, "across": 5},
    ],
)
@pytest.mark.parametrize("tiles", [1, 2])
def test_waits_are_those_of_the_scratchpad(fields, tiles):
    """With two taps a residual has twice the time, and hardly waits."""
    taps = [(4 * tile, *TAP[1:]) for tile in range(tiles)]
    made = command(**fields)
    found, wanted = residual_waits(made, np.array(taps, np.int64), TIMING), naive(made, taps)
    assert (wanted[1] > 30) == (tiles == 1)
    for mine, theirs in zip(found, wanted, strict=True):
        assert abs(mine - theirs) <= max(8, 0.15 * theirs)


def test_a_feed_outside_of_the_image_reads_nothing():
    made = command(residual_pitch=16, across=8)
    outside = [(0, -1, *TAP[2:])]
    assert residual_waits(made, np.array(outside, np.int64), TIMING) == (0, 0)
    assert residual_waits(made, np.array([TAP], np.int64), TIMING)[1] > 20
