"""The AXI4 rules hold for a correct manager and subordinate, and each seeded bug breaks its rule."""

from __future__ import annotations

import pytest
from amaranth.hdl import Elaboratable, Module, Mux, Signal

from hw.lib import axi
from tests.formal.axi_properties import AxiReadProperties, AxiWriteProperties
from tests.formal.channel import attach
from tests.support.proofs.formal import PropertyFailure, bounded, cover, free

SIGNATURE = axi.Signature(data_width=32, addr_width=13)
BURST_BEATS = 4
LIMIT = 1


class Fault:
    """Bends single wires: ``bend`` gives ``value`` but, when this is the seeded fault, ``wrong`` instead."""

    def __init__(self, name):
        self.name = name

    def __call__(self, name, value, wrong):
        return wrong if name == self.name else value


class ReadSpec(Elaboratable):
    """A manager, that takes each beat at once or not, and a subordinate, for one burst at a time.

    ``fault`` is seeded into one of them.
    """

    def __init__(self, fault=None, *, wanted=True):
        self.fault = Fault(fault)
        self.wanted = wanted

    def elaborate(self, platform):
        m = Module()
        bend = self.fault
        port = SIGNATURE.read.create()
        m.submodules.rules = rules = AxiReadProperties(
            SIGNATURE.read,
            manager="check",
            subordinate="check",
            burst_beats=BURST_BEATS,
            limit=LIMIT,
            wanted=self.wanted,
        )
        attach(m, rules, port)
        fresh = Signal(init=1)
        m.d.sync += fresh.eq(0)

        go, take, offer = Signal(), Signal(), Signal()
        block, want, word = Signal(8), Signal(2), Signal(32)
        free(m, go, take, offer, block, want, word)

        asking = Signal()
        address, length = Signal(13), Signal(8)
        m.d.comb += [
            port.arvalid.eq(bend("ar after reset", asking, asking | fresh)),
            port.araddr.eq(bend("ar unaligned", address, address | 2)),
            port.arlen.eq(bend("ar too long", length, BURST_BEATS)),
            port.arid.eq(bend("ar other id", 0, 1)),
            port.rready.eq(bend("r refused", 1, take) if self.wanted else take),
        ]
        with m.If(~asking | port.arready | bend("ar drops", 0, 1)):
            m.d.sync += asking.eq(go)
        with m.If(~asking | port.arready | bend("ar not stable", 0, 1)):
            m.d.sync += [address.eq(bend("ar crosses", block << 4, 4096 - 4)), length.eq(want)]

        left = Signal(3)
        due = Signal(8)
        m.d.comb += port.arready.eq(bend("takes too many", (left == 0) & ~port.rvalid, 1))
        with m.If(port.arvalid & port.arready):
            m.d.sync += [left.eq(port.arlen + 1), due.eq(port.arlen)]
        offering = Signal()
        last = bend("rlast early", bend("rlast late", left == 0, 0), left <= 1)
        m.d.comb += [
            port.rvalid.eq(bend("r after reset", offering, offering | fresh)),
            port.rlast.eq(last),
            port.rid.eq(bend("r other id", 0, 1)),
        ]
        with m.If(~offering | port.rready | bend("r drops", 0, 1)):
            give = offer & ((left != 0) | bend("r unasked", 0, 1))
            m.d.sync += offering.eq(give)
            with m.If(give & (left != 0)):
                m.d.sync += left.eq(left - 1)
        with m.If(~offering | port.rready | bend("r not stable", 0, 1)):
            m.d.sync += port.rdata.eq(word)
        return m


class WriteSpec(Elaboratable):
    """A manager and a subordinate for one burst at a time; ``fault`` is seeded into one of them."""

    def __init__(self, fault=None):
        self.fault = Fault(fault)

    def elaborate(self, platform):
        m = Module()
        bend = self.fault
        port = SIGNATURE.write.create()
        m.submodules.rules = rules = AxiWriteProperties(
            SIGNATURE.write,
            manager="check",
            subordinate="check",
            burst_beats=BURST_BEATS,
            limit=LIMIT,
            prompt_cycles=2,
        )
        attach(m, rules, port)
        fresh = Signal(init=1)
        m.d.sync += fresh.eq(0)

        go, offer, take, take_data = Signal(), Signal(), Signal(), Signal()
        block, want, word = Signal(8), Signal(2), Signal(32)
        free(m, go, offer, take, take_data, block, want, word)

        # Manager: address and first beat together, then beat after beat, then the answer.
        asking, sending, waiting = Signal(), Signal(), Signal()
        address, length, place = Signal(13), Signal(8), Signal(8)
        eager = bend("takes too many", bend("takes too much data", 0, 1), 1)
        start = go & ~asking & ~sending & (~waiting | (port.bvalid & port.bready) | eager)
        end = port.wvalid & port.wready & port.wlast
        m.d.comb += [
            port.awvalid.eq(bend("aw after reset", asking, asking | fresh)),
            port.awaddr.eq(bend("aw unaligned", address, address | 1)),
            port.awlen.eq(bend("aw too long", length, BURST_BEATS)),
            port.awid.eq(bend("aw other id", 0, 1)),
            port.wvalid.eq(bend("w after reset", sending, sending | fresh)),
            port.wlast.eq(
                bend("wlast early", bend("wlast late", place == length, place > length), place + 1 >= length)
            ),
            port.wstrb.eq(15),
            port.bready.eq(offer),
        ]
        with m.If(start):
            m.d.sync += [
                asking.eq(1),
                sending.eq(bend("w late", 1, 0)),
                waiting.eq(1),
                place.eq(0),
                address.eq(bend("aw crosses", block << 4, 4096 - 4)),
                length.eq(want),
                port.wdata.eq(word),
            ]
        with m.Else():
            with m.If(port.awready | bend("aw drops", 0, 1)):
                m.d.sync += asking.eq(0)
            with m.If(port.wready | bend("w drops", 0, 1)):
                m.d.sync += [sending.eq(sending & ~port.wlast), port.wdata.eq(word)]
            with m.If(sending & port.wready):
                m.d.sync += place.eq(place + 1)
            if bend.name == "aw not stable":
                m.d.sync += address.eq(block << 4)
            if bend.name == "w not stable":
                m.d.sync += port.wdata.eq(word)
            if bend.name == "w before address":
                m.d.sync += sending.eq(1)
            with m.If(port.bvalid & port.bready):
                m.d.sync += waiting.eq(0)

        # Subordinate: one address and its data in any order, then the answer.
        has_address, has_data, answering = Signal(), Signal(), Signal()
        m.d.comb += [
            port.awready.eq(bend("takes too many", take & ~has_address, 1)),
            port.wready.eq(bend("takes too much data", take_data & ~has_data, 1)),
            port.bvalid.eq(bend("b after reset", answering, answering | fresh)),
            port.bid.eq(bend("b other id", 0, 1)),
        ]
        with m.If(port.awvalid & port.awready):
            m.d.sync += has_address.eq(1)
        with m.If(end):
            m.d.sync += has_data.eq(1)
        can = Mux(
            bend("b before data", 0, 1),
            has_address & ~answering,
            Mux(bend("b before address", 0, 1), has_data, has_address & has_data),
        )
        with m.If(answering & port.bready):
            m.d.sync += [answering.eq(0), has_address.eq(0), has_data.eq(0)]
        with m.Elif(can):
            m.d.sync += answering.eq(1)
        if bend.name == "b drops":
            m.d.sync += answering.eq(can & ~answering)
        with m.If(~answering | bend("b not stable", 0, 1)):
            m.d.sync += port.bresp.eq(word)
        return m


def test_correct_readers():
    bounded(ReadSpec(wanted=True), depth=10)
    bounded(ReadSpec(wanted=False), depth=10)
    cover(ReadSpec(wanted=False), depth=14)


def test_correct_writer():
    bounded(WriteSpec(), depth=10)
    cover(WriteSpec(), depth=14)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("ar after reset", "arvalid is low after reset"),
        ("ar drops", "arvalid stays up"),
        ("ar not stable", "payload of ar is stable"),
        ("ar unaligned", "read addresses are multiples of the beat"),
        ("ar too long", "no read burst is longer than 4 beats"),
        ("ar crosses", "no read burst crosses 4 KiB"),
        ("ar other id", "reads have the one ID"),
        ("r refused", "every beat asked for is taken at once"),
        ("r after reset", "rvalid is low after reset"),
        ("r drops", "rvalid stays up"),
        ("r not stable", "payload of r is stable"),
        ("r unasked", "a beat follows its address"),
        ("r other id", "beats have the ID"),
        ("rlast early", "rlast marks the burst's end"),
        ("rlast late", "rlast marks the burst's end"),
        ("takes too many", "no read beyond the capacity"),
    ],
)
def test_each_bug_of_reading_is_found(fault, rule):
    with pytest.raises(PropertyFailure, match=rule):
        # A beat that is taken at once has no time to go wrong.
        bounded(ReadSpec(fault, wanted=fault not in ("r drops", "r not stable")), depth=8, solver="sat")


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("aw after reset", "awvalid is low after reset"),
        ("aw drops", "awvalid stays up"),
        ("aw not stable", "payload of aw is stable"),
        ("aw unaligned", "write addresses are multiples of the beat"),
        ("aw too long", "no write burst is longer than 4 beats"),
        ("aw crosses", "no write burst crosses 4 KiB"),
        ("aw other id", "writes have the one ID"),
        ("w after reset", "wvalid is low after reset"),
        ("w drops", "wvalid stays up"),
        ("w not stable", "payload of w is stable"),
        ("w before address", "data are not on the bus before their address"),
        ("w late", "data follow their address at once"),
        ("wlast early", "wlast marks the burst's end"),
        ("wlast late", "wlast marks the burst's end"),
        ("takes too many", "no write address beyond the capacity"),
        ("takes too much data", "no write data beyond the capacity"),
        ("b after reset", "bvalid is low after reset"),
        ("b drops", "bvalid stays up"),
        ("b not stable", "payload of b is stable"),
        ("b before data", "a response follows its last beat"),
        ("b before address", "a response follows its address"),
        ("b other id", "responses have the ID"),
    ],
)
def test_each_bug_of_writing_is_found(fault, rule):
    with pytest.raises(PropertyFailure, match=rule):
        bounded(WriteSpec(fault), depth=8, solver="sat")
