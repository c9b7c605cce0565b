"""The stream helpers: order, rate, the rule checker, errors of stuck exchanges, waveforms."""

from __future__ import annotations

import itertools

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tests.support.gateware import waves
from tests.support.gateware.streams import (
    STALLS,
    Side,
    StreamError,
    Stuck,
    built,
    exchange,
    get,
    put,
    seeds,
    set_all,
    simulate,
)


class Wire(wiring.Component):
    """Passes a stream through; ``fault`` selects an error in the cycle after a stall."""

    def __init__(self, shape=8, fault=None):
        self.fault = fault
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform):
        m = Module()
        waited = Signal()
        m.d.sync += waited.eq(self.o.valid & ~self.o.ready)
        m.d.comb += [
            self.o.payload.eq(self.i.payload),
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
        ]
        if self.fault == "valid falls":
            m.d.comb += self.o.valid.eq(self.i.valid & ~waited)
            m.d.comb += self.i.ready.eq(self.o.ready & ~waited)
        if self.fault == "payload changes":
            m.d.comb += self.o.payload.eq(self.i.payload ^ waited)
        if self.fault == "never valid":
            m.d.comb += [self.o.valid.eq(0), self.i.ready.eq(0)]
        return m


def run(dut, items, *, seed=0, stall_i=0.0, stall_o=0.0, limit=5_000):
    sides = {
        "i": Side(dut.i, items=items, stall=stall_i),
        "o": Side(dut.o, count=len(items), stall=stall_o),
    }
    exchange(dut, sides, seed=seed, limit=limit)
    return sides["o"]


@pytest.mark.parametrize("seed", seeds(2, 4))
@pytest.mark.parametrize("stall_i", STALLS)
@pytest.mark.parametrize("stall_o", STALLS)
def test_everything_arrives_in_order(stall_i, stall_o, seed):
    items = [n * 7 % 256 for n in range(20)]
    assert run(Wire(), items, seed=seed, stall_i=stall_i, stall_o=stall_o).received == items


def test_without_stalls_one_item_a_cycle():
    assert run(Wire(), list(range(30))).gapless


def test_stalls_are_as_frequent_as_asked():
    cycles = run(Wire(), [0] * 400, stall_o=0.7).cycles
    assert 0.6 < 1 - 400 / cycles[-1] < 0.8


def test_structured_payloads_come_back_plain():
    shape = data.StructLayout({"last": 1, "lane": data.ArrayLayout(4, 2)})
    items = [{"last": n & 1, "lane": [n, 15 - n]} for n in range(8)]
    assert run(Wire(shape), items, stall_i=0.3, stall_o=0.3).received == items


@pytest.mark.parametrize(("fault", "words"), [("valid falls", "valid fell"), ("payload changes", "changed")])
def test_checker_catches_a_broken_rule(fault, words):
    with pytest.raises(StreamError, match=f"o: .*{words}"):
        run(Wire(fault=fault), list(range(50)), stall_o=0.7)


def test_what_never_ends_is_reported():
    waiting = "i waits for ready after 0 of 2 items; o waits for valid after 0 of 2 items"
    with pytest.raises(Stuck, match=f"^not done after 200 cycles: {waiting}$"):
        run(Wire(fault="never valid"), [1, 2], limit=200)


def test_the_stream_that_waits_is_named_with_its_items():
    async def bench(ctx):
        await get(ctx, dut.o, 2)
        await get(ctx, dut.o, 5)

    dut = Wire()
    with pytest.raises(Stuck, match=r"cycles: o waits for valid after 2 of 5 items$"):
        simulate(dut, lambda ctx: put(ctx, dut.i, [1, 2, 3, 4]), bench, limit=100)


def test_waveforms_of_every_simulation(tmp_path, monkeypatch):
    monkeypatch.setattr(waves, "_NUMBERS", itertools.count(1))
    monkeypatch.setenv(waves.VARIABLE, str(tmp_path / "x.vcd"))
    dut = Wire()
    for items in ([1], [2]):
        run(dut, items)
    texts = [(tmp_path / name).read_text() for name in ("x.vcd", "x-2.vcd")]
    assert all("i__valid" in text and "o__payload" in text for text in texts)
    assert texts[0] != texts[1]


def test_sets_of_signals_are_told_apart():
    """Of a signal that is set twice the last value counts."""
    first, second, seen = Signal(8), Signal(4), []
    m = Module()
    m.d.sync += Signal(8).eq(first + second)

    async def bench(ctx):
        for n in range(3):
            set_all(ctx, [(first, n), (second, 9)])
            seen.append((ctx.get(first), ctx.get(second)))
            set_all(ctx, [(second, 3), (second, n)])
            seen.append((ctx.get(first), ctx.get(second)))

    simulate(m, bench)
    assert seen == [(n, other) for n in range(3) for other in (9, n)]


def test_equal_arguments_build_one_component():
    assert built(Wire, 2) is built(Wire, 2)
    assert built(Wire, 2) is not built(Wire, 3)
