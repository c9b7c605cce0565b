"""Every page once, in order, at its interval while the writer has places."""

import itertools
import random

import pytest
from amaranth.hdl import Cat

from hw.oram.config import OramConfig
from hw.oram.movers.init import Init
from tests.support.gateware.streams import set_all, simulate

CONFIG = OramConfig(log_n=9, alpha=0.2, inflight=4)


@pytest.mark.parametrize("host", [3, 90])
def test_all_in_order(host):
    rng = random.Random(host)
    dut = Init(CONFIG)
    pages, announced, cycles = [], [], []

    async def bench(ctx):
        left, written = [], []  # cycles at which pages leave, and are written
        gone = done = t = 0
        busy = True
        flags = Cat(dut.busy, dut.announce.valid, dut.request.valid)
        tick = ctx.tick().sample(flags, dut.announce.payload, dut.request.payload)
        while busy or t < 2:
            leaves, answers = ([due <= t for due in q[:1]] == [True] for q in (left[gone:], written[done:]))
            gone, done = gone + leaves, done + answers
            set_all(ctx, [(dut.start, t == 0), (dut.page_left, leaves), (dut.page_written, answers)])
            _, _, seen, announce, page = await tick
            busy, announces, valid = (seen >> n & 1 for n in range(3))
            assert busy == (t > 0) or done == CONFIG.host_pages
            assert announces == valid
            if announces:
                pages.append((page.page, page.version))
                announced.append(announce)
                cycles.append(t)
                left.append(max([*left[-1:], t]) + 1 + rng.randrange(host))
                written.append(left[-1] + 1 + host)
                assert len(pages) - gone <= CONFIG.write_pages
                assert len(pages) - done <= CONFIG.scoreboard_pages
            t += 1
            assert t < 20_000
        assert done == CONFIG.host_pages

    simulate(dut, bench)
    assert pages == [(page, 1) for page in range(CONFIG.host_pages)]
    assert announced == list(range(CONFIG.host_pages))
    gaps = [b - a for a, b in itertools.pairwise(cycles)]
    assert min(gaps) >= CONFIG.page_cycles
    if host == 3:
        assert set(gaps) == {CONFIG.page_cycles}
