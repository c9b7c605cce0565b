"""Bank arbiter, rings, tables and the sequencer, for all time."""

from __future__ import annotations

import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.bank_arbiter import BankArbiter
from hw.scheduler.core.ring import Ring
from hw.scheduler.core.sequencer import Phase, Sequencer
from hw.scheduler.core.walker import Walker
from hw.scheduler.program.image import Path
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
    "two at once": ("grant.eq(now & -now)", "grant.eq(now)", "at most one"),
    "highest first": (
        "grant.eq(now & -now)",
        "grant.eq(Mux(now[-1], 1 << (inputs - 1), now & -now))",
        "goes first",
    ),
    "rounds without end": ("left.eq(now & ~grant)", "left.eq(requests & ~grant)", "more than twice"),
    "payload of another": (
        "Value.cast(self.payload).eq(Value.cast(port.payload))",
        "Value.cast(self.payload).eq(Value.cast(self.i[0].payload))",
        "payload is the granted",
    ),
}


@pytest.mark.parametrize("bug", ARBITER_BUGS)
def test_seeded_bug_in_the_bank_arbiter_is_found(bug):
    old, new, words = ARBITER_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(BankArbiterSpec(mutant(BankArbiter, old, new)), depth=3)


def ring_config(size):
    """Give a configuration with pieces of up to ``size`` words, in a scratchpad of eight."""
    return SchedulerConfig(
        scratchpad_bytes=32, word_bytes=4, banks=2, cores=1, max_operator_bytes=4 * size, max_region_bytes=32
    )


class RingSpec(Elaboratable):
    """A piece passes through a ring at any pace of both ends: no place is filled before its time.

    Any one word ``k`` of the piece is followed: between its writing and its release nothing else is written
    where it lies, and it is read where it was written, after it was written.
    """

    WORDS, RING = 5, 3

    def __init__(self, ring=Ring, walker=Walker, *, window=False):
        self.window = window
        config = ring_config(7)
        self.ring = ring(config.size_bits)
        self.source, self.sink = walker(config, Path), walker(config, Path)

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
        "available.eq(ready != 0)",
        "available.eq(self.writer.level != 0)",
        "available is",
    ),
    "released when acquired": (
        "self.writer.written - self.reader.released",
        "self.writer.written - self.reader.acquired",
        "level is",
    ),
}
WALKER_BUGS = {
    "ring too long": ("turn.eq(piece.ring - 1)", "turn.eq(piece.ring)", "stays within itself|overwritten"),
    "ring too long from the second time on": (
        "turn.eq(place.ring - 1)",
        "turn.eq(place.ring)",
        "stays within itself|overwritten",
    ),
    "last too early": ("place.last.eq(left == 0)", "place.last.eq(left <= 1)", "last word is marked"),
    "ring never ends": ("(place.ring != 0) & (turn == 0)", "(place.ring == 0) & (turn == 0)", "stays within"),
}


@pytest.mark.parametrize("bug", RING_BUGS)
def test_seeded_bug_in_ring_is_found(bug):
    old, new, words = RING_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(RingSpec(ring=mutant(Ring, old, new), window=True), depth=12, reset="low", pdr=False)


@pytest.mark.parametrize("bug", WALKER_BUGS)
def test_seeded_bug_in_walker_is_found(bug):
    old, new, words = WALKER_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(RingSpec(walker=mutant(Walker, old, new)), depth=12, reset="low", pdr=False)


#: Three steps on two cores with two transfers each way; only the widths count.
SEQUENCER_SHAPE = SchedulerConfig(
    scratchpad_bytes=32,
    word_bytes=4,
    banks=2,
    cores=2,
    max_steps=3,
    max_transfers=2,
    max_operator_bytes=4,
    max_region_bytes=32,
)


class SequencerSpec(Elaboratable):
    """Any rows, any core times, transfers that complete at any time: the four phases hold."""

    TRANSFERS = 2

    def __init__(self, cls=Sequencer):
        self.dut = cls(SEQUENCER_SHAPE)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        step = dut.steps.payload
        free_input(m, dut.steps, "steps")
        free(m, dut.start)
        idle = dut.phase == Phase.IDLE
        suppose(m, ~dut.start | idle, "no start before done")
        suppose(m, step.active.any(), "some core takes part")

        # Transfers complete one after the other, and begin anew with a start.
        for name, count, total, wait in (
            ("reads", dut.reads_completed, dut.reads_total, step.wait_reads),
            ("writes", dut.writes_completed, dut.writes_total, step.wait_writes),
        ):
            more, completed = Signal(name=f"{name}_more"), Signal(2, name=f"{name}_completed")
            free(m, more)
            m.d.comb += [count.eq(completed), total.eq(self.TRANSFERS)]
            m.d.sync += completed.eq(Mux(dut.start, 0, completed + (more & (completed != self.TRANSFERS))))
            check(m, completed <= self.TRANSFERS, f"{name} are counted")
            suppose(m, wait <= self.TRANSFERS, f"no step waits for more {name} than there are")

        commanded, finished = Signal(2, name="commanded"), Signal(2, name="finished")
        popped = dut.steps.valid & dut.steps.ready
        for core in range(2):
            command = dut.commands[core]
            row = dut.rows[core]
            free_input(m, row, f"rows_{core}")
            free(m, command.ready)
            given = command.valid & command.ready
            ends = Signal(name=f"ends_{core}")
            free(m, ends)
            m.d.comb += dut.cores_done[core].eq(ends & commanded[core] & ~finished[core])
            with m.If(popped | dut.start):
                m.d.sync += [commanded[core].eq(0), finished[core].eq(0)]
            with m.Else():
                m.d.sync += [
                    commanded[core].eq(commanded[core] | given),
                    finished[core].eq(finished[core] | dut.cores_done[core]),
                ]
            with m.If(command.valid):
                check(m, step.active[core], "only cores of the step are commanded")
                check(m, ~commanded[core], "each once a step")
                check(m, dut.reads_completed >= step.wait_reads, "the reads it needs are complete")
                check(m, dut.writes_completed >= step.wait_writes, "the writes its slot needs are complete")
                check(m, dut.begun == (dut.computed + 1)[:2], "its slot has begun")
                check(m, command.payload == row.payload, "with its own row")
            check(m, (row.valid & row.ready) == given, "a row is taken with its command")

        # Counts, compared over a cycle.
        begun, computed, started = (Signal(2, name=name) for name in ("begun", "computed", "launched"))
        was = Signal(name="was_popped")
        slot = Signal(name="slot_could_begin")
        m.d.sync += [
            begun.eq(dut.begun),
            computed.eq(dut.computed),
            started.eq(dut.start),
            was.eq(popped),
            slot.eq((dut.writes_completed >= step.wait_writes) & dut.steps.valid),
        ]
        ahead = (dut.begun - dut.computed)[:2]
        check(m, ahead <= 1, "at most one slot is open")
        with m.If(started == 0):
            check(m, (dut.begun == begun) | (dut.begun == (begun + 1)[:2]), "slots begin one by one")
            check(m, (dut.begun == begun) | slot, "a slot begins when its writes are complete")
            check(m, dut.computed == (computed + was)[:2], "a step is computed when its row is taken")
        with m.Else():
            check(m, (dut.begun == 0) & (dut.computed == 0), "a launch counts from nought")
        with m.If(popped):
            check(m, (finished | dut.cores_done) == step.active, "a step ends when all its cores are done")
        with m.If(dut.done):
            check(m, dut.reads_completed == self.TRANSFERS, "done after all reads")
            check(m, dut.writes_completed == self.TRANSFERS, "done after all writes")
            check(m, ahead == 0, "done after all steps")

        # Nothing that can go on waits: a phase lasts while what it waits for is missing.
        stuck = Signal(name="could_go_on")
        phase = Signal.like(dut.phase, name="phase_before")
        all_done = (commanded == step.active) & (finished == step.active)
        m.d.comb += stuck.eq(
            ((dut.phase == Phase.SLOT) & dut.steps.valid & (dut.writes_completed >= step.wait_writes))
            | ((dut.phase == Phase.READS) & (dut.reads_completed >= step.wait_reads))
            | ((dut.phase == Phase.COMPUTE) & all_done)
        )
        could = Signal(name="could")
        m.d.sync += [phase.eq(dut.phase), could.eq(stuck)]
        with m.If(could):
            check(m, dut.phase != phase, "what need not wait does not")
        reach(m, dut.done & (dut.computed == 2), "a launch of two steps is done")
        return m


def test_sequencer():
    prove(SequencerSpec(), depth=2)
    cover(SequencerSpec(), depth=14)


SEQUENCER_BUGS = {
    "reads not waited for": (
        "self.ready.eq(self.reads_completed >= step.wait_reads)",
        "self.ready.eq(1)",
        "reads it needs",
    ),
    "one read too few": (
        "self.ready.eq(self.reads_completed >= step.wait_reads)",
        "self.ready.eq(self.reads_completed + 1 >= step.wait_reads)",
        "reads it needs",
    ),
    "one write too few": (
        "self.ready.eq(self.writes_completed >= step.wait_writes)",
        "self.ready.eq(self.writes_completed + 1 >= step.wait_writes)",
        "writes",
    ),
    "a write too many": (
        "self.ready.eq(self.writes_completed >= step.wait_writes)",
        "self.ready.eq(self.writes_completed > step.wait_writes)",
        "what need not wait",
    ),
    "first core ends the step": (
        "with m.If((awaited & ~self.cores_done) == 0):",
        "with m.If((awaited & ~self.cores_done) != awaited):",
        "all its cores|does not",
    ),
    "command kept": ("asked.eq(asked & ~accepted)", "asked.eq(asked)", "each once a step"),
    "slot open twice": (
        "self.computed.eq(self.computed + 1)",
        "self.computed.eq(self.computed)",
        "at most one slot|row is taken",
    ),
    "done too early": (
        "& (self.writes_completed == self.writes_total)",
        "",
        "done after all writes",
    ),
}


@pytest.mark.parametrize("bug", SEQUENCER_BUGS)
def test_seeded_bug_in_sequencer_is_found(bug):
    old, new, words = SEQUENCER_BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(SequencerSpec(mutant(Sequencer, old, new)), depth=14, pdr=False)
