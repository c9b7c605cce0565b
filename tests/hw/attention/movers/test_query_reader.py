# amaranth: UnusedElaboratable=no
"""A port of queries asks for no more than it can note down, however long nobody takes what it gives."""

import pytest

from hw.attention.movers.query_reader import QueryReader
from tests.hw.attention.plain import small
from tests.support.gateware.axi_memory import AxiMemory, untouched
from tests.support.gateware.streams import Stuck, plain, put, simulate
from tests.support.proofs.mutants import mutant

#: Passes of so many pieces, each a query of two words: more pieces than are noted down.  Words that are
#: joined leave the DMA before their query leaves the list of rows.
PASSES, PIECES, QUERY_BYTES = 2, 64, 32
BASE = 0x1_0000


def queries(reader_type):
    """Return the first byte of every query, none of which is taken for 400 cycles."""
    config = small(rows=PIECES, lanes=QUERY_BYTES, folds=1)
    reader = reader_type(config, data_width=4 * QUERY_BYTES)
    memory = AxiMemory(reader.axi, latency=(1, 3))
    received = []

    async def ask(ctx):
        ctx.set(reader.base, BASE)
        await ctx.tick()
        for number in range(PASSES):
            address = QUERY_BYTES * PIECES * number
            q = {"address": address, "stride": QUERY_BYTES, "count": PIECES, "rows": 1, "units": 2}
            await put(ctx, reader.i, [{"q": q, "units": 2}])

    async def take(ctx):
        for _ in range(400):
            await ctx.tick()
        ctx.set(reader.o.ready, 1)
        while len(received) < PIECES * PASSES:
            _, _, valid, part = await ctx.tick().sample(reader.o.valid, reader.o.payload)
            if valid:
                received.append(plain(part)["elements"] & 0xFF)

    simulate(reader, ask, take, background=memory.testbenches(), limit=2_000)
    return received


def right(reader_type):
    """Say whether all queries come, each in its turn."""
    try:
        return queries(reader_type) == [untouched(BASE + QUERY_BYTES * n) for n in range(PIECES * PASSES)]
    except Stuck:
        return False


def test_queries_that_wait_are_all_there():
    assert right(QueryReader)


@pytest.mark.parametrize(
    "old", ["dma.command.valid.eq(self.i.valid & rows.i.ready)", "& dma.command.ready & rows.i.ready)"]
)
def test_a_note_without_room_is_missed(old):
    assert not right(mutant(QueryReader, old, old.replace(" & rows.i.ready", "")))
