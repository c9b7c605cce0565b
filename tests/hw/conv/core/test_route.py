"""Words of jobs take their paths in order, at any pace of sources and sinks."""

import random

import pytest

from hw.conv.core.core import WAYS
from hw.conv.core.route import StreamRouter
from tests.hw.conv.core.plain import small
from tests.support.gateware.streams import Side, exchange


@pytest.mark.parametrize("stall", [0.0, 0.5, 0.9])
def test_jobs_take_their_ways(stall):
    rng = random.Random(f"{stall}")
    unit = StreamRouter(small(lanes=8), ways=WAYS, sources=3, sinks=3)
    sent, expected = [[], [], []], [[], [], []]
    source_turns, sink_turns = [[], [], []], [[], [], []]

    def way(source, sink, words):
        out = [other for other in WAYS if other[0] == source].index((source, sink))
        into = [other for other in WAYS if other[1] == sink].index((source, sink))
        source_turns[source].append({"other": out, "words": len(words)})
        sink_turns[sink].append({"other": into, "words": len(words)})
        sent[source] += words
        expected[sink] += words

    for _ in range(12):
        # A job: memory to a unit, perhaps to the other unit, then out.
        first = rng.choice([1, 2])
        path = [(0, first - 1)]
        last = first
        if rng.random() < 0.5:
            last = 3 - first
            path.append((first, last - 1))
        path.append((last, 2))
        for source, sink in path:
            way(source, sink, [rng.getrandbits(64) for _ in range(rng.randint(1, 9))])
    sides = {f"i_{n}": Side(unit.i[n], items=sent[n], stall=stall) for n in range(3)}
    sides |= {f"o_{n}": Side(unit.o[n], count=len(expected[n]), stall=stall) for n in range(3)}
    sides |= {f"source_{n}": Side(unit.source_turns[n], items=source_turns[n]) for n in range(3)}
    sides |= {f"sink_{n}": Side(unit.sink_turns[n], items=sink_turns[n]) for n in range(3)}
    exchange(unit, sides)
    for n in range(3):
        assert sides[f"o_{n}"].received == expected[n]
