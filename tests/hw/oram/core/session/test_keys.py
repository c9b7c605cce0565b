"""All keys of a map, the powers of both hash keys and the confirmation, from keys and epoch, twice."""

import random

from hw.lib.place import InlinePlacer
from hw.oram.core.crypto.config import PageShape
from hw.oram.core.crypto.key_schedule import KeySchedule
from hw.oram.core.crypto.power_table import PowerTable
from hw.oram.core.session.keys import Keys
from hw.oram.driver.keys import Secrets
from sim.golden.oram.front import map_keys
from tests.support.gateware.streams import set_all, simulate
from tests.support.oram.blocks import bits
from tests.support.oram.pages import powers
from tests.support.oram.stages import expand_key

#: Pages whose powers are ready before the last key, and after it.
SHORT, LONG = (PageShape(page_bytes=size, lanes=4) for size in (128, 2048))
RECORD = PageShape(page_bytes=48, lanes=1)


def run(page, count):
    """Return the cycles from start to done of ``count`` consecutive launches, all checked."""
    rng, took = random.Random(page.page_bytes), []
    dut = Keys(page=page, record=RECORD, placer=InlinePlacer())
    names = ("session", "page", "permutation", "draw")
    tables = {"session": (dut.session_power, RECORD), "page": (dut.page_power, page)}

    async def bench(ctx):
        for _ in range(count):
            secrets = Secrets(
                session_key=rng.randbytes(16), seed=rng.randbytes(16), epoch=rng.getrandbits(64)
            )
            given = [
                (dut.session, bits(secrets.session_key)),
                (dut.seed, bits(secrets.seed)),
                (dut.epoch, secrets.epoch),
            ]
            written = {name: {} for name in tables}
            set_all(ctx, [*given, (dut.start, 1)])
            cycle = 0
            while not ctx.get(dut.done):
                await ctx.tick()
                cycle += 1
                ctx.set(dut.start, 0)
                for name, (power, _) in tables.items():
                    if ctx.get(power.en):
                        written[name][ctx.get(power.slot)] = ctx.get(power.value)
            took.append(cycle)
            set_all(ctx, [(signal, 0) for signal, _ in given])
            await ctx.tick()
            assert not ctx.get(dut.done)
            assert ctx.get(dut.confirm) == bits(secrets.session.confirm)
            derived = (secrets.session.key, *map_keys(secrets.seed, secrets.epoch))
            keys = dict(zip(names, derived, strict=True))
            for name, key in keys.items():
                found = [ctx.get(word) for word in getattr(dut, f"{name}_keys")]
                assert found == [bits(words) for words in expand_key(key)], name
            for name, (_, shape) in tables.items():
                assert written[name] == {slot: bits(value) for slot, value in powers(shape, keys[name])}

    simulate(dut, bench)
    return took


def test_keys():
    """Five derivations in sequence, and the last key; or one, its key, and the powers that follow."""
    in_turn = 6 * KeySchedule.LATENCY
    assert all(in_turn < cycles < in_turn + 10 for cycles in run(SHORT, 3))
    with_powers = 2 * KeySchedule.LATENCY + PowerTable.latency(LONG)
    assert all(with_powers < cycles < with_powers + 10 for cycles in run(LONG, 1))
