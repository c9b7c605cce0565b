"""The sequencer: offers each core its commands in order, each when its counts are reached."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.network.config import NetworkConfig
from hw.network.kernel.count_gate import CountGate
from hw.network.program.program import Core
from hw.network.program.records import count_bits, step_layout, transfer_bits


class CommandSequencer(wiring.Component):
    """Counts finished commands of each core, and compares.

    Behaviour
    ---------
    A command is offered `LATENCY` cycles after the count that it waits for grows by a finished command.  A
    core's commands are offered two cycles apart at least.  Counts begin anew with ``start``.
    """

    #: From ``finished`` to the offer of a command that waits for it: counted, compared.
    LATENCY = 1 + CountGate.LATENCY

    def __init__(self, config: NetworkConfig) -> None:
        self._config = config
        count, transfers = count_bits(config), transfer_bits(config)
        step = step_layout(config)["wait"].shape
        assert isinstance(step, data.StructLayout)
        self._step = step
        item = step["item"].shape
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse; not before the last ``done``.
                "steps": In(stream.Signature(step)).array(len(Core)),  #: The commands of each core, in order.
                "totals": In(count).array(len(Core)),  #: Commands of each core, when all are ``loaded``.
                "loaded": In(1),  #: All rows are there, and totals are those of the program.
                #: ``reads_completed``, ``writes_completed``: transfers completed since ``start``.
                "reads_completed": In(transfers),
                "writes_completed": In(transfers),
                #: ``reads_total``, ``writes_total``: transfers of the program.
                "reads_total": In(transfers),
                "writes_total": In(transfers),
                "commands": Out(stream.Signature(item)).array(len(Core)),  #: To each core.
                "ends": In(len(Core)),  #: One-cycle pulses: a core's next command is finished.
                "finished": Out(count).array(len(Core)),  #: Commands of each core, since ``start``.
                #: Causes that hold a command up although all commands that it waits for are finished.
                "waits_writes": Out(1),
                "waits_reads": Out(1),
                "drains": Out(1),  #: All commands are finished, and transfers are not complete.
                "done": Out(1),  #: One-cycle pulse: all commands are finished and all transfers complete.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        needs, item = self._step["needs"].shape, self._step["item"].shape
        assert isinstance(needs, data.StructLayout)
        assert isinstance(item, data.StructLayout)
        writes, reads = [], []
        for core in Core:
            gate = CountGate(needs, item)
            m.submodules[f"gate_{core.name.lower()}"] = gate
            connect(m, flipped(self.steps[core]), gate.i)
            connect(m, gate.o, flipped(self.commands[core]))
            m.d.comb += [
                gate.counts.reads.eq(self.reads_completed),
                gate.counts.writes.eq(self.writes_completed),
                *(gate.counts.finished[other].eq(self.finished[other]) for other in Core),
            ]
            held = gate.waits & gate.reached.finished
            writes.append(held & ~gate.reached.writes)
            reads.append(held & gate.reached.writes & ~gate.reached.reads)
            with m.If(self.start):
                m.d.sync += self.finished[core].eq(0)
            with m.Elif(self.ends[core]):
                m.d.sync += self.finished[core].eq(self.finished[core] + 1)
        m.d.comb += [self.waits_writes.eq(Cat(writes).any()), self.waits_reads.eq(Cat(reads).any())]
        self._end(m)
        return m

    def _end(self, m: Module) -> None:
        """End a launch: compare, a register before the end's high fan-out."""
        computed = Signal(len(Core))
        drained = Signal()
        # Up from the cycle on in which comparisons are those of this launch.
        running = Signal(2)
        whole = Signal()  # comparisons are those of all rows
        m.d.sync += [
            *(computed[core].eq(self.finished[core] == self.totals[core]) for core in Core),
            drained.eq(
                (self.reads_completed == self.reads_total) & (self.writes_completed == self.writes_total)
            ),
            running.eq(Cat(running[0], running[0])),
            whole.eq(self.loaded),
        ]
        ends: Value = running[1] & whole & computed.all()
        m.d.comb += [self.done.eq(ends & drained), self.drains.eq(ends & ~drained)]
        with m.If(self.done):
            m.d.sync += running.eq(0)
        with m.If(self.start):
            m.d.sync += running.eq(1)
