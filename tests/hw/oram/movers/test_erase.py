"""The time of an erasure: fixed, or longer where a slice is not erased by then."""

import pytest

from hw.oram.config import OramConfig
from hw.oram.movers.erase import Erase, bucket_lines, erase_cycles, record_lines
from tests.support.gateware.streams import simulate
from tests.support.oram.workloads import SMALLEST

CONFIG = OramConfig(**SMALLEST)
CYCLES = erase_cycles(CONFIG)


def test_cycles():
    """Of the longer slice, at four beats in five cycles, behind earlier writes."""
    config = OramConfig(log_n=18, record_ports=4)
    assert (bucket_lines(config), record_lines(config)) == (1 << 12, -(-config.records // 4))
    settled = config.record_sizes.settle_cycles
    assert settled > config.position.write_cycles
    assert erase_cycles(config) == settled + -(-record_lines(config) * 8 * 5 // 4) + 512
    few = OramConfig(log_n=18, position_ports=2, record_ports=16, interval_cycles=16)
    assert erase_cycles(few) == few.record_sizes.settle_cycles + (1 << 14) * 4 * 5 // 4 + 512


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("took", [20, CYCLES - 1, CYCLES + 30])
def test_the_end_is_fixed(took, last):
    """After the last erasure the ports take no more writes; only that can be late."""
    dut = Erase(CONFIG)

    async def bench(ctx):
        for _ in range(3):
            await ctx.tick()
        ctx.set(dut.start, 1)
        ctx.set(dut.last, last)
        for cycle in range(CYCLES + 100):
            ctx.set(dut.erased, cycle >= took)
            assert ctx.get(dut.busy) == (cycle <= max(CYCLES, took))
            assert ctx.get(dut.erase) == (0 < cycle <= max(CYCLES, took) or (last and cycle > 0))
            assert ctx.get(dut.late) == (last and took > CYCLES and cycle > CYCLES)
            await ctx.tick()
            ctx.set(dut.start, 0)
            ctx.set(dut.last, 0)

    simulate(dut, bench)
