"""The key schedule against the golden model: every round key, the hash key, and its time."""

import random

from hw.oram.core.crypto.key_schedule import KeySchedule
from sim.golden.oram import aes
from tests.support.gateware.streams import simulate
from tests.support.oram.blocks import bits, content

UNIT = KeySchedule()


def run(starts):
    """Start with each key in its cycle; gives what is there in each cycle of ``done``."""
    found = {}

    async def bench(ctx):
        for cycle in range(max(starts) + KeySchedule.LATENCY + 20):
            key = starts.get(cycle)
            ctx.set(UNIT.start, key is not None)
            ctx.set(UNIT.key, bits(key or b"\xff" * 16))
            if ctx.get(UNIT.done):
                found[cycle] = [content(ctx.get(value)) for value in (*UNIT.round_keys, UNIT.hash_key)]
            await ctx.tick()

    simulate(UNIT, bench)
    return found


def expected(key):
    keys = aes.expand_key(key)
    return [row.tobytes() for row in (*keys, aes.encrypt(keys, keys[0] ^ keys[0]))]


def test_round_keys_and_hash_key():
    rng = random.Random(1)
    keys = [bytes(16), bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"), *map(rng.randbytes, [16] * 4)]
    starts = {n * (KeySchedule.LATENCY + n): key for n, key in enumerate(keys)}
    found = run(starts)
    assert found == {cycle + KeySchedule.LATENCY: expected(key) for cycle, key in starts.items()}


def test_a_new_start_replaces_one_under_way():
    for before in (1, 40, KeySchedule.LATENCY - 1):
        found = run({0: b"forgotten key 16", before: b"the one that is."})
        assert found == {before + KeySchedule.LATENCY: expected(b"the one that is.")}
