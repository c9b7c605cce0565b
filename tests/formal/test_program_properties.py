"""The program's tables and its loader, for all time."""

from __future__ import annotations

import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Signal
from amaranth.lib import data

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.loader import Loader
from hw.scheduler.core.table import ProgramTable
from tests.formal.stream_properties import stream_rule
from tests.support.proofs.formal import PropertyFailure, check, constant, cover, free, prove, reach, suppose
from tests.support.proofs.mutants import mutant


class TableSpec(Elaboratable):
    """Rows written at any time, then sent at any pace: each once, in order, from every start on."""

    DEPTH = 3

    def __init__(self, cls=ProgramTable):
        self.dut = cls(data.StructLayout({"value": 2}), depth=self.DEPTH)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        free(m, dut.clear, dut.write, dut.row, dut.start, dut.o.ready)
        suppose(m, ~dut.write | (dut.count < self.DEPTH), "no more rows than there is room for")
        suppose(m, ~(dut.clear & (dut.write | dut.start)), "a launch clears before it writes")
        k = Signal(range(self.DEPTH), name="k")
        constant(m, k)
        kept = Signal(2, name="row_k")
        written, sent = Signal(2, name="written"), Signal(2, name="sent")
        started = Signal(name="started")
        taken = dut.o.valid & dut.o.ready
        m.d.sync += [written.eq(written + dut.write), sent.eq(sent + taken)]
        with m.If(dut.write & (written == k)):
            m.d.sync += kept.eq(dut.row.value)
        with m.If(dut.start):
            m.d.sync += [sent.eq(0), started.eq(1)]
        with m.If(dut.clear):
            m.d.sync += [written.eq(0), started.eq(0)]
        check(m, dut.count == written, "count is what is written")
        with m.If(dut.o.valid):
            check(m, started, "nothing is sent before the start")
            check(m, sent < written, "only what is written is sent")
            with m.If(sent == k):
                check(m, dut.o.payload.value == kept, "rows are sent in order")
        # All of it: a row that waits is offered three cycles after the start or the row before.
        waits = Signal(2, name="waits")
        with m.If(started & ~dut.start & ~dut.o.valid & (sent < written) & ~dut.clear):
            m.d.sync += waits.eq(waits + 1)
        with m.Else():
            m.d.sync += waits.eq(0)
        check(m, waits < 3, "a row that is there is offered")
        reach(m, taken & (sent == self.DEPTH - 1), "the last of all rows is sent")
        return m


def test_table():
    prove(TableSpec(), depth=3)
    cover(TableSpec(), depth=14)


_MORE = "more = sending & (position != self.count)"
TABLE_BUGS = {
    "a row too few": (_MORE, "more = sending & (position + 1 < self.count)", "offered"),
    "a row too many": (_MORE, "more = sending & (position <= self.count)", "only what|in order"),
    "sent before the start": (_MORE, "more = position != self.count", "before the start"),
    "rows of the launch before": ("self.count.eq(0)", "self.count.eq(self.count)", "count is"),
    "not from the front": ("position.eq(0), sending", "position.eq(position), sending", "offered|in order"),
}


@pytest.mark.parametrize("bug", TABLE_BUGS)
def test_seeded_bug_in_table_is_found(bug):
    old, new, words = TABLE_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(TableSpec(mutant(ProgramTable, old, new)), depth=12, pdr=False)


class LoaderSpec(Elaboratable):
    """Any image, its words at any time: each record is written once, and done comes after the last."""

    def __init__(self, cls=Loader):
        self.dut = cls(SchedulerConfig(scratchpad_bytes=64, word_bytes=16, banks=2, cores=1))

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        free(m, dut.start, dut.address, dut.records, dut.command.ready, dut.words.valid, dut.words.payload)
        stream_rule(m, dut.command, check, "command")
        suppose(m, ~dut.start | ~dut.loading, "no start while it loads")
        suppose(m, (dut.records != 0) & (dut.records < 4), "an image of some records")
        running, ready, came = Signal(name="running"), Signal(name="commanded"), Signal(3, name="came")
        records, address = Signal(32, name="records_kept"), Signal(64, name="address_kept")
        m.d.sync += [records.eq(dut.records), address.eq(dut.address)]
        suppose(
            m,
            ~(running | dut.loading) | ((dut.records == records) & (dut.address == address)),
            "registers keep their value during a launch",
        )
        asked = dut.loading & ready & (came < dut.records)
        suppose(m, ~dut.words.valid | asked, "the memory sends what was asked for")
        accepted = dut.command.valid & dut.command.ready
        with m.If(dut.words.valid & dut.words.ready):
            m.d.sync += came.eq(came + 1)
        with m.If(accepted):
            m.d.sync += ready.eq(1)
            check(m, ~ready, "one command a launch")
            check(m, dut.command.payload.address == dut.address, "at the image's address")
            check(m, dut.command.payload.length == dut.records * 16, "of the whole image")
        with m.If(dut.done):
            m.d.sync += running.eq(0)
        with m.If(dut.start):
            m.d.sync += [running.eq(1), ready.eq(0), came.eq(0)]
        check(m, dut.write == (dut.words.valid & dut.words.ready), "each record is written once")
        check(m, ~dut.write | (Cat(dut.table, dut.row) == dut.words.payload.data), "as it is")
        check(m, ~dut.done | (running & (came == dut.records)), "done comes after the last record")
        check(m, ~running | dut.loading | dut.done, "it loads until it is done")
        check(m, ~dut.words.valid | dut.words.ready, "the memory never waits")
        check(m, ~dut.loading | (running & (dut.left + came == dut.records)), "what is left is counted")
        check(m, ~dut.command.valid | (dut.loading & ~ready & (came == 0)), "words follow the command")
        reach(m, dut.done & (dut.records == 3), "an image of three records is loaded")
        return m


def test_loader():
    prove(LoaderSpec(), depth=3, pdr=False)
    cover(LoaderSpec(), depth=12)


LOADER_BUGS = {
    "done a record early": ("(self.left == 1)", "(self.left == 2)", "done comes after|until it is done"),
    "length in records": ("Cat(low, self.records)", "self.records", "whole image"),
    "asked twice": (
        "self.command.valid.eq(0)",
        "self.command.valid.eq(self.command.valid)",
        "one command|words follow",
    ),
}


@pytest.mark.parametrize("bug", LOADER_BUGS)
def test_seeded_bug_in_loader_is_found(bug):
    old, new, words = LOADER_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(LoaderSpec(mutant(Loader, old, new)), depth=12, pdr=False)
