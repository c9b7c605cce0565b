# amaranth: UnusedElaboratable=no
"""FIFOs of every kind against a Python deque, level included."""

from __future__ import annotations

import random
from collections import deque

import pytest
from amaranth.back import verilog
from amaranth.lib import data

from hw.errors import InputError
from hw.lib.fifo import SHALLOW_DEPTH, Fifo
from tests.support.gateware.streams import STALLS, Side, built, exchange, grid, simulate

KINDS = [
    (1, None),
    (2, None),
    (5, None),
    (2, "block"),
    (7, "ultra"),
    (16, "block"),
]


def model_checker(dut, depth):
    """Compare ``level`` and ``i.ready`` with a deque, and each item taken with its head, in every cycle."""

    async def watch(ctx):
        held = deque()
        sampled = (dut.i.valid, dut.i.ready, dut.i.payload, dut.o.valid, dut.o.ready, dut.o.payload)
        while True:
            _, _, *values = await ctx.tick().sample(*sampled, dut.level)
            i_valid, i_ready, i_item, o_valid, o_ready, o_item, level = values
            assert level == len(held)
            assert i_ready == (len(held) < depth)
            if o_valid:
                assert held
                assert o_item == held[0]
                if o_ready:
                    held.popleft()
            if i_valid and i_ready:
                held.append(i_item)

    return watch


@pytest.mark.parametrize(("kind", "stall_i", "stall_o", "seed"), grid(KINDS, STALLS, STALLS))
def test_against_a_deque(kind, stall_i, stall_o, seed):
    depth, ram_style = kind
    rng = random.Random(seed)
    items = [rng.randrange(256) for _ in range(40)]
    dut = built(Fifo, 8, depth=depth, ram_style=ram_style)
    out = Side(dut.o, count=len(items), stall=stall_o)
    exchange(
        dut,
        {"i": Side(dut.i, items=items, stall=stall_i), "o": out},
        seed=seed,
        background=[model_checker(dut, depth)],
    )
    assert out.received == items


@pytest.mark.parametrize(
    ("depth", "ram_style", "latency"),
    [(2, None, 1), (64, None, 1), (4, "block", 3), (65, None, 3), (600, None, 3), (100, "ultra", 3)],
)
def test_one_item_a_cycle_and_the_stated_latency(depth, ram_style, latency):
    dut = built(Fifo, 8, depth=depth, ram_style=ram_style)
    items = [n % 251 for n in range(depth + 40)]
    out = Side(dut.o, count=len(items))
    exchange(dut, {"i": Side(dut.i, items=items), "o": out})
    assert out.gapless
    assert out.cycles[0] == latency
    assert out.received == items


@pytest.mark.parametrize(("depth", "ram_style"), [(3, None), (70, None), (9, "block")])
def test_holds_exactly_its_depth_and_then_empties_without_a_gap(depth, ram_style):
    dut = built(Fifo, 8, depth=depth, ram_style=ram_style)
    accepted = []
    drained = []

    async def fill_then_drain(ctx):
        ctx.set(dut.i.valid, 1)
        for cycle in range(depth + 5):
            ctx.set(dut.i.payload, cycle)
            _, _, ready = await ctx.tick().sample(dut.i.ready)
            accepted.append(ready)
        assert ctx.get(dut.level) == depth
        ctx.set(dut.i.valid, 0)
        ctx.set(dut.o.ready, 1)
        for _ in range(depth):
            _, _, valid, item = await ctx.tick().sample(dut.o.valid, dut.o.payload)
            assert valid
            drained.append(item)
        assert not ctx.get(dut.o.valid)

    simulate(dut, fill_then_drain)
    assert accepted == [1] * depth + [0] * 5
    assert drained == list(range(depth))


def test_depth_one_runs_at_half_rate():
    dut = Fifo(8, depth=1)
    out = Side(dut.o, count=20)
    exchange(dut, {"i": Side(dut.i, items=list(range(20))), "o": out})
    assert [b - a for a, b in zip(out.cycles, out.cycles[1:], strict=False)] == [2] * 19


def test_structured_payload():
    shape = data.StructLayout({"data": 8, "last": 1})
    dut = Fifo(shape, depth=3)
    items = [{"data": n, "last": n % 2} for n in range(10)]
    out = Side(dut.o, count=10, stall=0.3)
    exchange(dut, {"i": Side(dut.i, items=items), "o": out})
    assert out.received == items


@pytest.mark.parametrize("depth", [2, 5, 64, 100])
def test_tokens_without_a_payload_are_counted_and_need_no_memory(depth):
    dut = Fifo(range(1), depth=depth)
    out = Side(dut.o, count=150, stall=0.3)
    exchange(
        dut,
        {"i": Side(dut.i, items=[0] * 150, stall=0.3), "o": out},
        background=[model_checker(dut, depth)],
    )
    assert len(out.received) == 150
    assert "ram_style" not in verilog.convert(Fifo(range(1), depth=depth), emit_src=False)


def test_kind_follows_depth():
    assert Fifo(8, depth=SHALLOW_DEPTH).ram_style == "distributed"
    assert Fifo(8, depth=SHALLOW_DEPTH + 1).ram_style == "block"


@pytest.mark.parametrize("ram_style", ["distributed", "block", "ultra"])
def test_ram_style_is_in_the_verilog(ram_style):
    text = verilog.convert(Fifo(8, depth=100, ram_style=ram_style), emit_src=False)
    assert f'ram_style = "{ram_style}"' in text


@pytest.mark.parametrize("depth", [0, -3, 2.5, "8"])
def test_impossible_depth_is_refused(depth):
    with pytest.raises(InputError, match=r"^depth must be an integer of at least 1, not "):
        Fifo(8, depth=depth)


def test_unknown_ram_style_is_refused():
    with pytest.raises(InputError, match=r"^ram_style must be one of distributed, block, ultra, not 'bram'$"):
        Fifo(8, depth=4, ram_style="bram")
