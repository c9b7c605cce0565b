"""A read port for two users: each has the port to itself while it works."""

import random

from amaranth.hdl import ClockDomain, Elaboratable, Module

from hw.network.kernel.shared_read import SharedRead
from tests.hw.network.program.example import CONFIG
from tests.support.gateware.streams import Side, exchange_within, simulate

DUT = SharedRead(CONFIG.shape)


class Clocked(Elaboratable):
    """The gates under a clock, which they have no use for."""

    def elaborate(self, platform):
        m = Module()
        m.domains.sync = ClockDomain("sync")
        m.submodules.dut = DUT
        return m


def test_users_take_turns():
    rng = random.Random(0)

    async def bench(ctx):
        for turn in range(6):
            user = DUT.users[turn % 2]
            asked = [{"address": rng.randrange(1 << 10), "enable": rng.randrange(16)} for _ in range(9)]
            words = [{"data": [rng.getrandbits(128) for _ in range(4)], "enable": 15} for _ in range(9)]
            sides = {
                "asks": Side(user.request, items=asked, stall=0.3),
                "asked": Side(DUT.port.request, count=9, stall=0.5),
                "answers": Side(DUT.port.response, items=words, stall=0.3),
                "answered": Side(user.response, count=9, stall=0.5),
            }
            await exchange_within(ctx, sides, seed=turn)
            assert sides["asked"].received == asked
            assert sides["answered"].received == words

    simulate(Clocked(), bench)
