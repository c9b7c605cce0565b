# amaranth: UnusedElaboratable=no
"""The writer of results: it is busy from a pass that it takes to the last response."""

import pytest

from hw.attention.movers.result_writer import ResultWriter
from tests.hw.attention.plain import small
from tests.support.gateware.axi_memory import AxiMemory
from tests.support.gateware.streams import put, simulate
from tests.support.proofs.mutants import mutant

ROWS, UNITS, PASSES = 4, 4, 3
PASS_BYTES = 16 * ROWS * UNITS


def idle_cycles(writer_type, *, pieces, pause):
    """Count the cycles in which the writer does not say that it is busy while a pass of so many pieces is
    open; the next pass comes ``pause`` cycles after the one before is written.
    """
    writer = writer_type(small(rows=ROWS), data_width=128)
    memory = AxiMemory(writer.axi, latency=(3, 3))
    idle = []

    async def host(ctx):
        for number in range(PASSES):
            rows = ROWS // pieces
            o = {"address": PASS_BYTES * number, "stride": 16 * rows * UNITS, "count": pieces}
            await put(ctx, writer.i, [{"o": o | {"rows": rows, "units": rows * UNITS}, "units": UNITS}])
            for _ in range(12):  # results come later
                await ctx.tick()
            await put(ctx, writer.beats, list(range(ROWS * UNITS)))
            while ctx.get(writer.busy):
                await ctx.tick()
            assert len(memory.bytes) == PASS_BYTES * (number + 1)
            for _ in range(pause):
                await ctx.tick()

    async def watch(ctx):
        taken = 0
        while True:
            values = writer.i.valid & writer.i.ready, writer.busy
            _, _, takes, busy = await ctx.tick().sample(*values)
            if not busy and len(memory.bytes) < PASS_BYTES * taken:
                idle.append(taken)
            taken += takes

    simulate(writer, host, background=[*memory.testbenches(), watch])
    return len(idle)


@pytest.mark.parametrize("pieces", [1, 4])
@pytest.mark.parametrize("pause", [0, 7])
def test_busy_from_a_pass_to_its_last_response(pieces, pause):
    assert idle_cycles(ResultWriter, pieces=pieces, pause=pause) == 0


def test_a_pass_that_waits_in_the_registers_is_missed():
    early = mutant(ResultWriter, "placed.o.valid | (unwritten != 0)", "unwritten != 0")
    assert idle_cycles(early, pieces=1, pause=3) == PASSES
