"""Row cutter and row packer: every unit once, in order, in its row, however the neighbours wait."""

from __future__ import annotations

import pytest
from amaranth.hdl import Elaboratable, Module, Mux, Signal

from hw.lib.rows.command import RowsCommand
from hw.lib.rows.cutter import RowCutter
from hw.lib.rows.packer import RowPacker
from tests.formal.stream_properties import free_input, free_output
from tests.support.proofs.formal import (
    PropertyFailure,
    bounded,
    check,
    constant,
    cover,
    free,
    prove,
    reach,
    suppose,
)
from tests.support.proofs.mutants import mutant

MOST_ROWS, MOST_UNITS, UNIT_BITS = 2, 3, 2


class RowsSpec(Elaboratable):
    """What cutter and packer have in common: commands of one size, which may be any, and counted units.

    Units are numbered modulo 4 from the first of a command.  ``count`` follows the units of one side.
    """

    def __init__(self, dut):
        self.dut = dut

    def commands(self, m):
        m.submodules.dut = dut = self.dut
        rows, units = Signal(range(MOST_ROWS + 1)), Signal(range(MOST_UNITS + 1))
        constant(m, rows, units)
        suppose(m, (rows != 0) & (rows <= MOST_ROWS) & (units != 0) & (units <= MOST_UNITS), "a command")
        free(m, dut.rows.valid)
        m.d.comb += [dut.rows.payload.rows.eq(rows), dut.rows.payload.units.eq(units)]
        waiting = Signal()
        m.d.sync += waiting.eq(dut.rows.valid & ~dut.rows.ready)
        suppose(m, ~waiting | dut.rows.valid, "a command waits")
        total = Signal(range(MOST_ROWS * MOST_UNITS + 1))
        m.d.comb += total.eq(rows * units)
        return total, units


class CutterSpec(RowsSpec):
    """Parts have the units of their row, zeros behind them, and ``last`` where the row ends."""

    def __init__(self, part_units, word_units, cls=RowCutter):
        self.part_units, self.word_units = part_units, word_units
        command = RowsCommand(most_rows=MOST_ROWS, most_units=MOST_UNITS, unit_bits=UNIT_BITS)
        super().__init__(cls(command, part_bits=part_units * UNIT_BITS, data_width=word_units * UNIT_BITS))

    def elaborate(self, platform):
        m = Module()
        total, units = self.commands(m)
        i, o = self.dut.i, self.dut.o
        free_input(m, i, "i")
        free_output(m, o, "o")
        given, taken = Signal(4), Signal(4)  # units of the command so far
        in_row = Signal(3)
        after = given + self.word_units
        with m.If(i.valid):
            for n in range(self.word_units):
                with m.If(given + n < total):
                    suppose(m, i.payload.data.word_select(n, UNIT_BITS) == (given + n)[:2], "units count")
            suppose(m, i.payload.last == (after >= total), "a word is the last of its command")
        with m.If(i.valid & i.ready):
            m.d.sync += given.eq(Mux(i.payload.last, 0, after))
        left = units - in_row
        count = Mux(left < self.part_units, left, self.part_units)
        with m.If(o.valid):
            for n in range(self.part_units):
                unit = o.payload.elements.word_select(n, UNIT_BITS)
                check(m, unit == Mux(count > n, (taken + n)[:2], 0), "a part has its units, then zeros")
            check(m, o.payload.last == (left <= self.part_units), "the row's last part says so")
        with m.If(o.valid & o.ready):
            m.d.sync += [
                taken.eq(Mux(taken + count == total, 0, taken + count)),
                in_row.eq(Mux(o.payload.last, 0, in_row + count)),
            ]
            with m.If(taken + count == total):
                reach(m, 1, "a command ends")
        return m


class PackerSpec(RowsSpec):
    """Words have a command's units one behind the other; a row's beats begin with its first unit."""

    def __init__(self, word_units, cls=RowPacker):
        self.word_units = word_units
        command = RowsCommand(most_rows=MOST_ROWS, most_units=MOST_UNITS, unit_bits=UNIT_BITS)
        super().__init__(cls(command, data_width=word_units * UNIT_BITS))

    def elaborate(self, platform):
        m = Module()
        total, units = self.commands(m)
        i, o = self.dut.i, self.dut.o
        free_input(m, i, "i")
        free_output(m, o, "o")
        given, taken, in_row = Signal(4), Signal(4), Signal(3)
        left = units - in_row
        count = Mux(left < self.word_units, left, self.word_units)
        with m.If(i.valid):
            for n in range(min(self.word_units, MOST_UNITS)):
                with m.If(count > n):
                    suppose(m, i.payload.word_select(n, UNIT_BITS) == (given + n)[:2], "units count")
        with m.If(i.valid & i.ready):
            m.d.sync += [
                given.eq(Mux(given + count == total, 0, given + count)),
                in_row.eq(Mux(left <= self.word_units, 0, in_row + count)),
            ]
        with m.If(o.valid):
            for n in range(self.word_units):
                with m.If(taken + n < total):
                    unit = o.payload.word_select(n, UNIT_BITS)
                    check(m, unit == (taken + n)[:2], "a word has the next units")
        with m.If(o.valid & o.ready):
            m.d.sync += taken.eq(Mux(taken + self.word_units >= total, 0, taken + self.word_units))
            with m.If(taken + self.word_units >= total):
                reach(m, 1, "a command ends")
        return m


@pytest.mark.parametrize(("part_units", "word_units"), [(1, 1), (1, 2), (3, 2), (2, 1)])
def test_cutter(part_units, word_units):
    prove(CutterSpec(part_units, word_units), depth=1)


def test_cutter_gets_everywhere():
    cover(CutterSpec(2, 2), depth=12)


@pytest.mark.parametrize("word_units", [2, 4])
def test_packer(word_units):
    prove(PackerSpec(word_units), depth=1)


def test_packer_gets_everywhere():
    cover(PackerSpec(4), depth=12)


CUTTER_BUGS = {
    "a word is kept too long": (2, "used.eq((end >= word_units) | final)", "used.eq(end > word_units)"),
    "the tail of a command stays": (2, "Mux(final, 0, end", "Mux(0, 0, end"),
    "noise behind a row": (2, "Mux(take > n, unit", "Mux(1, unit"),
    "a part is overwritten": (2, "& (~o.valid | o.ready))", ")"),
}


@pytest.mark.parametrize("bug", CUTTER_BUGS)
def test_cutter_bug_is_found(bug):
    part_units, old, new = CUTTER_BUGS[bug]
    with pytest.raises(PropertyFailure):
        bounded(CutterSpec(part_units, 2, mutant(RowCutter, old, new)), depth=14, solver="sat")


PACKER_BUGS = {
    "no word for the rest": ("flush.eq(final & whole & (more != 0))", "flush.eq(0)"),
    "a word is overwritten": ("free.eq(~o.valid | o.ready)", "free.eq(1)"),
    "the rest of a command stays": ("count.eq(Mux(final & ~whole, 0, more))", "count.eq(more)"),
    "noise between rows": ("Mux(last, units, beat_units)", "beat_units"),
}


@pytest.mark.parametrize("bug", PACKER_BUGS)
def test_packer_bug_is_found(bug):
    with pytest.raises(PropertyFailure):
        bounded(PackerSpec(4, mutant(RowPacker, *PACKER_BUGS[bug])), depth=10, solver="sat")
