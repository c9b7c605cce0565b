"""The register file, for all time: AXI-Lite, values read back, clear on read, start handshake, interrupt."""

from __future__ import annotations

import pytest
from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, Signal

from hw.lib.arguments import Argument, ArgumentKind, ArgumentTable
from hw.lib.registers import RegisterFile
from tests.formal.axi_lite_properties import AxiLiteProperties
from tests.formal.channel import attach
from tests.formal.register_requests import Requests, free_inputs
from tests.support.proofs.formal import PropertyFailure, bounded, check, cover, prove, reach
from tests.support.proofs.mutants import mutant

TABLE = ArgumentTable(
    (
        Argument(name="n", kind=ArgumentKind.SCALAR, doc="a number"),
        Argument(name="p", kind=ArgumentKind.POINTER, port="gmem0", doc="an address"),
        Argument(name="cycles", kind=ArgumentKind.COUNTER, doc="cycles"),
    )
)
ARGUMENT_WORDS = (0x10, 0x18, 0x1C)


class ProtocolSpec(Elaboratable):
    """The register file before a manager that does anything a manager may: AXI-Lite."""

    def __init__(self, cls=RegisterFile):
        self.dut = cls(TABLE)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        bus, state = dut.bus, dut.state
        m.submodules.rules = rules = AxiLiteProperties(
            bus.signature, manager="suppose", subordinate="check", limit=1, patience_cycles=3
        )
        attach(m, rules, bus)
        free_inputs(m, dut)
        check(m, rules.addressed == state.has_address, "an address is held while its write is open")
        check(m, rules.filled == state.has_data, "data are held while their write is open")
        check(m, rules.asked == state.reading, "a read is under way while it is open")
        return m


class RegisterSpec(Elaboratable):
    """The register file between a manager and a body that do anything: what registers mean."""

    def __init__(self, cls=RegisterFile):
        self.dut = cls(TABLE)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = self.dut
        free_inputs(m, self.dut)
        self.rules(m, Requests(m, self.dut.bus, self.dut.state))
        return m

    def rules(self, m, requests):
        ended = self.call(m, requests)
        self.interrupts(m, requests, ended)
        self.values(m, requests)

    def call(self, m, requests):
        """Start, done, auto-restart; gives the end of a run."""
        dut, state = self.dut, self.dut.state
        asked, busy, done, restart = Signal(), Signal(), Signal(), Signal()
        ended = Signal()
        m.d.comb += ended.eq(busy & dut.done)
        begins = requests.writes_low(0x00) & requests.data[0]
        with m.If(requests.writes_low(0x00)):
            m.d.sync += restart.eq(requests.data[7])
        m.d.sync += asked.eq(Mux(ended, restart, asked) | begins)
        m.d.sync += busy.eq((busy & ~ended) | (asked & ~busy))
        m.d.sync += done.eq((done & ~requests.reads(0x00)) | ended)
        check(m, state.started == asked, "start is up from its write to the end of the run")
        check(m, state.running == busy, "a run lasts from start to done")
        check(m, state.done == done, "done is set by the end and cleared by a read")
        check(m, state.ready == done, "ready is set by the end and cleared by a read")
        check(m, state.restart == restart, "auto-restart is what was written")

        launched, ran, before = Signal(), Signal(), Signal(96)
        held = Signal(96)
        m.d.sync += [
            launched.eq(asked & ~busy),
            ran.eq(busy),
            before.eq(dut.args.as_value()),
            held.eq(state.args.as_value()),
        ]
        check(m, dut.start == launched, "start comes a cycle after its write acted, once")
        with m.If(dut.start):
            check(m, dut.args.as_value() == held, "arguments are those of the moment of the start")
        with m.If(ran):
            check(m, dut.args.as_value() == before, "arguments are constant from start to done")
        for follow in dut.follows.values():
            check(m, follow == ~state.running, "what is given follows what is written while nothing runs")
        reach(m, dut.start & restart, "a start by auto-restart")
        reach(m, ended & requests.reads(0x00), "an end in the cycle of a clearing read")
        reach(m, ended & begins, "a start written in the cycle of an end")
        return ended

    def interrupts(self, m, requests, ended):
        enabled, enables, status = Signal(), Signal(2), Signal(2)
        with m.If(requests.writes_low(0x04)):
            m.d.sync += enabled.eq(requests.data[0])
        with m.If(requests.writes_low(0x08)):
            m.d.sync += enables.eq(requests.data[:2])
        for index in range(2):
            with m.If(ended & enables[index]):
                m.d.sync += status[index].eq(1)
            with m.Elif(requests.writes_low(0x0C) & requests.data[index]):
                m.d.sync += status[index].eq(~status[index])
        check(m, self.dut.state.enabled == enabled, "the global enable is what was written")
        check(m, self.dut.state.enables == enables, "the enables are what was written")
        check(m, self.dut.state.status == status, "a status bit is set by its event and toggled by a write")
        check(m, self.dut.interrupt == (enabled & (status != 0)), "interrupt is enable and any status")
        reach(m, self.dut.interrupt, "an interrupt")

    def values(self, m, requests):
        """What every address reads."""
        dut, state = self.dut, self.dut.state
        words = Array(Signal(32, name=f"word_{offset:x}") for offset in ARGUMENT_WORDS)
        for word, offset in zip(words, ARGUMENT_WORDS, strict=True):
            due, strobes, written = Signal(), Signal(4), Signal(32)
            m.d.sync += [due.eq(requests.writes(offset)), strobes.eq(requests.strobes)]
            m.d.sync += written.eq(requests.data)
            check(
                m, dut.enables[offset] == Mux(due, strobes, 0), "bytes are written a cycle after their write"
            )
            check(m, ~due | (dut.bus.bvalid & (requests.data == written)), "data stay until they are written")
            with m.If(due):
                for lane in range(4):
                    with m.If(strobes[lane]):
                        m.d.sync += word[8 * lane : 8 * lane + 8].eq(written[8 * lane : 8 * lane + 8])
        check(m, state.args.as_value() == Cat(words), "an argument is what was written, byte by byte")
        for place in dut.places.values():
            right = place == requests.read_word[: len(place)]
            check(m, ~requests.read | right, "a place in a block is that of the word that is read")

        high, moment = Signal(32), Signal(32)
        with m.If(requests.reads(0x400)):
            m.d.sync += moment.eq(dut.counters.cycles[32:])
        with m.If(requests.answers & (requests.read_word == 0x400 // 4)):
            check(m, dut.kept == moment, "the high word that comes is that of the low word's moment")
            m.d.sync += high.eq(moment)
        check(m, state.high == high, "the high word is that of the low word's moment")

        control = Cat(state.started, state.done, ~state.started, state.ready)
        expected = Signal(32)
        with m.If(requests.read):
            m.d.sync += expected.eq(0)
        for offset, value in (
            (0x00, control | state.restart << 7),
            (0x04, state.enabled),
            (0x08, state.enables),
            (0x0C, state.status),
            (0x10, words[0]),
            (0x18, words[1]),
            (0x1C, words[2]),
            (0x400, dut.counters.cycles[:32]),
            (0x404, high),
        ):
            with m.If(requests.reads(offset)):
                m.d.sync += expected.eq(value)
        with m.If(requests.answers):
            check(m, dut.answer == expected, "what is sampled is the register of its address, else zero")
        with m.If(dut.bus.rvalid):
            check(m, dut.bus.rdata == expected, "a read gives the register of its address, else zero")
            check(m, dut.bus.rresp == 0, "every read is OKAY")
        with m.If(dut.bus.bvalid):
            check(m, dut.bus.bresp == 0, "every write is OKAY")
        reach(m, dut.bus.rvalid & (dut.bus.rdata == 0x12345678), "a value comes back")


class CallSpec(RegisterSpec):
    """Start and done alone: long traces are found in a third of the time."""

    def rules(self, m, requests):
        self.call(m, requests)


def test_protocol():
    # The rules of patience look as many cycles back as they allow.
    assert prove(ProtocolSpec(), depth=5, pdr=False).method == "induction"


def test_registers():
    assert prove(RegisterSpec(), depth=1, pdr=False).method == "induction"


@pytest.mark.parametrize("spec", [ProtocolSpec, RegisterSpec])
def test_nothing_is_vacuous(spec):
    cover(spec(), depth=10)


PROTOCOL_BUGS = {
    "takes a second read": (
        "bus.arready.eq(awake & ~state.reading)",
        "bus.arready.eq(awake)",
        "no read beyond the capacity",
    ),
    "response before the data": (
        "now.eq(state.has_address & state.has_data & ~bus.bvalid)",
        "now.eq(state.has_address & ~bus.bvalid)",
        "a write response follows its data",
    ),
    "response dropped": (
        "with m.If(bus.rvalid & bus.rready):",
        "with m.If(bus.rvalid):",
        "rvalid stays up",
    ),
    "data change while they wait": (
        "with m.If(state.sampled & ~self.bus.rvalid):",
        "with m.If(state.sampled & self.bus.rvalid):",
        "payload of r is stable",
    ),
}

REGISTER_BUGS = {
    "strobes ignored": (
        "with m.If(enable[lane]):",
        "with m.If(enable.any()):",
        "byte by byte",
    ),
    "words swapped": (
        "word_select(part, 32)",
        "word_select(register.argument.bits // 32 - 1 - part, 32)",
        "byte by byte",
    ),
    "control written whatever the strobes": (
        "with m.If(writes(CONTROL) & strobes[0]):",
        "with m.If(writes(CONTROL)):",
        "auto-restart is what was written|start is up",
    ),
    "done not cleared by reading": (
        "m.d.sync += [state.done.eq(0), state.ready.eq(0)]",
        "m.d.sync += state.ready.eq(0)",
        "done is set by the end and cleared by a read",
    ),
    "done cleared by any read": (
        "with m.If(reads(CONTROL)):",
        "with m.If(read):",
        "done is set by the end and cleared by a read",
    ),
    "a read wins over the end": (
        "state.done.eq(1), state.ready.eq(1)]",
        "state.done.eq(~reads(CONTROL)), state.ready.eq(1)]",
        "done is set by the end and cleared by a read",
    ),
    "start twice": (
        "launch.eq(state.started & ~state.running)",
        "launch.eq(state.started)",
        "start comes a cycle after its write acted, once",
    ),
    "start never falls": (
        "state.started.eq(state.restart),",
        "state.started.eq(1),",
        "start is up from its write to the end of the run",
    ),
    "a stray done ends a run": (
        "ended.eq(self.done & state.running)",
        "ended.eq(self.done)",
        "done is set by the end|start is up",
    ),
    "arguments not held": (
        "with m.If(follow):",
        "with m.If(follow | 1):",
        "arguments are constant from start to done",
    ),
    "arguments held after the end": (
        "*(follow.eq(1) for follow",
        "*(follow.eq(0) for follow",
        "what is given follows what is written while nothing runs",
    ),
    "arguments written late": (
        "enable.eq(Mux(writes(offset) & self._may_write(offset), strobes, 0))",
        "enable.eq(Mux(self.bus.bvalid & (state.write_word == offset // 4), strobes, 0))",
        "bytes are written a cycle after their write",
    ),
    "place of another word": (
        "place.eq(self.bus.araddr[2:])",
        "place.eq(self.bus.awaddr[2:])",
        "a place in a block is that of the word that is read",
    ),
    "interrupt without the global enable": (
        "self.interrupt.eq(state.enabled & state.status.any())",
        "self.interrupt.eq(state.status.any())",
        "interrupt is enable and any status",
    ),
    "interrupt of done only": (
        "self.interrupt.eq(state.enabled & state.status.any())",
        "self.interrupt.eq(state.enabled & state.status[0])",
        "interrupt is enable and any status",
    ),
    "status set whatever the enables": (
        "Mux(ended, state.enables, 0)",
        "Mux(ended, 3, 0)",
        "a status bit is set by its event and toggled by a write",
    ),
    "status cleared instead of toggled": (
        "(state.status ^ toggles)",
        "(state.status & ~toggles)",
        "a status bit is set by its event and toggled by a write",
    ),
    "a toggle wins over the event": (
        "(state.status ^ toggles) | Mux(ended, state.enables, 0)",
        "(state.status | Mux(ended, state.enables, 0)) ^ toggles",
        "a status bit is set by its event and toggled by a write",
    ),
    "high word of another moment": (
        "value[:32], state.high\n",
        "value[:32], value[32:]\n",
        "what is sampled is the register of its address",
    ),
    "high word kept at the wrong read": (
        "high_words[register.offset] =",
        "high_words[register.offset + 4] =",
        "the high word that comes is that of the low word's moment",
    ),
    "unmapped reads give what other addresses do": (
        "Mux(here, level[0], 0)",
        "level[0]",
        "else zero",
    ),
}


@pytest.mark.parametrize("bug", PROTOCOL_BUGS)
def test_seeded_protocol_bug_is_found(bug):
    old, new, words = PROTOCOL_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        bounded(ProtocolSpec(mutant(RegisterFile, old, new)), depth=8, solver="sat")


# The longest traces, of up to three writes and two ends; others find these rules broken as well.
SLOW = {
    "a toggle wins over the event",
    "done not cleared by reading",
    "done cleared by any read",
    "interrupt of done only",
    "start never falls",
    "status set whatever the enables",
}


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "bug", [pytest.param(bug, marks=[pytest.mark.soak] if bug in SLOW else []) for bug in REGISTER_BUGS]
)
def test_seeded_bug_is_found(bug):
    old, new, words = REGISTER_BUGS[bug]
    spec = CallSpec if bug == "arguments not held" else RegisterSpec
    with pytest.raises(PropertyFailure, match=words):
        bounded(spec(mutant(RegisterFile, old, new)), depth=10, reset="low", solver="sat")
