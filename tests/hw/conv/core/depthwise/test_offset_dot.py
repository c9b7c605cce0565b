"""Offsets computed on chip: words obey the stream's handshake while entries are blocked.

The values of offsets are compared with sums in ``test_depthwise.py``.
"""

import random

import pytest

from hw.conv.core.depthwise.offset_dot import OffsetDot
from hw.conv.core.layouts import Offsets
from tests.hw.conv.core.depthwise.test_sampler import Layer
from tests.hw.conv.core.plain import small, tap_command
from tests.support.gateware.streams import get, put, rule_checker, set_all, simulate

CONFIG = small(lanes=16, dot_words=64, offset_entries=512)
UNIT = OffsetDot(CONFIG)


@pytest.mark.parametrize(("passes", "stall", "entry_stall"), [(1, 0.5, 0.9), (1, 0.0, 0.9), (9, 0.7, 0.95)])
def test_an_offered_word_stays(passes, stall, entry_stall):
    """Entries fill the queue until no word may begin, and then leave one by one."""
    rng = random.Random(passes)
    layer = Layer(
        CONFIG, rng, rows=16, columns=16, words=1, kernel=(3, 3), stride=(1, 1), dilation=(1, 1), pads=[1, 1],
        groups=1, bound=1, offsets=Offsets.SQUARE if passes == 1 else Offsets.FREE,
    )  # fmt: skip
    layer.dot, layer.passes = True, passes
    words = [rng.getrandbits(CONFIG.word_bits) for _ in range(200 if passes == 1 else 60)]
    received, entries = [], len(words) * -(-passes // CONFIG.taps)

    async def begin(ctx):
        set_all(ctx, [(UNIT.job, tap_command(layer)), (UNIT.start, 1)])
        await ctx.tick()
        set_all(ctx, [(UNIT.start, 0), (UNIT.open, 1), (UNIT.loaded, 1)])

    async def feed(ctx):
        await put(ctx, UNIT.i, words)

    async def take(ctx):
        received.extend(await get(ctx, UNIT.o, len(words), stall=stall, seed=passes))

    async def take_entries(ctx):
        await get(ctx, UNIT.offsets, entries, stall=entry_stall, seed=passes)

    simulate(UNIT, begin, feed, take, take_entries, background=[rule_checker(UNIT.o, "words")])
    assert received == words
