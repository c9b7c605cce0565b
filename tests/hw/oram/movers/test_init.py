"""Every page and record once, in order; pages at their interval while the writer has places."""

import itertools
import random

import pytest
from amaranth.hdl import Cat

from hw.oram.config import OramConfig
from hw.oram.movers.init import Init
from tests.support.gateware.streams import set_all, simulate

CONFIG = OramConfig(log_n=9, alpha=0.2, inflight=4)


@pytest.mark.parametrize(("stall", "host"), [(0.0, 3), (0.5, 3), (0.0, 90)])
def test_all_in_order(stall, host):
    rng = random.Random(host)
    dut = Init(CONFIG)
    pages, announced, records, cycles = [], [], [], []

    async def bench(ctx):
        left, written = [], []  # cycles at which pages leave, and are written
        gone = done = t = 0
        busy = True
        streams = (dut.request, dut.record)
        tick = ctx.tick().sample(
            Cat(dut.busy, dut.announce.valid, *(s.valid for s in streams)),
            dut.announce.payload,
            *(s.payload for s in streams),
        )
        while busy or t < 2:
            leaves, answers = ([due <= t for due in q[:1]] == [True] for q in (left[gone:], written[done:]))
            gone, done = gone + leaves, done + answers
            ready = [rng.random() >= stall for _ in streams]
            set_all(
                ctx,
                [(dut.start, t == 0), (dut.page_left, leaves), (dut.page_written, answers)]
                + [(s.ready, r) for s, r in zip(streams, ready, strict=True)],
            )
            _, _, flags, announce, page, record = await tick
            busy, announces, *valid = (flags >> n & 1 for n in range(4))
            assert busy == (t > 0) or done == CONFIG.host_pages
            taken = [v and r for v, r in zip(valid, ready, strict=True)]
            assert announces == taken[0]
            if taken[0]:
                pages.append((page.page, page.version))
                announced.append(announce)
                cycles.append(t)
                left.append(max([*left[-1:], t]) + 1 + rng.randrange(host))
                written.append(left[-1] + 1 + host)
                assert len(pages) - gone <= CONFIG.write_pages
                assert len(pages) - done <= CONFIG.scoreboard_pages
            if taken[1]:
                records.append(record.index)
            t += 1
            assert t < 20_000
        assert done == CONFIG.host_pages

    simulate(dut, bench)
    assert pages == [(page, 1) for page in range(CONFIG.host_pages)]
    assert announced == list(range(CONFIG.host_pages))
    assert records == list(range(CONFIG.records))
    gaps = [b - a for a, b in itertools.pairwise(cycles)]
    assert min(gaps) >= CONFIG.page_cycles
    if host == 3 and not stall:
        assert set(gaps) == {CONFIG.page_cycles}
