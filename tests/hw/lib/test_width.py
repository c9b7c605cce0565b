# amaranth: UnusedElaboratable=no
"""Width conversion against a model on lists of lanes."""

from __future__ import annotations

import random

import pytest

from hw.errors import InputError
from hw.lib.width import WidthConverter
from tests.support.gateware.streams import STALLS, Side, exchange, grid

RATIOS = [(4, 1), (6, 2), (2, 2), (1, 4), (2, 6), (1, 1)]
LANE_WIDTH = 4


def beat(lanes, keep, last):
    return {
        "data": sum(value << (LANE_WIDTH * index) for index, value in enumerate(lanes)),
        "keep": sum(bit << index for index, bit in enumerate(keep)),
        "last": last,
    }


def lanes_of(item, count):
    values = [item["data"] >> (LANE_WIDTH * index) & ((1 << LANE_WIDTH) - 1) for index in range(count)]
    return values, [item["keep"] >> index & 1 for index in range(count)]


def random_beats(rng, count, lanes, *, sparse=False):
    """Packets with full beats but the last, whose keep is any low run; ``sparse``: any keep anywhere."""
    beats = []
    for index in range(count):
        last = int(index == count - 1 or rng.random() < 0.3)
        kept = rng.randrange(lanes + 1) if last else lanes
        keep = [rng.randrange(2) for _ in range(lanes)] if sparse else [int(n < kept) for n in range(lanes)]
        beats.append(beat([rng.randrange(1 << LANE_WIDTH) for _ in range(lanes)], keep, last))
    return beats


def model(beats, i_lanes, o_lanes):
    """Return the expected output as (kept lanes, keep, last); lanes not kept are None."""
    out = []
    gathered, kept = [], []

    def emit(last):
        values = [value if bit else None for value, bit in zip(gathered, kept, strict=True)]
        padding = o_lanes - len(values)
        out.append((values + [None] * padding, kept + [0] * padding, last))
        gathered.clear()
        kept.clear()

    for item in beats:
        values, keep = lanes_of(item, i_lanes)
        pieces = [(values[n : n + o_lanes], keep[n : n + o_lanes]) for n in range(0, i_lanes, o_lanes)]
        if item["last"]:
            while len(pieces) > 1 and not any(pieces[-1][1]):
                pieces.pop()
        for index, (piece, keeps) in enumerate(pieces):
            gathered.extend(piece)
            kept.extend(keeps)
            last = int(item["last"] and index == len(pieces) - 1)
            if last or len(gathered) == o_lanes:
                emit(last)
    return out


def run(beats, i_lanes, o_lanes, *, stall_i=0.0, stall_o=0.0, seed=0):
    expected = model(beats, i_lanes, o_lanes)
    dut = WidthConverter(lane_width=LANE_WIDTH, i_lanes=i_lanes, o_lanes=o_lanes)
    out = Side(dut.o, count=len(expected), stall=stall_o)
    exchange(dut, {"i": Side(dut.i, items=beats, stall=stall_i), "o": out}, seed=seed)
    found = []
    for item in out.received:
        values, keep = lanes_of(item, o_lanes)
        found.append(([v if k else None for v, k in zip(values, keep, strict=True)], keep, item["last"]))
    assert found == expected
    return out


@pytest.mark.parametrize(("ratio", "stall_i", "stall_o", "seed"), grid(RATIOS, STALLS, STALLS))
def test_against_the_model(ratio, stall_i, stall_o, seed):
    rng = random.Random(seed)
    beats = random_beats(rng, 20, ratio[0], sparse=seed % 2 == 1)
    run(beats, *ratio, stall_i=stall_i, stall_o=stall_o, seed=seed)


@pytest.mark.parametrize(("i_lanes", "o_lanes"), RATIOS)
def test_sparse_keep(i_lanes, o_lanes):
    run(random_beats(random.Random(5), 60, i_lanes, sparse=True), i_lanes, o_lanes, stall_o=0.3)


@pytest.mark.parametrize(("i_lanes", "o_lanes"), RATIOS)
def test_narrow_side_never_pauses(i_lanes, o_lanes):
    """Splitting: an output beat every cycle.  Joining: an input beat every cycle, an output each ratio-th."""
    beats = [beat([n % 16] * i_lanes, [1] * i_lanes, int(n % 12 == 11)) for n in range(48)]
    out = run(beats, i_lanes, o_lanes)
    ratio = max(o_lanes // i_lanes, 1)
    assert {b - a for a, b in zip(out.cycles, out.cycles[1:], strict=False)} == {ratio}


def test_short_packets_keep_the_rate():
    """One-piece packets, the worst case of joining and of splitting: still a beat every cycle."""
    joined = run([beat([n % 16], [1], 1) for n in range(40)], 1, 4)
    assert joined.gapless
    split = run([beat([n % 16, 0, 0, 0], [1, 0, 0, 0], 1) for n in range(40)], 4, 1)
    assert split.gapless


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"i_lanes": 3, "o_lanes": 2},
            "^o_lanes must be a multiple or a divisor of i_lanes, which is 3, not 2$",
        ),
        ({"i_lanes": 0}, "^i_lanes must be an integer of at least 1, not 0$"),
        ({"lane_width": 1.5}, "^lane_width must be an integer of at least 1, not 1.5$"),
    ],
)
def test_impossible_widths_are_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        WidthConverter(**{"lane_width": 8, "i_lanes": 1, "o_lanes": 1, **wrong})
