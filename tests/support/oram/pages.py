"""Runs of the parts that seal and open pages, with the cycle of every input and output."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest

from hw.oram.core.crypto.config import PageShape
from hw.oram.core.crypto.keystream import Keystream
from sim.golden.oram import aes
from tests.support.gateware.streams import put, set_all, simulate
from tests.support.oram.blocks import bits, content, round_keys
from tests.support.oram.stages import multiply

#: A page of several beats, a page of one, and a record.
SHAPES = {
    "page": PageShape(page_bytes=192, lanes=2, mac_bits=96),
    "beat": PageShape(page_bytes=64, lanes=4),
    "record": PageShape(page_bytes=48, lanes=1, mac_bits=64),
}


def runs(soak):
    """Return (shape, pauses of requests, pauses of beats, seed): two for each shape in `make test`."""
    return [
        pytest.param(name, *stalls, seed, marks=[] if seed == 0 and stalls in QUICK else [pytest.mark.soak])
        for name in SHAPES
        for stalls in (*QUICK, (0.8, 0.0), (0.5, 0.5))
        for seed in range(soak)
    ]


#: Pauses of requests and of beats in `make test`.
QUICK = ((0.0, 0.0), (0.0, 0.6))


@dataclass
class Record:
    """Cycles of taken beats and ready keystreams; output beats and verdicts by cycle."""

    taken: list[int] = field(default_factory=list)
    beats: dict[int, bytes] = field(default_factory=dict)
    lasts: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    verdicts: dict[int, bool] = field(default_factory=dict)

    def pages(self, shape):
        """Return the bytes of the output pages, [pages, P]."""
        return np.frombuffer(b"".join(self.beats.values()), np.uint8).reshape(-1, shape.page_bytes)


def powers(shape, key):
    """Return (slot, power of the hash key) for each slot of a page."""
    hash_key = aes.encrypt(key, np.zeros(16, np.uint8)).tobytes()
    value = hash_key
    for slot in (0, *range(shape.slots - 1, 0, -1)):
        yield slot, value
        value = multiply(value, hash_key)


def run_pages(unit, shape, key, nonces, pages, *, request_stall=0.0, stall=0.0, seed=0):
    """Send ``pages`` [n, P] with their (page, version), after the powers; with pauses if they stall."""
    record = Record()
    count = len(pages) * shape.beats
    size = shape.beat_bits // 8
    beats = [bits(beat) for beat in np.asarray(pages).reshape(count, size)]

    async def requests(ctx):
        for slot, value in powers(shape, key):
            write = {"en": 1, "slot": slot, "value": bits(value)}
            set_all(ctx, [*round_keys(unit, key), (unit.power, write)])
            await ctx.tick()
        ctx.set(unit.power.en, 0)
        await put(ctx, unit.request, nonces, stall=request_stall, seed=seed)

    async def data(ctx):
        for _ in range(3 * Keystream.AHEAD if stall else 0):  # until the keystream is full
            await ctx.tick()
        await put(ctx, unit.i, beats, stall=stall, seed=seed + 1)
        while len(record.beats) < count or (hasattr(unit, "verdict") and len(record.verdicts) < len(pages)):
            await ctx.tick()

    async def watch(ctx):
        verdict = getattr(unit, "verdict", None)
        judged = (verdict.valid, verdict.payload, unit.arrived) if verdict is not None else ()
        beat = (unit.i.valid, unit.i.ready, unit.o.valid, unit.o.payload.data, unit.o.payload.last)
        tick = ctx.tick().sample(*beat, *judged)
        cycle = 0
        while True:
            _, _, valid, ready, came, word, last, *verdicts = await tick
            if valid and ready:
                record.taken.append(cycle)
            if came:
                record.beats[cycle] = content(word, size)
                if last:
                    record.lasts.append(cycle)
            if verdicts and verdicts[0]:
                record.verdicts[cycle] = bool(verdicts[1])
            if verdicts and verdicts[2]:
                record.arrived.append(cycle)
            cycle += 1

    simulate(unit, requests, data, background=[watch])
    return record
