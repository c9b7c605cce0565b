"""Sequencer, transfer engines, scratchpad and operators behind one register file."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import connect

from hw.lib import axi
from hw.lib.counters import count_cycles, count_since
from hw.lib.kernel import BodySignature
from hw.lib.place import Placer
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import command_layout, operand_layout, step_layout, transfer_layout
from hw.scheduler.core.loader import Loader
from hw.scheduler.core.operator_port import OperatorPort
from hw.scheduler.core.ring import Ring
from hw.scheduler.core.scratchpad import Scratchpad
from hw.scheduler.core.sequencer import SequencerPhase, StepSequencer
from hw.scheduler.core.table import ProgramTable
from hw.scheduler.core.transfer_engine import ReadEngine, WriteEngine
from hw.scheduler.kernel.arguments import argument_table
from hw.scheduler.operators.traffic import TrafficEngine
from hw.scheduler.program import image


class SchedulerBody(wiring.Component):
    """The body of the scheduler kernel.

    See `hw.lib.kernel.BodySignature`; the arguments are those of `argument_table`.

    Behaviour
    ---------
    A launch loads the program image at ``program``, unless the program is frozen, and executes it.  It reads
    the sources from the region at ``memory`` and writes outputs and spilled tensors to it.
    """

    def __init__(self, config: SchedulerConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        super().__init__(BodySignature(argument_table(config), data_width=config.word_bits))

    def elaborate(self, platform: Any) -> Module:
        """Loader -> tables -> sequencer, transfer engines and operators -> scratchpad."""
        m = Module()
        config = self._config
        m.submodules.scratchpad = scratchpad = Scratchpad(config, self._placer)
        m.submodules.sequencer = sequencer = StepSequencer(config)
        m.submodules.reader = reader = ReadEngine(config)
        m.submodules.writer = writer = WriteEngine(config)
        axi.connect(m, read=reader.axi, write=writer.axi, port=self.gmem0)
        loader = self._loader(m, reader)
        tables = _TableBuilder(m, config, loader, start=self.start if loader is None else loader.done)
        tables.place("steps", image.TableNumber.STEPS, step_layout(config), config.max_steps, sequencer.steps)
        m.d.comb += [
            sequencer.start.eq(tables.start),
            sequencer.reads_completed.eq(reader.completed),
            sequencer.writes_completed.eq(writer.completed),
            reader.computed.eq(sequencer.begun),
            writer.computed.eq(sequencer.computed),
            self.done.eq(sequencer.done),
        ]
        for name, engine, number, total in (
            ("reads", reader, image.TableNumber.READS, sequencer.reads_total),
            ("writes", writer, image.TableNumber.WRITES, sequencer.writes_total),
        ):
            count = tables.place(name, number, transfer_layout(config), config.max_transfers, engine.i)
            m.d.comb += [
                total.eq(count),
                engine.start.eq(tables.start),
                engine.base.eq(self.args.memory),
                engine.begun.eq(sequencer.begun),
            ]
        connect(m, reader.write, scratchpad.write[0])
        connect(m, writer.read, scratchpad.read[config.cores])
        ports, busy = self._cores(m, tables, scratchpad, sequencer, reader, writer)
        self._count(m, sequencer, reader, writer, ports, busy)
        return m

    def _loader(self, m: Module, reader: ReadEngine) -> Loader | None:
        """Instantiate the loader, on the read engine's DMA; None where the program is frozen."""
        if self._config.program is not None:
            return None
        m.submodules.loader = loader = Loader(self._config)
        m.d.comb += [
            loader.start.eq(self.start),
            loader.address.eq(self.args.program),
            loader.records.eq(self.args.program_records),
            reader.loading.eq(loader.loading),
        ]
        connect(m, loader.command, reader.load)
        connect(m, reader.loaded, loader.words)
        return loader

    def _cores(
        self,
        m: Module,
        tables: _TableBuilder,
        scratchpad: Scratchpad,
        sequencer: StepSequencer,
        reader: ReadEngine,
        writer: WriteEngine,
    ) -> tuple[list[OperatorPort], Any]:
        """Instantiate the operators, each with its port, its tables and its rings."""
        config = self._config
        ports: list[OperatorPort] = []
        busy = []
        for core in range(config.cores):
            m.submodules[f"operator_{core}"] = operator = TrafficEngine(config)
            m.submodules[f"port_{core}"] = port = OperatorPort(config)
            for name, number, layout, depth, target in (
                (
                    "commands",
                    image.TableNumber.COMMANDS,
                    command_layout,
                    config.max_steps,
                    sequencer.rows[core],
                ),
                ("inputs", image.TableNumber.INPUTS, operand_layout, config.max_operands, operator.inputs),
                ("outputs", image.TableNumber.OUTPUTS, operand_layout, config.max_operands, operator.outputs),
            ):
                tables.place(f"{name}_{core}", number + core, layout(config), depth, target)
            connect(m, sequencer.commands[core], operator.command)
            m.d.comb += [port.i_done.eq(operator.done), sequencer.cores_done[core].eq(port.done)]
            connect(m, operator.read, port.i_read)
            connect(m, operator.write, port.i_write)
            connect(m, port.o_response, operator.response)
            connect(m, port.read, scratchpad.read[core])
            connect(m, port.write, scratchpad.write[1 + core])
            self._ring(m, f"memory_in_{core}", reader.rings[core], port.inputs[0])
            self._ring(m, f"memory_out_{core}", port.outputs[0], writer.rings[core])
            if ports:
                self._ring(m, f"fifo_{core}", ports[-1].outputs[1], port.inputs[1])
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
        sequencer: StepSequencer,
        reader: ReadEngine,
        writer: WriteEngine,
        ports: list[OperatorPort],
        busy: Any,
    ) -> None:
        """Count cycles by cause, bytes and steps."""
        computing = sequencer.phase == SequencerPhase.COMPUTE
        stall = {
            "load": reader.loading,
            "write": (sequencer.phase == SequencerPhase.SLOT) & sequencer.steps.valid & ~sequencer.ready,
            "read": (sequencer.phase == SequencerPhase.READS) & ~sequencer.ready,
            "ring": computing & Cat(port.starved for port in ports).any(),
            "bank": computing & Cat(port.blocked for port in ports).any(),
            "drain": (sequencer.phase == SequencerPhase.DRAIN) & ~sequencer.ready,
        }
        count_cycles(m, self, busy=computing & busy, stall=stall)
        m.d.comb += self.counters.steps_total.eq(sequencer.computed)
        for name, moved in (("read", reader.bytes_moved), ("write", writer.bytes_moved)):
            m.d.sync += self.counters[f"gmem0_{name}_bytes"].eq(count_since(m, self.start, moved))


class _TableBuilder:
    """Instantiates tables, each written by the loader or frozen."""

    def __init__(self, m: Module, config: SchedulerConfig, loader: Loader | None, *, start: Any) -> None:
        self.start = start
        self._m, self._loader = m, loader
        self._frozen = None if config.program is None else image.table_rows(config.program)

    def place(self, name: str, number: int, layout: data.StructLayout, depth: int, target: Any) -> Any:
        """Instantiate a table that drives a stream; return the count of its rows."""
        m, loader = self._m, self._loader
        rows = None if self._frozen is None else self._frozen.get(number, [])
        m.submodules[f"{name}_table"] = table = ProgramTable(layout, depth=depth, rows=rows)
        m.d.comb += table.start.eq(self.start)
        connect(m, table.o, target)
        if loader is not None:
            fields = data.StructLayout(image.fields(number))
            record = data.View(fields, loader.row[: fields.size])
            m.d.comb += [
                table.clear.eq(loader.start),
                table.write.eq(loader.write & (loader.table == number)),
                *(Value.cast(table.row[field]).eq(record[field]) for field in layout.members),
            ]
        return table.count
