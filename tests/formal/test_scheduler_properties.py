"""Bank arbiter and rings with the gates at their ends, for all time."""

from __future__ import annotations

import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Signal
from amaranth.lib.wiring import connect

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.address_generator import AddressGenerator
from hw.scheduler.core.bank_arbiter import BankArbiter
from hw.scheduler.core.gate import ReadGate, WriteGate
from hw.scheduler.core.ring import Ring
from tests.formal.stream_properties import free_input
from tests.support.proofs.formal import PropertyFailure, check, constant, cover, free, prove, reach, suppose
from tests.support.proofs.mutants import mutant


class BankArbiterSpec(Elaboratable):
    """A bank between free users; ``who`` is any one input."""

    def __init__(self, cls=BankArbiter, *, inputs=3):
        self.inputs = inputs
        self.dut = cls(2, inputs=inputs)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        for index, port in enumerate(dut.i):
            free_input(m, port, f"i{index}")
        requests = Signal(self.inputs, name="requests")
        grants = Signal(self.inputs, name="grants")
        m.d.comb += [
            requests.eq(Cat(port.valid for port in dut.i)),
            grants.eq(Cat(port.valid & port.ready for port in dut.i)),
        ]
        check(m, (grants & (grants - 1)) == 0, "at most one input is granted")
        check(m, Cat(port.ready for port in dut.i) == grants, "ready is the grant")
        with m.If(requests.any()):
            check(m, grants.any(), "somebody is granted when somebody asks")

        was_granted = Signal(name="was_granted")
        payload = Signal(2, name="granted_payload")
        m.d.sync += was_granted.eq(grants.any())
        for index, port in enumerate(dut.i):
            with m.If(grants[index]):
                m.d.sync += payload.eq(port.payload)
        check(m, dut.valid == was_granted, "what was granted comes a cycle later, and nothing else")
        with m.If(dut.valid):
            check(m, dut.payload == payload, "the payload is the granted one's")

        # Any pair: how often `other` goes first while `who` waits, and who of two that came together.
        who, other = Signal(range(self.inputs), name="who"), Signal(range(self.inputs), name="other")
        constant(m, who, other)
        suppose(m, (who < self.inputs) & (other < self.inputs) & (who != other), "two inputs")
        waiting, passed = Signal(name="waiting"), Signal(range(4), name="passed")
        m.d.comb += waiting.eq(requests.bit_select(who, 1) & ~grants.bit_select(who, 1))
        with m.If(~waiting):
            m.d.sync += passed.eq(0)
        with m.Elif(grants.bit_select(other, 1) & (passed != 3)):
            m.d.sync += passed.eq(passed + 1)
        check(m, passed <= 2, "who waits lets nobody pass more than twice")
        reach(m, passed == 2, "somebody passes twice")

        before = Signal(self.inputs, name="requests_before")
        m.d.sync += before.eq(requests & ~grants)
        came = requests & ~before
        together = came.bit_select(who, 1) & came.bit_select(other, 1)
        with m.If(together & (who < other)):
            check(m, ~grants.bit_select(other, 1), "the lower of two that come together goes first")
        return m


@pytest.mark.parametrize("inputs", [2, 3, pytest.param(4, marks=pytest.mark.soak)])
def test_bank_arbiter(inputs):
    prove(BankArbiterSpec(inputs=inputs), depth=3)
    if inputs > 2:
        cover(BankArbiterSpec(inputs=inputs), depth=10)


ARBITER_BUGS = {
    "no rounds": ("m.d.sync += [left.eq(now & ~grant),", "m.d.sync += [left.eq(0),", "more than twice"),
    "two at once": ("grant.eq(lowest(now))", "grant.eq(now)", "at most one"),
    "highest first": (
        "grant.eq(lowest(now))",
        "grant.eq(Mux(now[-1], 1 << (inputs - 1), lowest(now)))",
        "goes first",
    ),
    "rounds without end": ("left.eq(now & ~grant)", "left.eq(requests & ~grant)", "more than twice"),
    "payload of another": (
        "zip(self.i, grant, strict=True)",
        "zip(self.i, reversed(grant), strict=True)",
        "payload is the granted",
    ),
}


@pytest.mark.parametrize("bug", ARBITER_BUGS)
def test_seeded_bug_in_the_bank_arbiter_is_found(bug):
    old, new, words = ARBITER_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(BankArbiterSpec(mutant(BankArbiter, old, new)), depth=3)


def ring_config(size):
    """Return a configuration with pieces of up to ``size`` words, in a scratchpad of eight."""
    return SchedulerConfig(
        scratchpad_bytes=32, word_bytes=4, banks=2, cores=1, max_operator_bytes=4 * size, max_region_bytes=32
    )


class RingSpec(Elaboratable):
    """A piece passes through a ring at any pace of both ends: no place is filled before its time.

    Any one word ``k`` of the piece is followed: between its writing and its release nothing else is written
    where it lies, and it is read where it was written, after it was written.
    """

    WORDS, RING = 5, 3

    def __init__(self, ring=Ring, walker=AddressGenerator, *, window=False):
        self.window = window
        config = ring_config(7)
        self.ring = ring(config.size_bits)
        self.source, self.sink = walker(config, 1), walker(config, 1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring, m.submodules.source, m.submodules.sink = self.ring, self.source, self.sink
        words, size, address, k = (Signal(3, name=name) for name in ("words", "size", "address", "k"))
        constant(m, words, size, address, k)
        suppose(m, (words != 0) & (size != 0) & (k < words), "a piece and a ring of at least a word")
        suppose(m, (words <= self.WORDS) & (size <= self.RING) & (address <= 1), "small ones")

        ready = {}
        for name, walker in (("source", self.source), ("sink", self.sink)):
            begun, wants = Signal(name=f"{name}_begun"), Signal(name=f"{name}_wants")
            free(m, wants)
            m.d.comb += [
                walker.i.valid.eq(~begun),
                walker.i.payload.address.eq(address),
                walker.i.payload.words.eq(words),
                walker.i.payload.ring.eq(size),
            ]
            m.d.sync += begun.eq(begun | walker.i.ready)
            ready[name] = walker.o.valid & wants
        written = ready["source"] & (self.ring.writer.level < size)
        acquired = ready["sink"] & self.ring.reader.available
        m.d.comb += [
            self.source.o.ready.eq(written),
            self.sink.o.ready.eq(acquired),
            self.ring.writer.written.eq(written),
            self.ring.reader.acquired.eq(acquired),
        ]
        made, taken, freed = (Signal(4, name=name) for name in ("made", "taken", "freed"))
        released = Signal(name="released")
        if self.window:
            free(m, released)
            suppose(m, ~released | (freed < taken) | acquired, "only what was acquired is released")
        else:
            m.d.comb += released.eq(acquired)
        m.d.comb += self.ring.reader.released.eq(released)
        m.d.sync += [made.eq(made + written), taken.eq(taken + acquired), freed.eq(freed + released)]

        check(m, self.ring.writer.level == made - freed, "level is what is written and not released")
        check(m, self.ring.reader.available == (made != taken), "available is what is written, not acquired")
        check(m, made - freed <= size, "never more in the ring than it holds")
        check(
            m, (freed <= taken) & (taken <= made) & (made <= words), "written, then acquired, then released"
        )
        place = Signal(3, name="place")
        with m.If(written & (made == k)):
            m.d.sync += place.eq(self.source.o.payload.address)
        with m.If(written & (made > k) & (freed <= k)):
            check(m, self.source.o.payload.address != place, "what is not released is not overwritten")
        with m.If(acquired & (taken == k)):
            check(m, self.sink.o.payload.address == place, "a word is read where it was written")
        with m.If(written):
            at = self.source.o.payload.address
            check(m, (at >= address) & (at < address + size), "a ring stays within itself")
            check(m, self.source.o.payload.last == (made == words - 1), "the last word is marked")
        reach(m, (freed == words) & (words > size + 1) & (k == size), "a piece longer than its ring passes")
        reach(m, (made - freed == size) & (size == self.RING), "the ring fills up")
        return m


@pytest.mark.parametrize("window", [False, True])
def test_ring(window):
    prove(RingSpec(window=window), depth=2, reset="low")
    cover(RingSpec(window=window), depth=14)


RING_BUGS = {
    "available too long": (
        "available.eq(ready != 1)",
        "available.eq(1)",
        "available is",
    ),
    "released when acquired": (
        "written - self.reader.released",
        "written - acquired",
        "level is",
    ),
}
WALKER_BUGS = {
    "ring too long": ("wraps.eq(piece.ring == 1)", "wraps.eq(0)", "stays within itself|overwritten"),
    "ring too long from the second time on": (
        "turn.eq(place.ring - 1)",
        "turn.eq(place.ring)",
        "stays within itself|overwritten",
    ),
    "last too early": ("place.last.eq(left == 1)", "place.last.eq(left <= 2)", "last word is marked"),
    "ring never ends": ("wraps.eq(turn == 1)", "wraps.eq(0)", "stays within"),
}


class GateSpec(Elaboratable):
    """The gates at both ends of a ring, words of any ring's size, banks that grant at any time."""

    def __init__(self, write=WriteGate, read=ReadGate):
        config = ring_config(3)
        self.ring = Ring(config.size_bits)
        self.write, self.read = write(config, rings=1), read(config, rings=1)

    def elaborate(self, platform):
        m = Module()
        m.submodules.ring, m.submodules.write, m.submodules.read = self.ring, self.write, self.read
        place, released = self.write.i.payload.place, Signal(name="released")
        free_input(m, self.write.i, "fills")
        free_input(m, self.read.i, "fetches")
        suppose(m, (place.ring != 0) | ~place.tag[0], "a ring of at least a word")
        for request, name in ((self.write.write, "write_granted"), (self.read.request, "read_granted")):
            grants = Signal(name=name)
            free(m, grants)
            m.d.comb += request.ready.eq(request.valid & grants)
        writer, reader = self.ring.writer, self.ring.reader
        connect(m, self.write.rings[0], writer)
        free(m, released)
        m.d.comb += [
            self.read.rings[0].available.eq(reader.available),
            reader.acquired.eq(self.read.rings[0].acquired),
            reader.released.eq(released),
        ]
        held = Signal(2, name="acquired_not_released")
        m.d.sync += held.eq(held + reader.acquired - released)
        suppose(m, ~released | (held != 0) | reader.acquired, "only what was acquired is released")
        size = Signal(2, name="size")  # of the ring of the word that asks its bank
        m.d.comb += size.eq(self.write.word.place.ring)
        with m.If(writer.written):
            check(m, writer.level < size, "a word is written while its ring has room")
        with m.If(reader.acquired):
            check(m, reader.available, "a word is acquired when it is there")
        check(m, held <= writer.level, "what is acquired was written")
        with m.If(self.write.starved):
            check(m, ~self.write.empty & ~self.write.granted, "who starves has a word, and is not granted")
        reach(m, writer.written & (writer.level == 2), "the last place of a ring is used")
        return m


def test_gates():
    prove(GateSpec(), depth=3, reset="low")
    cover(GateSpec(), depth=10)


GATE_BUGS = {
    "a ring too full": ("write", WriteGate, "+ written < place.ring", "+ written <= place.ring", "has room"),
    "the word just granted forgotten": (
        "write",
        WriteGate,
        "Mux(self.granted, fits(following, 1), waiting)",
        "Mux(self.granted, fits(following, 0), waiting)",
        "has room",
    ),
    "a word is not waited for": (
        "read",
        ReadGate,
        "ahead.o.valid & available",
        "ahead.o.valid",
        "when it is there",
    ),
}


@pytest.mark.parametrize("bug", GATE_BUGS)
def test_seeded_bug_in_a_gate_is_found(bug):
    side, original, old, new, words = GATE_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(GateSpec(**{side: mutant(original, old, new)}), depth=10, reset="low", pdr=False)


@pytest.mark.parametrize("bug", RING_BUGS)
def test_seeded_bug_in_ring_is_found(bug):
    old, new, words = RING_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(RingSpec(ring=mutant(Ring, old, new), window=True), depth=12, reset="low", pdr=False)


@pytest.mark.parametrize("bug", WALKER_BUGS)
def test_seeded_bug_in_walker_is_found(bug):
    old, new, words = WALKER_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(RingSpec(walker=mutant(AddressGenerator, old, new)), depth=12, reset="low", pdr=False)
