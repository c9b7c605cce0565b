# amaranth: UnusedElaboratable=no
"""The order of words, which the checker of programs trusts, is that of the gates."""

import random

import numpy as np
import pytest

from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.order import word_reads, word_writes
from hw.network.scratchpad.shape import GranuleShape
from tests.hw.network.attention.bench import Drawn, RowlessPlacer, UnitBench, run
from tests.support.gateware.streams import built, seeds

SHAPE = GranuleShape(banks=4, rows=64, memory="block")
CONFIG = AttentionUnitConfig(shape=SHAPE, rows=3, lanes=48, tile_keys=16, merge_lanes=4, tokens=32)
GRANULES = SHAPE.words * SHAPE.granules


@pytest.mark.parametrize("seed", seeds(1, 12))
def test_words_come_in_this_order(seed):
    bench = built(UnitBench, CONFIG, placer=RowlessPlacer)
    drawn = Drawn(random.Random(seed), CONFIG, GRANULES)
    command = drawn.command(tokens=24, heads=2)
    found = run(bench, [command], np.zeros((0, 16), np.int8), disturb=(0.5, 0.0), seed=seed)
    reads, writes = word_reads(CONFIG, command), word_writes(CONFIG, command)

    def words(given):
        return [*zip((given.addresses % GRANULES).tolist(), given.granules.tolist(), strict=True)]

    keys, others, written = ([(each[1:]) for each in port] for port in found.words)
    assert keys == words(reads["k"])
    assert written == words(writes)
    queries = {*words(reads["q"])}
    asked = {
        "k": found.words[0],
        "q": [each for each in found.words[1] if each[1:] in queries],
        "v": [each for each in found.words[1] if each[1:] not in queries],
    }
    assert len(others) == len(asked["q"]) + len(asked["v"])
    for name, each in asked.items():
        assert [word[1:] for word in each] == words(reads[name])
        for (cycle, *_), before in zip(each, reads[name].before.tolist(), strict=True):
            assert cycle < found.words[2][before][0]


def test_slow_reads_show_in_their_counter():
    bench = built(UnitBench, CONFIG, placer=RowlessPlacer)
    command = Drawn(random.Random(4), CONFIG, GRANULES).command(tokens=24, keys=6, queries=24, causal=False)
    free, slow = (
        run(bench, [command], np.zeros((0, 16), np.int8), disturb=(share, 0.0), seed=1)
        for share in (0.0, 1.0)
    )
    assert all(each.busy == each.done[0] - each.taken[0] for each in (free, slow))
    assert slow.waits_read > free.waits_read > 0
    assert not free.waits_write
