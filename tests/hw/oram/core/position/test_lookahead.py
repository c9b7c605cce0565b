"""The lookahead takes operations while nobody holds it."""

from hw.oram.config import OramConfig
from hw.oram.core.position.lookahead import Lookahead
from tests.support.gateware.streams import set_all, simulate


def test_nothing_is_taken_while_it_is_held():
    config = OramConfig(log_n=8, position_ports=2, position_cycles=16)
    dut = Lookahead(config)
    taken = {}

    async def bench(ctx):
        for hold in (1, 0):
            set_all(ctx, [(dut.hold, hold), (dut.query.valid, 1)])
            taken[hold] = 0
            for _ in range(4 * config.interval):
                _, _, ready = await ctx.tick().sample(dut.query.ready)
                taken[hold] += ready

    simulate(dut, bench)
    assert taken == {1: 0, 0: 4}
