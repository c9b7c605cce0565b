"""Skid buffer and FIFO, for all time: the stream rule, order, no loss, level, latency, no deadlock."""

from __future__ import annotations

import pytest
from amaranth.hdl import Elaboratable, Module

from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from tests.formal.stream_properties import first_in_first_out, free_input, free_output
from tests.support.proofs.formal import PropertyFailure, check, cover, prove
from tests.support.proofs.mutants import mutant


class QueueSpec(Elaboratable):
    """A block with one input and one output that holds ``capacity`` items, between free neighbours."""

    def __init__(self, dut, *, capacity, latency):
        self.dut = dut
        self.capacity = capacity
        self.latency = latency

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        free_input(m, dut.i, "i")
        free_output(m, dut.o, "o")
        held = first_in_first_out(m, dut.i, dut.o, capacity=self.capacity, latency=self.latency)
        check(m, dut.i.ready == (held != self.capacity), "takes an item exactly when there is room")
        if hasattr(dut, "level"):
            check(m, dut.level == held, "level is the number of items held")
            check(m, dut.empty == (held == 0), "empty says that nothing is held")
        return m


def skid(cls=Skid):
    return QueueSpec(cls(2), capacity=2, latency=0)


def shallow(cls=Fifo, depth=3):
    return QueueSpec(cls(2, depth=depth, ram_style="distributed"), capacity=depth, latency=0)


def deep(cls=Fifo, depth=3):
    return QueueSpec(cls(2, depth=depth, ram_style="block"), capacity=depth, latency=2)


def deeper(cls=Fifo):
    """One place more than latch and skid buffer hold."""
    return deep(cls, depth=4)


def test_skid():
    prove(skid(), depth=1)
    cover(skid(), depth=8)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, pytest.param(8, marks=pytest.mark.soak)])
def test_shallow_fifo(depth):
    prove(shallow(depth=depth), depth=1)
    cover(shallow(depth=depth), depth=depth + 6)


@pytest.mark.parametrize("depth", [2, 3, 4, pytest.param(8, marks=pytest.mark.soak)])
def test_deep_fifo(depth):
    prove(deep(depth=depth), depth=1)
    cover(deep(depth=depth), depth=depth + 8)


BUGS = {
    "skid: valid drops": (
        skid,
        Skid,
        "[free.eq(0) for free in frees]",
        "[*(free.eq(0) for free in frees), self.o.valid.eq(0)]",
        "o: valid holds",
    ),
    "skid: payload changes": (
        skid,
        Skid,
        "[free.eq(0) for free in frees]",
        "[*(free.eq(0) for free in frees), held.eq(payload)]",
        "o: payload holds",
    ),
    "skid: spare overwritten": (
        skid,
        Skid,
        "with m.If(free):\n                m.d.sync += spare",
        "with m.If(self.i.valid):\n                m.d.sync += spare",
        "marked items",
    ),
    "skid: spare lost": (
        skid,
        Skid,
        "self.o.valid.eq(self.i.valid | ~spare_free)",
        "self.o.valid.eq(self.i.valid)",
        "offered in time",
    ),
    "skid: stuck": (
        skid,
        Skid,
        "*(free.eq(1) for free in frees)",
        "*(free.eq(free) for free in frees)",
        "exactly when there is room",
    ),
    "shallow: overflow": (
        shallow,
        Fifo,
        "room.eq(following(write_row) != oldest_row)",
        "room.eq(1)",
        "capacity|room",
    ),
    "shallow: one place too few": (
        shallow,
        Fifo,
        "room.eq(following(write_row) != oldest_row)",
        "room.eq(following(following(write_row)) != oldest_row)",
        "exactly when there is room",
    ),
    "shallow: underflow": (
        shallow,
        Fifo,
        "m.d.comb += self.o.valid.eq(~self.empty)",
        "m.d.comb += self.o.valid.eq(1)",
        "given",
    ),
    "shallow: wraps as a power of two": (
        shallow,
        Fifo,
        "Mux(row == self.depth - 1, 0, row + 1)",
        "row + 1",
        "marked items|lost|in order|room",
    ),
    "shallow: level drifts when both sides move": (
        shallow,
        Fifo,
        "with m.If(push & ~pop):\n            m.d.sync += self.level",
        "with m.If(push):\n            m.d.sync += self.level",
        "level is|capacity|room",
    ),
    "shallow: newest first": (
        shallow,
        Fifo,
        "read.addr.eq(oldest)",
        "read.addr.eq(last - 1)",
        "payload holds|marked items",
    ),
    "deep: item lost in the latch": (
        deeper,
        Fifo,
        "fetch.eq(waiting & (~latched | advance))",
        "fetch.eq(waiting)",
        "marked items|lost|in time",
    ),
    "deep: latch overwritten": (
        deeper,
        Fifo,
        "fetch.eq(waiting & (~latched | advance))",
        "fetch.eq(waiting & (~latched | self.i.valid))",
        "payload holds|marked items|lost|in time",
    ),
    "deep: latched item sent twice": (
        deep,
        Fifo,
        "with m.Elif(advance):\n            m.d.sync += latched.eq(0)",
        "with m.Elif(advance & push):\n            m.d.sync += latched.eq(0)",
        "given|marked items|capacity",
    ),
    "deep: empty too late": (
        deep,
        Fifo,
        "self.empty.eq(following(oldest_row) == write_row)",
        "self.empty.eq(oldest_row == write_row)",
        "empty says",
    ),
    "deep: slow": (
        deep,
        Fifo,
        "fetch.eq(waiting",
        "fetch.eq(waiting & self.i.valid",
        "offered in time",
    ),
}


@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bug_is_found(bug):
    make, cls, old, new, words = BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(make(mutant(cls, old, new)), depth=1)
