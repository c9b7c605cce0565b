"""Numbers of the contracts in ``docs/use-a-core.md`` that no other test holds."""

import numpy as np
import pytest

from hw.attention.core.command import PART_LATENCY
from hw.attention.core.core import AttentionCore
from hw.attention.core.timing import CoreTiming
from hw.attention.driver.formats import Output, Scaling
from hw.attention.driver.integers import IntegerJob
from hw.attention.driver.streams import attention_streams
from hw.conv.core.route import StreamRouter
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from tests.hw.attention.core.feeds import BarePlacer
from tests.hw.attention.plain import small
from tests.support.gateware.streams import put, simulate


@pytest.mark.parametrize(("tile_keys", "keys", "most"), [(16, 100, 64), (64, 200, 128)])
def test_keys_lead_values_by_a_known_number(tile_keys, keys, most):
    config = small(rows=2, lanes=16, folds=1, tile_keys=tile_keys, cached_keys=0)
    ones = {name: np.ones((1, count, 16), np.int8) for name, count in (("q", 2), ("k", keys), ("v", keys))}
    job = IntegerJob(**ones, scale=Scaling(multiplier=1, shift=1), output=Output())
    core = AttentionCore(config, BarePlacer(), beat_width=256)
    items = attention_streams(config, job)
    taken = 0

    def sender(name):
        async def send(ctx):
            array, _, number = name.rpartition("_")
            port = getattr(core, array)[int(number)] if number.isdigit() else getattr(core, name)
            await put(ctx, port, items[name])

        return send

    async def count(ctx):
        nonlocal taken
        for _ in range(2 * keys):
            _, _, valid, ready = await ctx.tick().sample(core.i_key[0].valid, core.i_key[0].ready)
            taken += valid & ready

    senders = [sender(name) for name in items if not name.startswith("i_value")]
    simulate(core, count, background=senders)
    assert taken == most == max(64, 2 * tile_keys)


def test_latencies_that_the_page_states():
    config = small()
    assert (PART_LATENCY, CoreTiming(config).step) == (4, 8)
    assert StreamRouter.LATENCY == 2
    assert (ReadDMA.ADDRESS_LATENCY, ReadDMA.DATA_LATENCY, WriteDMA.ADDRESS_LATENCY) == (2, 2, 3)
