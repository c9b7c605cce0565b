# amaranth: UnusedElaboratable=no
"""Port 0 asks for no more than it can note down, however long nobody takes the queries."""

import pytest

from hw.attention.movers.port0 import QueryPort
from tests.hw.attention.plain import small
from tests.support.gateware.axi_memory import AxiMemory, untouched
from tests.support.gateware.streams import Stuck, plain, put, simulate
from tests.support.proofs.mutants import mutant

#: Passes of so many pieces, each a query of two words: more pieces than are noted down.  Words that are
#: joined leave the list of what they are for before their query leaves that of rows.
PASSES, PIECES, QUERY_BYTES = 2, 64, 32


def queries(port_type):
    """Give the first byte of every query, none of which is taken for 400 cycles."""
    config = small(rows=PIECES, lanes=QUERY_BYTES, folds=1)
    port = port_type(config, data_width=4 * QUERY_BYTES)
    memory = AxiMemory(port.axi, latency=(1, 3))
    received = []

    async def ask(ctx):
        for number in range(PASSES):
            address = QUERY_BYTES * PIECES * number
            q = {"address": address, "stride": QUERY_BYTES, "count": PIECES, "rows": 1, "units": 2}
            await put(ctx, port.i, [{"bitmap": 0, "bitmap_rows": 0, "q": q, "units": 2}])

    async def take(ctx):
        for _ in range(400):
            await ctx.tick()
        ctx.set(port.queries.ready, 1)
        while len(received) < PIECES * PASSES:
            _, _, valid, part = await ctx.tick().sample(port.queries.valid, port.queries.payload)
            if valid:
                received.append(plain(part)["elements"] & 0xFF)

    simulate(port, ask, take, background=memory.testbenches(), limit=2_000)
    return received


def test_queries_that_wait_are_all_there():
    expected = [untouched(QUERY_BYTES * n) for n in range(PIECES * PASSES)]
    assert queries(QueryPort) == expected


def test_a_note_without_room_is_missed():
    with pytest.raises(Stuck):
        queries(mutant(QueryPort, "& kinds.i.ready & rows.i.ready)", "& kinds.i.ready)"))
