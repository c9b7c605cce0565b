"""Sequencer, transfer engines, scratchpad and operators behind one register file."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from hw.lib import axi
from hw.lib.counters import Counters, counter_names
from hw.lib.kernel import BodySignature
from hw.lib.place import Placer
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import operand_layout, step_layout, transfer_layout
from hw.scheduler.core.operator_port import OperatorPort
from hw.scheduler.core.ring import Ring
from hw.scheduler.core.roms import RomStream, operand_rows, step_rows, transfer_rows
from hw.scheduler.core.scratchpad import Scratchpad
from hw.scheduler.core.sequencer import Phase, Sequencer
from hw.scheduler.core.transfer_engine import ReadEngine, WriteEngine
from hw.scheduler.kernel.arguments import CAUSES, argument_table
from hw.scheduler.operators.traffic import TrafficEngine


class SchedulerBody(wiring.Component):
    """The body of the scheduler kernel.

    Parameters
    ----------
    config
        The program, and the shape of the hardware.
    placer
        How the tiles of the scratchpad enter.

    Members
    -------
    See `hw.lib.kernel.BodySignature`; the arguments are those of `argument_table`.

    Behaviour
    ---------
    A launch executes the whole program: it reads the sources from their homes in the region at ``memory`` and
    leaves the outputs, and what was spilled, in theirs.
    """

    def __init__(self, config: SchedulerConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        super().__init__(BodySignature(argument_table(), data_width=config.word_bits))

    def elaborate(self, platform: Any) -> Module:
        """ROMs -> sequencer, transfer engines and operators -> scratchpad."""
        m = Module()
        config = self._config
        m.submodules.scratchpad = scratchpad = Scratchpad(config, self._placer)
        m.submodules.sequencer = sequencer = Sequencer(config)
        m.submodules.reader = reader = ReadEngine(config)
        m.submodules.writer = writer = WriteEngine(config)
        axi.connect(m, read=reader.axi, write=writer.axi, port=self.gmem0)
        self._rom(m, "steps", step_layout(config), step_rows(config), sequencer.steps)
        m.d.comb += [
            sequencer.start.eq(self.start),
            sequencer.reads_completed.eq(reader.completed),
            sequencer.writes_completed.eq(writer.completed),
            writer.computed.eq(sequencer.computed),
            self.done.eq(sequencer.done),
        ]
        for name, engine, transfers in (
            ("reads", reader, config.program.reads),
            ("writes", writer, config.program.writes),
        ):
            self._rom(m, name, transfer_layout(config), transfer_rows(transfers), engine.i)
            m.d.comb += [
                engine.start.eq(self.start),
                engine.base.eq(self.args.memory),
                engine.begun.eq(sequencer.begun),
            ]
        connect(m, reader.write, scratchpad.write[0])
        connect(m, writer.read, scratchpad.read[config.cores])
        ports, busy = self._cores(m, scratchpad, sequencer, reader, writer)
        self._count(m, sequencer, reader, writer, ports, busy)
        return m

    def _rom(self, m: Module, name: str, layout: Any, rows: Any, target: Any) -> None:
        m.submodules[f"{name}_rom"] = rom = RomStream(layout, rows)
        m.d.comb += rom.start.eq(self.start)
        connect(m, rom.o, target)

    def _cores(
        self, m: Module, scratchpad: Scratchpad, sequencer: Sequencer, reader: ReadEngine, writer: WriteEngine
    ) -> tuple[list[OperatorPort], Any]:
        """Place the operators: each with its port, its operand ROMs and the rings at its ends."""
        config = self._config
        ports: list[OperatorPort] = []
        busy = []
        for core in range(config.cores):
            m.submodules[f"operator_{core}"] = operator = TrafficEngine(config)
            m.submodules[f"port_{core}"] = port = OperatorPort(config)
            inputs, outputs = operand_rows(config.program, core)
            self._rom(m, f"inputs_{core}", operand_layout(config), inputs, operator.inputs)
            self._rom(m, f"outputs_{core}", operand_layout(config), outputs, operator.outputs)
            connect(m, sequencer.commands[core], operator.command)
            connect(m, operator.read, port.i_read)
            connect(m, operator.write, port.i_write)
            connect(m, port.o_response, operator.response)
            connect(m, port.read, scratchpad.read[core])
            connect(m, port.write, scratchpad.write[1 + core])
            self._ring(m, f"memory_in_{core}", reader.rings[core], port.memory_in)
            self._ring(m, f"memory_out_{core}", port.memory_out, writer.rings[core])
            if ports:
                self._ring(m, f"fifo_{core}", ports[-1].fifo_out, port.fifo_in)
            m.d.comb += sequencer.cores_done[core].eq(operator.done)
            ports.append(port)
            busy.append(operator.busy)
        return ports, Cat(*busy, *(port.moved for port in ports)).any()

    def _ring(self, m: Module, name: str, writer: Any, reader: Any) -> None:
        m.submodules[name] = ring = Ring(self._config.size_bits)
        connect(m, writer, ring.writer)
        connect(m, reader, ring.reader)

    def _count(
        self,
        m: Module,
        sequencer: Sequencer,
        reader: ReadEngine,
        writer: WriteEngine,
        ports: list[OperatorPort],
        busy: Any,
    ) -> None:
        """Count cycles by what happened in them, bytes, and steps."""
        m.submodules.counters = counters = Counters(CAUSES)
        computing = sequencer.phase == Phase.COMPUTE
        m.d.comb += [
            counters.start.eq(self.start),
            counters.done.eq(self.done),
            counters.busy.eq(computing & busy),
            counters.stall.write.eq(
                (sequencer.phase == Phase.SLOT) & sequencer.steps.valid & ~sequencer.ready
            ),
            counters.stall.read.eq((sequencer.phase == Phase.READS) & ~sequencer.ready),
            counters.stall.ring.eq(computing & Cat(port.starved for port in ports).any()),
            counters.stall.bank.eq(computing & Cat(port.blocked for port in ports).any()),
            counters.stall.drain.eq((sequencer.phase == Phase.DRAIN) & ~sequencer.ready),
            *(self.counters[name].eq(counters.counters[name]) for name in counter_names(CAUSES)),
            self.counters.steps_total.eq(sequencer.computed),
        ]
        # The DMAs count on; what they had when the launch began is taken off.
        for name, moved in (("read", reader.bytes_moved), ("write", writer.bytes_moved)):
            before = Signal.like(moved, name=f"{name}_before")
            with m.If(self.start):
                m.d.sync += before.eq(moved)
            m.d.sync += self.counters[f"gmem0_{name}_bytes"].eq((moved - before)[: len(moved)])
