"""Issue and admission of the oblivious map: the bus is a function of public values; a page in flight is
forwarded from its newest place, and not before it is there.

Bounded: reduced to two operations in flight, four pages in flight and deadlines of 9 and 6 cycles. An
operation that is alone has 8 and 5. Within some 16 cycles a page is read, written and read again, or two
touches are admitted. Each control is proven by itself: the proven outputs of issue are assumptions of
admission. Whether an operation is alone follows from acceptance and admission, which are public.
"""

from __future__ import annotations

import pytest
from amaranth.hdl import Array, Cat, Elaboratable, Module, Mux, Signal

from hw.lib.delay import delay
from hw.oram.config import OramConfig
from hw.oram.core.touch.admit import Admit
from hw.oram.core.touch.credits import Credits
from hw.oram.core.touch.issue import Issue
from hw.oram.core.touch.scoreboard import Scoreboard
from tests.support.proofs.formal import PropertyFailure, bounded, check, constant, cover, free, reach, suppose
from tests.support.proofs.mutants import mutant


class Small(OramConfig):
    """A map too small for any engine."""

    accepted = 2
    command_records = 2
    response_records = 2
    read_pages = 2
    write_pages = 2
    scoreboard_pages = 4
    interval = 4
    item_cycles = 4
    operation_bits = 1
    record_index_bits = 2

    def __post_init__(self):
        pass


class Slower(Small):
    """The same with touches one cycle further apart than a lookup's latency."""

    interval = 5
    item_cycles = 5


CONFIG, SLOWER = (kind(key_bits=1, inflight=2, settle_cycles=5) for kind in (Small, Slower))
#: Operations whose labels are drawn in advance.
LABELS = 4
#: Cycles from a page's admission to its next: more than one touch takes.
FORWARD = 6


class Count:
    """Counts events, and assumes an upper limit."""

    def __init__(self, m, name, pulse, most):
        self.now = Signal(4, name=f"{name}_count")
        m.d.sync += self.now.eq(self.now + pulse)
        if most is not None:
            suppose(m, ~pulse | (self.now != most), f"{name}: nothing that was not asked for")


def apart(m, name, pulse, cycles):
    """Assume that pulses are at least ``cycles`` apart."""
    since = Signal(range(cycles), name=f"{name}_since", init=cycles - 1)
    m.d.sync += since.eq(Mux(pulse, 0, since + (since != cycles - 1)))
    suppose(m, ~pulse | (since == cycles - 1), f"{name}: {cycles} cycles apart")


def keeps_to_credits(m, part):
    """Check every count of ``part``."""
    for name, credits in vars(part).items():
        if isinstance(credits, Credits):
            check(m, ~credits.take | credits.some, f"{name}: no underflow")
            over = credits.give & ~credits.take & (credits.count == credits.limit)
            check(m, ~over, f"{name}: never beyond its limit")


def draw(m):
    """Return arbitrary labels, equal in all copies."""
    valids = [Signal(name=f"page_valid_{n}") for n in range(LABELS)]
    pages = [Signal(2, name=f"page_{n}") for n in range(LABELS)]
    constant(m, *valids, *pages)
    return Array(valids), Array(pages)


def operations(m, dut, name, accepted, labels):
    """Return operations at any time after their acceptance: labels by their number, other fields free."""
    operation = dut.operation.payload
    free(
        m,
        operation.operation,
        operation.code,
        operation.key,
        operation.status,
        operation.keep,
        operation.age,
        operation.fresh,
    )
    free(m, dut.operation.valid, dut.record.ready, dut.fresh.ready)
    given = Count(m, f"{name}_given", dut.operation.valid, accepted.now)
    own, valid = Signal(2, name=f"{name}_record"), Signal(name=f"{name}_record_valid")
    free(m, own, valid)
    page_valid, page = labels[0][given.now[:2]], labels[1][given.now[:2]]
    m.d.comb += [
        operation.page_valid.eq(page_valid),
        operation.page[0].eq(page),
        operation.record_valid.eq(page_valid | valid),
        operation.record[0].eq(Mux(page_valid, page, own)),
    ]


class IssueSpec(Elaboratable):
    """Issue control once or twice; inputs from the host and from admission are free, and equal for both."""

    def __init__(self, gate=Issue, *, copies=1, config=CONFIG, later=1):
        self.config = config
        self.gates = [gate(config, deadline=8 + later, idle_deadline=8) for _ in range(copies)]

    def elaborate(self, platform):
        m = Module()
        dut = self.gates[0]
        pulses = [Signal(name=name) for name in ("accepted", "alone", "turned", "released", "halt")]
        free(m, *pulses)
        accepted, alone, turned, released, _ = pulses
        apart(m, "accepted", accepted, self.config.interval)
        ops = Count(m, "accepted", accepted, None)
        issued, asked = Count(m, "issued", dut.touch.valid, None), Count(m, "asked", dut.page.valid, None)
        turns = Count(m, "turned", turned, issued.now)
        suppose(m, ~alone | (accepted & (ops.now == turns.now)), "alone: all earlier ones were admitted")
        written = Count(m, "released", released, asked.now)
        suppose(m, ~accepted | ((ops.now - issued.now)[:4] < CONFIG.accepted), "places for operations")
        labels = draw(m)
        for n, gate in enumerate(self.gates):
            m.submodules[f"gate_{n}"] = gate
            operations(m, gate, f"gate_{n}", ops, labels)
            for pulse in pulses:
                late = gate.late if pulse.name == "halt" else 0  # as in `Touch`
                m.d.comb += getattr(gate, pulse.name).eq(pulse | late)
            before = Signal(name=f"late_before_{n}")
            m.d.sync += before.eq(gate.late)
            with m.If(before):
                check(m, ~gate.touch.valid & ~gate.page.valid, "nothing is issued after a fault")
        if len(self.gates) == 2:
            a, b = self.gates
            with m.If(~a.late & ~b.late):
                check(m, self._bus(a) == self._bus(b), "the bus shows the same")
                reach(m, a.touch.valid & (a.touch.payload.status != b.touch.payload.status), "other values")
                reach(m, a.touch.valid & (a.touch.payload.keep != b.touch.payload.keep), "one is kept")
            reach(m, a.late & ~b.late, "one is late")
            return m

        keeps_to_credits(m, dut)
        check(m, ~dut.operation.valid | dut.operation.ready, "operations: there is a place")
        check(m, ~dut.timer.o | ~dut.idle_timer.o, "operations are due one by one")
        own = Array(Signal(name=f"alone_{n}") for n in range(16))
        with m.If(accepted):
            m.d.sync += own[ops.now].eq(alone)
        with m.If(dut.touch.valid):
            check(m, dut.touch_alone == own[issued.now], "a touch is alone with its operation")
        reach(m, dut.touch.valid & dut.touch_alone, "an operation is alone")
        reach(m, dut.touch.valid & ~dut.touch_alone & dut.scoreboard.room, "another one is not")
        # Any page, from its newest read to the end of that write; pages end in the order of reads.
        page, under, ahead = Signal(2, name="followed"), Signal(name="under"), Signal(4, name="ahead")
        newest, touch = Signal(4, name="newest"), dut.touch.payload
        constant(m, page)
        read = dut.page.valid & (dut.page.payload == page)
        seen = delay(m, "seen", under, Scoreboard.LATENCY)
        ago = (asked.now - newest)[:4]
        with m.If(read):
            check(m, touch.forward == seen, "a page in flight is forwarded, and no other")
            with m.If(seen):
                check(m, touch.place == newest[:2], "a page is forwarded from its newest place")
                check(m, ago <= self.config.scoreboard_pages, "the place is not taken by a later page")
                check(m, (touch.near == ago) | (ago == self.config.scoreboard_pages), "pages are counted")
            m.d.sync += [
                under.eq(1),
                ahead.eq((asked.now - written.now)[:4] - released),
                newest.eq(asked.now),
            ]
        with m.Elif(under & released):
            m.d.sync += [under.eq(ahead != 0), ahead.eq(ahead - 1)]
        before = Signal(name="read_before")
        m.d.sync += before.eq(before | read)
        reach(m, read & seen, "a page is forwarded")
        reach(m, read & before & ~seen, "a page is read again")
        return m

    def _bus(self, gate):
        page, touch = gate.page, gate.touch
        fields = touch.payload.forward, touch.payload.near  # they decide later times
        return Cat(
            page.valid,
            touch.valid,
            Mux(page.valid, Cat(page.payload, touch.payload.place), 0),
            Mux(touch.valid, Cat(fields, gate.touch_alone), 0),
        )


class AdmitSpec(Elaboratable):
    """Admission control once or twice: touches arrive at public times."""

    def __init__(self, gate=Admit, *, copies=1, config=CONFIG, later=1):
        self.config = config
        self.gates = [
            gate(config, deadline=5 + later, idle_deadline=5, forward_cycles=FORWARD) for _ in range(copies)
        ]

    def elaborate(self, platform):
        m = Module()
        dut = self.gates[0]
        names = ("page_arrived", "page_left", "response_written", "halt", "alone", "arrives", "page_valid")
        pulses = [Signal(name=name) for name in names]
        free(m, *pulses)
        near = Signal(2, name="near")  # public: pages in flight
        free(m, near)
        there, left, written, _, alone, arrives, page_valid = pulses
        apart(m, "arrives", arrives, self.config.item_cycles)
        turn = dut.turn.valid
        touches, turns = Count(m, "arrives", arrives, None), Count(m, "turns", turn, None)
        suppose(m, ~arrives | ((touches.now - turns.now)[:4] < CONFIG.inflight), "places for touches")
        idle, alike = Signal(name="idle"), Signal(name="alike", init=1)  # all in flight are alone
        m.d.comb += idle.eq(touches.now == turns.now)
        suppose(m, ~alone | (arrives & (idle | alike)), "alone: all earlier ones were admitted")
        with m.If(arrives):
            m.d.sync += alike.eq(alone)
        asked = Count(m, "asked", arrives & page_valid, None)
        paged = Count(m, "paged", turn & dut.turn.payload.page_valid, None)
        Count(m, "arrived", there, asked.now)
        Count(m, "left", left, paged.now)
        Count(m, "written", written, turns.now)
        for n, gate in enumerate(self.gates):
            m.submodules[f"gate_{n}"] = gate
            for pulse in pulses[:5]:
                late = gate.late if pulse.name == "halt" else 0  # as in `Touch`
                m.d.comb += getattr(gate, pulse.name).eq(pulse | late)
            touch = gate.touch.payload
            m.d.comb += [
                gate.page.valid.eq(1),
                gate.touch.valid.eq(arrives),
                touch.page_valid.eq(page_valid),
                touch.near.eq(near),
                touch.first.eq(1),
                touch.last.eq(1),
            ]
            hidden = Signal(name=f"hidden_{n}")
            free(m, touch.keep, touch.status, touch.age, touch.record, hidden)
            m.d.comb += touch.record_valid.eq(page_valid | hidden)
            for pulse, wanted in (
                (gate.keystream_arrived, page_valid),
                (gate.record_arrived, touch.record_valid),
                (gate.fresh_arrived, touch.keep),
            ):
                free(m, pulse)
                name = f"{pulse.name}_{n}"
                Count(m, name, pulse, Count(m, f"{name}_asked", arrives & wanted, None).now)
            before = Signal(name=f"late_before_{n}")
            m.d.sync += before.eq(gate.late)
            with m.If(before):
                check(m, ~gate.turn.valid, "nothing has its turn after a fault")
        if len(self.gates) == 2:
            a, b = self.gates
            with m.If(~a.late & ~b.late):
                check(m, self._bus(a) == self._bus(b), "the bus shows the same")
                reach(m, a.turn.valid & (a.turn.payload.keep != b.turn.payload.keep), "one is kept")
            reach(m, a.late & ~b.late, "one is late")
            return m
        keeps_to_credits(m, dut)
        check(m, ~dut.touches.i.valid | dut.touches.i.ready, "touches: there is a place")
        check(m, ~dut.timer.o | ~dut.idle_timer.o, "touches are due one by one")
        with m.If(turn & dut.turn.payload.page_valid):
            check(m, paged.now < asked.now, "a page has its turn after its read")
        # Cycles since the last page, and since the one before.
        ages = [Signal(range(FORWARD + 1), name=f"age_{n}", init=FORWARD) for n in range(2)]
        with m.If(turn & dut.turn.payload.page_valid):
            for n, age in enumerate(ages, 1):
                composed = (dut.turn.payload.near != n) | (age == FORWARD)
                check(m, composed, "a page is composed before it is forwarded")
        older = 1
        for age in ages:
            grown = Mux(age == FORWARD, FORWARD, age + 1)
            m.d.sync += age.eq(Mux(turn & dut.turn.payload.page_valid, older, grown))
            older = grown
        reach(m, turns.now == 2, "two have their turn")
        return m

    def _bus(self, gate):
        return Cat(gate.turn.valid, gate.turn.valid & gate.turn.payload.page_valid, gate.beat.valid)


#: Proven cycles of each.
DEPTHS = {IssueSpec: 19, AdmitSpec: 15}


@pytest.mark.parametrize("spec", DEPTHS)
def test_pages_credits_and_places(spec):
    bounded(spec(), depth=DEPTHS[spec], reset="low", seconds=600)


@pytest.mark.parametrize("config", [CONFIG, SLOWER], ids=lambda config: f"{config.item_cycles}")
@pytest.mark.parametrize("spec", DEPTHS)
def test_two_copies_with_other_secrets_show_the_same(spec, config):
    bounded(spec(copies=2, config=config), depth=DEPTHS[spec], reset="low", seconds=600)


@pytest.mark.parametrize("spec", DEPTHS)
def test_all_of_it_comes_up(spec):
    for copies in (1, 2):
        cover(spec(copies=copies), depth=DEPTHS[spec], seconds=600)


LEAKS = {
    "waits for the operation": (Issue, "self.late.eq(1)", "self.late.eq(0)"),
    "looks at a page when it comes": (
        Issue,
        'delay(m, "lookup", load, Scoreboard.LATENCY)',
        'delay(m, "lookup", load, 1) & operations.o.valid | delay(m, "later", load, Scoreboard.LATENCY)',
    ),
    "waits for a fresh record's place": (Issue, "& scoreboard.room", "& (heads.empty | ~slot.keep)"),
    "skips the page of a miss": (
        Issue,
        "issued & slot.page_valid),\n            self.page",
        "issued & slot.keep),\n            self.page",
    ),
    "compares another record": (Issue, "Mux(slot.page_valid, scoreboard.near, 0)", "scoreboard.near"),
    "what is kept delays the next": (Issue, "self.LOOKUP - 1),", "self.LOOKUP - 1 + slot.keep),"),
    "an operation that keeps its item is not alone": (
        Issue,
        "self.touch_alone.eq(alone)",
        "self.touch_alone.eq(alone & ~slot.keep)",
    ),
    "waits for the keystream": (Admit, "self.late.eq(1)", "self.late.eq(0)"),
    "waits for the record": (
        Admit,
        "& self.writes.some",
        "& self.writes.some & (self.records.some | ~touch.record_valid)",
    ),
    "a hit takes longer": (
        Admit,
        "wait.eq(config.item_cycles - 1)",
        "wait.eq(config.item_cycles - 1 + touch.keep)",
    ),
}


#: The longest; others break the same proofs.
LONG = {"waits for a fresh record's place", "what is kept delays the next"}


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "leak", [pytest.param(leak, marks=[pytest.mark.soak] if leak in LONG else []) for leak in LEAKS]
)
def test_a_leak_breaks_the_proof(leak):
    gate, old, new = LEAKS[leak]
    spec = IssueSpec if gate is Issue else AdmitSpec
    with pytest.raises(PropertyFailure, match="the bus shows the same"):
        bounded(
            spec(mutant(gate, old, new), copies=2, config=SLOWER),
            depth=DEPTHS[spec],
            reset="low",
            seconds=600,
            solver="sat",
        )


BUGS = {
    "alone for too long": (Issue, "m.Elif(issued & slot.last)", "m.Elif(0)", "alone with its operation"),
    "nothing is forwarded": (Issue, "scoreboard.found &", "0 &", "in flight is forwarded"),
    "looked at too early": (
        Issue,
        "load, Scoreboard.LATENCY)",
        "load, Scoreboard.LATENCY - 1)",
        "pages are counted",
    ),
    "an older place": (Scoreboard, " | self.insert & equal[n]", "", "newest place|counted"),
    "another place": (Scoreboard, "encode(equal)", "encode(equal.rotate_left(1))", "newest place"),
    "pages in between are not counted": (Scoreboard, "number - self.place", "1", "pages are counted"),
    "not yet composed": (Admit, "timely & clear & public", "timely & public", "composed before"),
    "composed a cycle later": (Admit, "_cycles - 2)", "_cycles - 3)", "composed before"),
    "no credit": (Issue, "& (turns.some | ~slot.first)", "", "turns: no underflow"),
    "no room": (Admit, "& self.writes.some", "", "writes: no underflow"),
    "page not awaited": (Admit, "(self.pages.some | ~paged) & ", "", "pages: no underflow"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_is_found(bug, monkeypatch):
    part, old, new, words = BUGS[bug]
    spec = AdmitSpec if part is Admit else IssueSpec
    gate = mutant(part, old, new)
    if part is Scoreboard:
        monkeypatch.setattr("hw.oram.core.touch.issue.Scoreboard", gate)
        gate = Issue
    with pytest.raises(PropertyFailure, match=words):
        bounded(spec(gate, later=0), depth=22, reset="low", seconds=600, solver="sat")
