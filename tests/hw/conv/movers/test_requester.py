# amaranth: UnusedElaboratable=no
"""Chunks of a map are requested as tokens allow, and no earlier."""

import pytest

from hw.conv.movers.requester import Requester
from tests.hw.conv.core.plain import small
from tests.support.gateware.streams import simulate


@pytest.mark.parametrize("token_chunks", [1, 3])
def test_nothing_is_asked_for_before_its_token(token_chunks):
    unit = Requester(small())
    rows, chunks, given, asked = 3, 2, 0, 0
    port = {"address": 64, "pitch": 64, "bytes": 32, "last_bytes": 16, "units": 4}
    job = {"rows": rows, "chunks": chunks, "pixels": 2, "last_pixels": 1, "token_chunks": token_chunks}

    async def drive(ctx):
        nonlocal given, asked
        ctx.set(unit.i.payload, {**job, "ports": [port]})
        ctx.set(unit.i.valid, 1)
        ctx.set(unit.commands.ready, 1)
        ctx.set(unit.rows[0].ready, 1)
        for cycle in range(40 * rows * chunks):
            ctx.set(unit.token.valid, cycle % 20 == 19)
            given += ctx.get(unit.token.valid & unit.token.ready)
            asked += ctx.get(unit.commands.valid)
            assert asked <= given * token_chunks
            await ctx.tick()
            ctx.set(unit.i.valid, 0)

    simulate(unit, drive)
    assert asked == rows * chunks
