"""The DMAs keep the rules of AXI4 against every memory that keeps them, up to a bounded depth.

Reduced to 4-byte beats, bursts of 2 and a FIFO of 3: small enough for every interleaving of a dozen cycles,
in which several bursts of several commands pass.
"""

from __future__ import annotations

import pytest
from amaranth.hdl import Elaboratable, Module
from amaranth.lib.wiring import In

from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from tests.formal.axi_properties import AxiReadProperties, AxiWriteProperties
from tests.formal.channel import attach, channel
from tests.support.proofs.formal import PropertyFailure, bounded, check, cover, free, reach, suppose
from tests.support.proofs.mutants import mutant

SIZES = {"data_width": 32, "addr_width": 13, "burst_beats": 2, "fifo_beats": 3}


def surroundings(m, dut):
    """Let the memory and the commands be anything that their rules allow."""
    for name, member in dut.axi.signature.members.items():
        if member.flow == In:
            free(m, getattr(dut.axi, name))
    command = dut.command
    free(m, command.valid, command.payload)
    channel(m, suppose, "command", command.valid, command.ready, command.payload.as_value())
    with m.If(command.valid):
        suppose(m, command.payload.length != 0, "a command has a byte")


class ReadSpec(Elaboratable):
    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = ReadDMA(**SIZES, commands=2)
        m.submodules.rules = rules = AxiReadProperties(
            dut.axi.signature,
            manager="check",
            subordinate="suppose",
            burst_beats=SIZES["burst_beats"],
            limit=2,  # of one beat each: no third is asked for, as there might be no room for two more
            wanted=True,
        )
        attach(m, rules, dut.axi)
        surroundings(m, dut)
        free(m, dut.o.ready)
        channel(m, check, "o", dut.o.valid, dut.o.ready, dut.o.payload.as_value())
        check(m, ~dut.lost, "there is a place for every beat")
        with m.If(dut.o.valid):
            keep = dut.o.payload.keep
            check(m, dut.busy, "busy while a word is there")
            check(m, keep[0] & ((keep & (keep + 1)) == 0), "keep marks low bytes without a hole")
            check(m, dut.o.payload.last | keep.all(), "only the last word is partial")
        reach(m, dut.o.valid & dut.o.payload.last & ~dut.o.payload.keep.all(), "a command ends in a part")
        reach(m, rules.bursts == 2, "two bursts are open")
        return m


class WriteSpec(Elaboratable):
    def __init__(self, *, commands=2, outstanding=2):
        self.commands = commands
        self.outstanding = outstanding

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = WriteDMA(**SIZES, commands=self.commands, outstanding=self.outstanding)
        m.submodules.rules = rules = AxiWriteProperties(
            dut.axi.signature,
            manager="check",
            subordinate="suppose",
            burst_beats=SIZES["burst_beats"],
            limit=self.outstanding,
            prompt_cycles=0,
        )
        attach(m, rules, dut.axi)
        surroundings(m, dut)
        free(m, dut.i.valid, dut.i.payload, dut.done.ready)
        channel(m, suppose, "i", dut.i.valid, dut.i.ready, dut.i.payload.as_value())
        channel(m, check, "done", dut.done.valid, dut.done.ready, dut.done.payload)
        with m.If(dut.axi.wvalid):
            check(m, dut.axi.wstrb != 0, "every beat writes something")
        with m.If(dut.axi.bvalid):
            check(m, dut.busy, "busy until the last response")
        reach(m, dut.done.valid & dut.done.ready & dut.done.payload, "a command ends in an error")
        reach(m, dut.axi.wvalid & ~dut.axi.wstrb[0] & dut.axi.wstrb[3], "a command starts unaligned")
        return m


@pytest.mark.parametrize(
    ("spec", "depth"),
    [(ReadSpec, 12), (WriteSpec, 10)],
)
def test_rules_are_kept(spec, depth):
    bounded(spec(), depth=depth, seconds=1800)


@pytest.mark.parametrize(
    ("spec", "part", "old", "new", "rule"),
    [
        pytest.param(
            ReadSpec,
            ReadDMA,
            "splitter.o.valid & roomy",
            "splitter.o.valid",
            "there is a place for",
            marks=pytest.mark.soak,
        ),
        (ReadSpec, ReadDMA, "room >= self._burst_beats", "room != 0", "there is a place for every beat"),
        (WriteSpec, WriteDMA, "some_whole & ", "", "data follow their address at once"),
        (WriteSpec, WriteDMA, " & some_open", "", "data are not on the bus before"),
        (
            WriteSpec,
            WriteDMA,
            "notes.i.ready & free",
            "notes.i.ready",
            "payload of aw is stable|data are not on",
        ),
    ],
)
def test_a_bug_in_the_source_is_found(monkeypatch, spec, part, old, new, rule):
    monkeypatch.setitem(globals(), part.__name__, mutant(part, old, new))
    with pytest.raises(PropertyFailure, match=rule):
        bounded(spec(), depth=12, solver="sat")


def test_read_dma_is_not_vacuous():
    cover(ReadSpec(), depth=10)


def test_write_dma_is_not_vacuous():
    # One command at a time: its token, not taken, holds up a response that early.
    cover(WriteSpec(commands=1), depth=11)
