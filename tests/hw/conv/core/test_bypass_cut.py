# amaranth: UnusedElaboratable=no
"""The bypass, cut into parts: words equal plain slices, cycles those of the prediction."""

import random

import pytest

from hw.conv.core.bypass_cut import BypassCut
from tests.hw.conv.core.plain import small
from tests.support.gateware.streams import STALLS, Side, exchange

#: Pixels, parts of each, channels of a part.
MAPS = [(5, 2, 9), (7, 1, 40), (3, 2, 16), (6, 2, 29), (1, 1, 3), (9, 2, 1)]


def word(channels):
    return sum(channel << 8 * n for n, channel in enumerate(channels))


def split(channels, lanes):
    return [word(channels[n : n + lanes]) for n in range(0, len(channels), lanes)]


@pytest.mark.parametrize("stall", STALLS)
def test_every_part_begins_a_word(stall):
    config = small(bypass_words=128)
    rng = random.Random(f"{stall}")
    given, wanted = [], []
    for pixels, parts, size in MAPS:
        for _ in range(pixels):
            channels = [rng.randrange(256) for _ in range(parts * size)]
            given += split(channels, config.lanes)
            wanted += [
                (part, min(size - n, config.lanes))
                for first in range(0, len(channels), size)
                for n, part in zip(
                    range(0, size, config.lanes),
                    split(channels[first : first + size], config.lanes),
                    strict=True,
                )
            ]
    unit = BypassCut(config)
    commands = [{"pixels": n, "parts": parts, "channels": size} for n, parts, size in MAPS]
    o = Side(stream=unit.o, count=len(wanted), stall=stall)
    exchange(
        unit,
        {
            "command": Side(stream=unit.command, items=commands, stall=stall),
            "i": Side(stream=unit.i, items=given, stall=stall),
            "o": o,
        },
        seed=7,
    )
    # Lanes after the last channel of a part are undefined.
    assert [found & (1 << 8 * lanes) - 1 for found, (_, lanes) in zip(o.received, wanted, strict=True)] == [
        part for part, _ in wanted
    ]


@pytest.mark.parametrize(("parts", "channels"), [(1, 16), (2, 8), (2, 9), (2, 29), (1, 33)])
def test_cycles_of_a_pixel(parts, channels):
    config = small(bypass_words=128)
    pixels = 20
    words = -(-parts * channels // config.lanes)
    unit = BypassCut(config)
    o = Side(stream=unit.o, count=pixels * parts * -(-channels // config.lanes))
    exchange(
        unit,
        {
            "command": Side(
                stream=unit.command, items=[{"pixels": pixels, "parts": parts, "channels": channels}]
            ),
            "i": Side(stream=unit.i, items=[0] * (pixels * words)),
            "o": o,
        },
    )
    pace = max(words, BypassCut.pixel_cycles(config, parts=parts, channels=channels))
    assert o.cycles[-1] - o.cycles[0] == pytest.approx(pace * pixels, abs=pace + 2)
