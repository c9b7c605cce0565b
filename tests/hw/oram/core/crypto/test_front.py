# amaranth: UnusedElaboratable=no
"""Permuted keys and draws against the golden model, in order and on time."""

import random

import numpy as np
import pytest

from hw.errors import InputError
from hw.lib.place import InlinePlacer
from hw.oram.core.crypto.front import Front
from sim.golden.oram import front
from tests.support.gateware.streams import put, set_all, simulate
from tests.support.oram.blocks import content, round_keys

#: Bits of a key, draws, interval: a lane with both keys, two lanes, and a lane for each block.
QUICK = [(64, 1, 4), (32, 2, 6)]
SLOW = [(64, 2, 3), (64, 1, 5), (32, 1, 1), (64, 2, 4), (64, 2, 2), (32, 1, 12), (64, 1, 23), (64, 2, 7)]


def soak(case):
    return pytest.param(*case, marks=pytest.mark.soak)


@pytest.mark.parametrize(("key_bits", "draws", "interval"), [*QUICK, *map(soak, SLOW)])
def test_front(key_bits, draws, interval):
    unit = Front(key_bits=key_bits, draws=draws, interval=interval, placer=InlinePlacer())
    for stall in (0.0, 0.7):
        rng = random.Random(f"{key_bits} {draws} {interval} {stall}")
        secrets = rng.randbytes(16), rng.randbytes(16)
        keys = [0, (1 << key_bits) - 1, *(rng.getrandbits(key_bits) for _ in range(14))]
        taken, came = [], {}

        async def send(ctx, secrets=secrets, keys=keys, stall=stall, came=came):
            set_all(ctx, round_keys(unit, secrets[0], "permutation_keys"))
            set_all(ctx, round_keys(unit, secrets[1], "draw_keys"))
            await put(ctx, unit.i, keys, stall=stall)
            while len(came) < len(keys):
                await ctx.tick()

        async def watch(ctx, taken=taken, came=came):
            payload = unit.o.payload
            tick = ctx.tick().sample(
                unit.i.valid, unit.i.ready, unit.o.valid, payload.permuted, *payload.draw
            )
            cycle = 0
            while True:
                _, _, valid, ready, found, permuted, *drawn = await tick
                since = cycle - taken[-1] if taken else 0
                if 0 < since <= Front.latency(interval):
                    assert ready == (since % interval == 0)
                elif not taken or since > Front.latency(interval) + interval:
                    assert ready, "it waits for a key"
                if valid and ready:
                    taken.append(cycle)
                if found:
                    came[cycle] = permuted, *map(content, drawn)
                cycle += 1

        simulate(unit, send, background=[watch])
        permuted = front.permute(secrets[0], np.array(keys, np.uint64), key_bits=key_bits)
        numbers = np.arange(len(keys), dtype=np.uint64)
        drawn = front.draw(secrets[1], numbers, draws=draws)
        expected = [
            (int(key), *(block.tobytes() for block in blocks))
            for key, blocks in zip(permuted, drawn, strict=True)
        ]
        assert list(came) == [cycle + Front.latency(interval) for cycle in taken]
        assert list(came.values()) == expected
        if not stall:
            assert taken == list(range(taken[0], taken[0] + len(keys) * interval, interval))


@pytest.mark.parametrize(("field", "value"), [("key_bits", 48), ("draws", 3), ("interval", 0)])
def test_refused(field, value):
    legal = {"key_bits": 64, "draws": 1, "interval": 4}
    with pytest.raises(InputError, match=f"{field} must be .*, not {value}"):
        Front(**(legal | {field: value}), placer=InlinePlacer())
