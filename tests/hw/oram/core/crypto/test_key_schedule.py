"""The key schedule against the golden model: every round key, the block, and its time."""

import random

import numpy as np

from hw.oram.core.crypto.key_schedule import KeySchedule
from sim.golden.oram import aes
from tests.support.gateware.streams import simulate
from tests.support.oram.blocks import bits, content
from tests.support.oram.stages import expand_key

UNIT = KeySchedule()


def run(starts):
    """Start with each key and block in its cycle; return the results in each cycle of ``done``."""
    found = {}

    async def bench(ctx):
        for cycle in range(max(starts) + KeySchedule.LATENCY + 20):
            ctx.set(UNIT.start, cycle in starts)
            key, block = starts.get(cycle, (b"\xff" * 16, b"\xaa" * 16))
            ctx.set(UNIT.key, bits(key))
            ctx.set(UNIT.block, bits(block))
            if ctx.get(UNIT.done):
                found[cycle] = [content(ctx.get(value)) for value in (*UNIT.round_keys, UNIT.encrypted)]
            await ctx.tick()

    simulate(UNIT, bench)
    return found


def expected(key, block):
    encrypted = aes.encrypt(key, np.frombuffer(block, np.uint8))
    return [row.tobytes() for row in (*expand_key(key), encrypted)]


def test_round_keys_and_block():
    rng = random.Random(1)
    keys = [bytes(16), bytes.fromhex("2b7e151628aed2a6abf7158809cf4f3c"), *map(rng.randbytes, [16] * 4)]
    blocks = [bytes(16), *map(rng.randbytes, [16] * 5)]
    starts = {n * (KeySchedule.LATENCY + n): pair for n, pair in enumerate(zip(keys, blocks, strict=True))}
    found = run(starts)
    assert found == {cycle + KeySchedule.LATENCY: expected(*pair) for cycle, pair in starts.items()}


def test_a_new_start_replaces_one_under_way():
    for before in (1, 40, KeySchedule.LATENCY - 1):
        found = run({0: (b"forgotten key 16", bytes(16)), before: (b"the one that is.", b"its own block 16")})
        assert found == {before + KeySchedule.LATENCY: expected(b"the one that is.", b"its own block 16")}
