"""The sequencer: executes steps in order, each in the four phases of `hw.scheduler`."""

import enum

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import command_layout, step_layout


class SequencerPhase(enum.IntEnum):
    """States of the sequencer, named for the event each waits for."""

    IDLE = 0  #: A start.
    SLOT = 1  #: The row of the step, and the writes whose places it takes over.
    READS = 2  #: The reads of its whole operands.
    COMPUTE = 3  #: Its cores.
    DRAIN = 4  #: The last transfers.


class StepSequencer(wiring.Component):
    """Starts cores and releases transfers, by comparing counts.

    Behaviour
    ---------
    A step without stalls takes three cycles more than its slowest core, from command to done.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse; not before the last ``done``.
                "steps": In(stream.Signature(step_layout(config))),
                #: The commands of each core, for the steps in which it is active.
                "rows": In(stream.Signature(command_layout(config))).array(config.cores),
                #: ``reads_completed``, ``writes_completed``: transfers completed since ``start``.
                "reads_completed": In(config.transfer_bits),
                "writes_completed": In(config.transfer_bits),
                #: ``reads_total``, ``writes_total``: transfers of the program.
                "reads_total": In(config.transfer_bits),
                "writes_total": In(config.transfer_bits),
                #: ``begun``, ``computed``: slots begun, and steps whose cores are done, since ``start``.
                "begun": Out(config.step_bits),
                "computed": Out(config.step_bits),
                "commands": Out(stream.Signature(command_layout(config))).array(config.cores),
                "cores_done": In(config.cores),  #: One-cycle pulse each.
                "phase": Out(SequencerPhase),
                "ready": Out(1),  #: The transfers the phase waits for are complete.
                "done": Out(1),  #: One-cycle pulse: all steps are computed and all transfers complete.
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        step = self.steps.payload
        # One bit a core: its command is not accepted yet; its done is outstanding.
        asked = Signal(self._config.cores)
        awaited = Signal(self._config.cores)
        for core, (row, command) in enumerate(zip(self.rows, self.commands, strict=True)):
            m.d.comb += [
                command.payload.eq(row.payload),
                command.valid.eq(row.valid & asked[core]),
                row.ready.eq(command.ready & asked[core]),
            ]
        # Registered: the end of a launch has a high fan-out.
        drained = Signal()
        m.d.sync += drained.eq(
            (self.reads_completed == self.reads_total) & (self.writes_completed == self.writes_total)
        )
        accepted = Cat(command.valid & command.ready for command in self.commands)
        m.d.sync += asked.eq(asked & ~accepted)

        with m.Switch(self.phase):
            with m.Case(SequencerPhase.IDLE), m.If(self.start):
                m.d.sync += [self.phase.eq(SequencerPhase.SLOT), self.begun.eq(0), self.computed.eq(0)]
            with m.Case(SequencerPhase.SLOT):
                m.d.comb += self.ready.eq(self.writes_completed >= step.wait_writes)
                with m.If(self.steps.valid & self.ready):
                    m.d.sync += [self.phase.eq(SequencerPhase.READS), self.begun.eq(self.begun + 1)]
            with m.Case(SequencerPhase.READS):
                m.d.comb += self.ready.eq(self.reads_completed >= step.wait_reads)
                with m.If(self.ready):
                    m.d.sync += [
                        self.phase.eq(SequencerPhase.COMPUTE),
                        asked.eq(step.active),
                        awaited.eq(step.active),
                    ]
            with m.Case(SequencerPhase.COMPUTE):
                m.d.sync += awaited.eq(awaited & ~self.cores_done)
                with m.If((awaited & ~self.cores_done) == 0):
                    m.d.comb += self.steps.ready.eq(1)
                    m.d.sync += [self.phase.eq(SequencerPhase.SLOT), self.computed.eq(self.computed + 1)]
                    with m.If(step.last):
                        m.d.sync += self.phase.eq(SequencerPhase.DRAIN)
            with m.Case(SequencerPhase.DRAIN):
                m.d.comb += self.ready.eq(drained)
                with m.If(self.ready):
                    m.d.comb += self.done.eq(1)
                    m.d.sync += self.phase.eq(SequencerPhase.IDLE)
        return m
