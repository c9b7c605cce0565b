# amaranth: UnusedElaboratable=no
"""Beats of results go to their places, and a command is done with the grant of its last word."""

import random
from collections import deque

import pytest

from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.result_writer import AttentionResultWriter
from hw.network.scratchpad.shape import GranuleShape
from tests.support.gateware.streams import Side, built, exchange_within, simulate

CONFIG = AttentionUnitConfig(shape=GranuleShape())


@pytest.mark.parametrize(("stall", "slow", "seed"), [(0.0, 0.0, 0), (0.0, 0.9, 1), (0.7, 0.3, 2)])
def test_beats_at_their_places(stall, slow, seed):
    """``slow``: share of cycles in which the scratchpad neither takes nor grants a word."""
    dut, rng = built(AttentionResultWriter, CONFIG), random.Random(seed)
    commands = [rng.randint(1, 9) for _ in range(12)]
    beats = [{"data": rng.getrandbits(256), "last": 0} for _ in range(sum(commands))]
    places = [
        {"address": rng.getrandbits(18), "enable": rng.choice((1, 3)), "last": int(at == count - 1)}
        for count in commands
        for at in range(count)
    ]
    taken, done, blocked = [], [], []

    async def main(ctx):
        sides = {
            "i": Side(dut.i, items=beats, stall=stall),
            "place": Side(dut.place, items=places, stall=stall),
        }
        await exchange_within(ctx, sides, seed=seed)
        while len(done) < len(commands):
            await ctx.tick()

    async def scratchpad(ctx):
        word, waiting, granted, was_blocked = dut.write.write, deque(), 0, False
        while True:
            ready = len(waiting) < 17 and rng.random() >= slow
            grants = bool(waiting) and rng.random() >= slow
            ctx.set(word.ready, ready)
            ctx.set(dut.write.written, grants)
            _, _, valid, payload, is_done, is_blocked = await ctx.tick().sample(
                word.valid, word.payload, dut.done, dut.blocked
            )
            assert is_blocked == was_blocked
            was_blocked = bool(valid and not ready)
            blocked.append(was_blocked)
            if is_done:
                done.append(granted)
            granted += grants
            if grants:
                waiting.popleft()
            if valid and ready:
                waiting.append(None)
                taken.append((payload.address, payload.enable, payload.data[0] | payload.data[1] << 128))

    simulate(dut, main, background=[scratchpad])
    assert taken == [
        (place["address"], place["enable"], beat["data"]) for place, beat in zip(places, beats, strict=True)
    ]
    assert done == [sum(commands[: at + 1]) for at in range(len(commands))]
    assert any(blocked) == (slow > 0)
