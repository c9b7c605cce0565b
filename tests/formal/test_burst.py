"""The burst splitter, proved for all time: bursts AXI allows, that cover each command exactly."""

from __future__ import annotations

import pytest
from amaranth.hdl import Elaboratable, Module, Mux, Signal
from amaranth.utils import exact_log2

from hw.lib import axi
from hw.lib.dma.burst import LENGTH_BITS, BurstSplitter
from tests.formal.axi_properties import burst_rules
from tests.formal.channel import channel
from tests.support.proofs.formal import PropertyFailure, bounded, check, cover, free, prove, reach, suppose

ADDRESS_BITS = 14


class SplitterSpec(Elaboratable):
    """Keeps account of the beats a command asks for; ``fault`` changes what the account sees."""

    def __init__(self, *, data_width, burst_beats, fault=None):
        self.data_width = data_width
        self.burst_beats = burst_beats
        self.fault = fault

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = BurstSplitter(
            data_width=self.data_width, addr_width=ADDRESS_BITS, burst_beats=self.burst_beats
        )
        beat_bytes = self.data_width // 8
        lanes = exact_log2(beat_bytes)
        command, burst = dut.command, dut.o
        free(m, command.valid, command.payload, burst.ready)
        channel(m, suppose, "command", command.valid, command.ready, command.payload.as_value())
        channel(m, check, "burst", burst.valid, burst.ready, burst.payload.as_value())
        with m.If(command.valid):
            suppose(m, command.payload.length != 0, "a command has a byte")

        next_beat = Signal(ADDRESS_BITS - lanes)
        to_come = Signal(LENGTH_BITS - lanes + 2)
        beats = Mux(burst.valid & burst.ready, burst.payload.beats, 0)
        with m.If(command.valid & command.ready):
            first, length = command.payload.address, command.payload.length
            m.d.sync += [
                next_beat.eq(first >> lanes),
                to_come.eq((first[:lanes] + length + beat_bytes - 1) >> lanes),
            ]
        with m.Else():
            m.d.sync += [next_beat.eq(next_beat + beats), to_come.eq(to_come - beats)]

        check(m, burst.valid == (to_come != 0), "bursts come while, and only while, beats are to come")
        with m.If(burst.valid):
            address, count = burst.payload.address, burst.payload.beats
            if self.fault == "address":
                address = address + beat_bytes
            if self.fault == "count":
                count = count + (next_beat == 5)
            check(m, address == next_beat << lanes, "a burst starts where the one before ended")
            check(m, (count != 0) & (count <= to_come), "no beat too many")
            check(m, burst.payload.last == (count == to_come), "the last burst, and no other, is marked")
            check(
                m,
                burst.payload.last | ((next_beat + count)[: exact_log2(self.burst_beats)] == 0),
                "a burst is as long as it may be",
            )
        with m.If(command.valid & command.ready & burst.valid):
            check(
                m, burst.payload.last & burst.ready, "a command is taken with the last burst at the earliest"
            )
        burst_rules(
            m,
            check,
            "any",
            burst_beats=self.burst_beats,
            beat_bytes=beat_bytes,
            valid=burst.valid,
            address=burst.payload.address,
            length=burst.payload.beats - 1,
        )
        # How the splitter's own state relates to the account: what makes the induction close.
        check(m, dut.active == (to_come != 0), "active while beats are to come")
        with m.If(dut.active):
            check(m, dut.beat == next_beat, "the splitter is where the account is")
            check(m, dut.left + 1 == to_come, "the splitter has as many left as the account")

        reach(m, burst.valid & burst.payload.last & (next_beat == 0), "a command goes round the addresses")
        reach(m, burst.valid & ~burst.payload.last & (burst.payload.address[12:] == 1), "past 4 KiB")
        reach(m, command.valid & command.ready & burst.valid, "a command follows without a gap")
        return m


@pytest.mark.parametrize(("data_width", "burst_beats"), [(32, 4), (256, 16), (512, 16), (64, 1)])
def test_bursts_cover_commands_exactly(data_width, burst_beats):
    spec = SplitterSpec(data_width=data_width, burst_beats=burst_beats)
    assert prove(spec, depth=3, pdr=False).method == "induction"


def test_nothing_is_vacuous():
    cover(SplitterSpec(data_width=32, burst_beats=4), depth=8)


@pytest.mark.parametrize(
    ("fault", "rule"),
    [("address", "a burst starts where"), ("count", "no beat too many|the last burst|as long as")],
)
def test_a_wrong_burst_is_found(fault, rule):
    with pytest.raises(PropertyFailure, match=rule):
        bounded(SplitterSpec(data_width=32, burst_beats=4, fault=fault), depth=6, solver="sat")


def test_page_is_a_whole_number_of_blocks():
    """The splitter relies on it: a burst that ends at a block ends at 4 KiB at the latest."""
    for data_width in (32, 64, 128, 256, 512, 1024):
        assert axi.BOUNDARY_BYTES % (data_width // 8 * axi.MAX_BURST_BEATS) == 0
