"""The sequencer, for all time."""

from __future__ import annotations

import pytest
from amaranth.hdl import Elaboratable, Module, Mux, Signal

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.sequencer import SequencerPhase, StepSequencer
from tests.formal.stream_properties import free_input
from tests.support.proofs.formal import PropertyFailure, check, cover, free, prove, reach, suppose
from tests.support.proofs.mutants import mutant

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

    def __init__(self, cls=StepSequencer):
        self.dut = cls(SEQUENCER_SHAPE)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        step = dut.steps.payload
        free_input(m, dut.steps, "steps")
        free(m, dut.start)
        idle = dut.phase == SequencerPhase.IDLE
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

        # No phase waits longer than it must: it lasts only while an event that it waits for is missing.
        stuck = Signal(name="could_go_on")
        phase = Signal.like(dut.phase, name="phase_before")
        all_done = (commanded == step.active) & (finished == step.active)
        m.d.comb += stuck.eq(
            (
                (dut.phase == SequencerPhase.SLOT)
                & dut.steps.valid
                & (dut.writes_completed >= step.wait_writes)
            )
            | ((dut.phase == SequencerPhase.READS) & (dut.reads_completed >= step.wait_reads))
            | ((dut.phase == SequencerPhase.COMPUTE) & all_done)
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
        prove(SequencerSpec(mutant(StepSequencer, old, new)), depth=14, pdr=False)
