"""The network kernel's sequencer, for all time."""

from __future__ import annotations

import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value

from hw.network.commands import Core
from hw.network.config import NetworkConfig
from hw.network.kernel import command_sequencer
from hw.network.kernel.command_sequencer import CommandSequencer
from hw.network.kernel.count_gate import CountGate
from tests.formal.stream_properties import stream_rule
from tests.support.proofs.formal import PropertyFailure, check, constant, cover, free, prove, reach, suppose
from tests.support.proofs.mutants import mutant

#: Up to three commands, and transfers; only these widths count.
CONFIG = NetworkConfig(max_steps=3, max_transfers=3)


class SequencerSpec(Elaboratable):
    """Any rows, commands that end at any time, transfers that complete at any time."""

    def __init__(self, cls=CommandSequencer):
        self.dut = cls(CONFIG)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        free(m, dut.start)
        active = Signal(name="active")
        suppose(m, ~dut.start | ~active, "no start before done")
        with m.If(dut.start):
            m.d.sync += active.eq(1)
        with m.Elif(dut.done):
            m.d.sync += active.eq(0)
        free(m, dut.loaded)
        loaded = Signal(name="was_loaded")
        m.d.sync += loaded.eq(dut.loaded & ~dut.done)
        suppose(m, ~loaded | dut.loaded, "rows that are there stay")
        complete = [self._transfers(m, name) for name in ("reads", "writes")]
        cores = [self._core(m, core, active) for core in Core]
        finished = Cat(each["all"] for each in cores).all()
        suppose(m, Cat(each["total"] for each in cores).any(), "a launch has commands")
        check(m, ~dut.done | (active & loaded & finished & Cat(complete).all()), "done when all is")
        check(m, ~dut.drains | (active & finished & ~dut.done), "drains when only transfers are left")
        for own, name in ((dut.waits_writes, "writes"), (dut.waits_reads, "reads")):
            check(m, ~own | Cat(each[name] for each in cores).any(), f"only {name} are waited for")
        # A launch ends at once: a cycle for the comparison, and one after its start.
        past = [Signal(name=f"past_{n}") for n in range(2)]
        m.d.sync += [past[0].eq(active & ~dut.start & ~dut.done), past[1].eq(past[0])]
        over = Signal(name="over")
        m.d.sync += over.eq(active & ~dut.done & loaded & finished & Cat(complete).all())
        with m.If(past[0] & past[1] & over & active):
            check(m, dut.done, "ends at once")
        reach(
            m,
            dut.done & (dut.finished[0] == 2) & (dut.finished[1] == 1),
            "a launch of three commands is done",
        )
        return m

    def _transfers(self, m, name):
        """Complete transfers one after the other; return whether all are."""
        dut = self.dut
        count, total = getattr(dut, f"{name}_completed"), getattr(dut, f"{name}_total")
        more = Signal(name=f"{name}_more")
        free(m, more)
        constant(m, total)
        m.d.sync += count.eq(Mux(dut.start, 0, count + (more & (count < total))))
        return count == total

    def _core(self, m, core, active):
        """Give a core's rows and end its commands; return what holds for its next command."""
        dut, steps, command = self.dut, self.dut.steps[core], self.dut.commands[core]
        # The rest of a row passes as its core does.
        free(m, steps.valid, steps.payload.needs, steps.payload.item.follow.core, command.ready)
        stream_rule(m, steps, suppose, f"steps_{core}")
        # Rows arrive while others are executed: totals are those of the program when all are there.
        total = Signal(dut.totals[core].shape(), name=f"total_{core}")
        constant(m, total)
        free(m, dut.totals[core])
        suppose(m, ~dut.loaded | (dut.totals[core] == total), "totals are those of all rows")
        held, given, issued = (Signal(2, name=f"{name}_{core}") for name in ("held", "given", "issued"))
        needs = Signal(steps.payload.needs.shape(), name=f"needs_{core}")
        item = Signal(2, name=f"item_{core}")
        comes, goes, ends = (
            steps.valid & steps.ready,
            command.valid & command.ready,
            Signal(name=f"ends_{core}"),
        )
        free(m, ends)
        m.d.comb += dut.ends[core].eq(ends & (dut.finished[core] != issued))
        m.d.sync += [
            held.eq(held + comes - goes),
            given.eq(Mux(dut.start, 0, given + comes)),
            issued.eq(Mux(dut.start, 0, issued + goes)),
        ]
        suppose(m, ~steps.valid | (active & (given != total)), "rows of the launch")
        with m.If(comes):
            m.d.sync += [needs.eq(steps.payload.needs), item.eq(steps.payload.item.follow.core)]
        all_finished = Cat(dut.finished[each] >= needs.finished[each] for each in Core).all()
        reads, writes = dut.reads_completed >= needs.reads, dut.writes_completed >= needs.writes
        opens = all_finished & reads & writes
        with m.If(command.valid):
            check(m, held == 1, "a command is one of its rows")
            check(m, opens, "its counts are reached")
            check(m, command.payload.follow.core == item, "with its own row")
        check(m, held <= 1, "one row is held")
        check(m, (given == issued + held) & (issued >= dut.finished[core]), "commands are counted")
        check(m, active | ((held == 0) & (dut.finished[core] == issued)), "nothing is left after done")
        check(m, steps.ready == ((held == 0) | goes), "a row comes when there is room")
        check(m, (given <= total) | ~active, "no command more than there are")
        # What need not wait does not.
        could = Signal(name=f"could_{core}")
        counted, started, ended = (
            Signal(2, name=f"{name}_{core}") for name in ("counted", "was_started", "ended")
        )
        m.d.sync += [
            could.eq((held == 1) & ~goes & opens),
            counted.eq(dut.finished[core]),
            started.eq(dut.start),
            ended.eq(dut.ends[core]),
        ]
        check(m, ~could | command.valid, "what need not wait does not")
        check(m, dut.finished[core] == Mux(started, 0, counted + ended)[:2], "finished commands are counted")
        reached: dict[str, Value] = {
            "total": total,
            "all": dut.finished[core] == total,
            "writes": (held == 1) & all_finished,
            "reads": (held == 1) & all_finished & writes,
        }
        return reached


def test_sequencer():
    prove(SequencerSpec(), depth=2)
    cover(SequencerSpec(), depth=14)


#: Part, what it has, what it gets, and the words of the claim that finds it.
BUGS = {
    "reads not waited for": (
        CommandSequencer,
        "gate.counts.reads.eq(self.reads_completed)",
        "gate.counts.reads.eq(self.reads_total)",
        "counts are reached|does not",
    ),
    "ends counted once for all cores": (
        CommandSequencer,
        "with m.Elif(self.ends[core]):",
        "with m.Elif(self.ends.any()):",
        "commands are counted|finished commands",
    ),
    "done before the last write": (
        CommandSequencer,
        "& (self.writes_completed == self.writes_total)",
        "",
        "done when all is",
    ),
    "done before all rows are there": (
        CommandSequencer,
        "& whole & computed",
        "& computed",
        "done when all is|only transfers are left",
    ),
    "a comparison of the launch before": (
        CommandSequencer,
        "running[1] & whole",
        "running[0] & whole",
        "done when",
    ),
    "one too few": (CountGate, "counts >= needs", "counts + 1 >= needs", "counts are reached|are waited for"),
    "one too many": (CountGate, "counts >= needs", "counts > needs", "what need not wait"),
    "reached by the row before": (
        CountGate,
        "Mux(moves, arriving, self.reached[name] | held)",
        "arriving | self.reached[name] | held",
        "counts are reached",
    ),
}


#: Bugs that take the longest to find.
SLOW = ("a comparison of the launch before", "ends counted once for all cores", "done before the last write")


@pytest.mark.parametrize(
    "bug", [pytest.param(bug, marks=pytest.mark.soak) if bug in SLOW else bug for bug in BUGS]
)
def test_seeded_bug_in_sequencer_is_found(monkeypatch, bug):
    part, old, new, words = BUGS[bug]
    broken = mutant(part, old, new)
    if part is CountGate:
        monkeypatch.setattr(command_sequencer, "CountGate", broken)
    spec = SequencerSpec(broken if part is CommandSequencer else CommandSequencer)
    with pytest.raises(PropertyFailure, match=words):
        prove(spec, depth=8, pdr=False)
