"""Sequencer, transfers, scratchpad, matrix and vector unit behind one register file."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import connect

from hw.lib import axi
from hw.lib.counters import count_cycles, count_since
from hw.lib.kernel import BodySignature
from hw.lib.place import Placer
from hw.network.attention.unit import AttentionUnit
from hw.network.commands import Core
from hw.network.config import NetworkConfig
from hw.network.kernel.arguments import argument_table, weight_ports
from hw.network.kernel.command_sequencer import CommandSequencer
from hw.network.kernel.gated_read import GatedRead
from hw.network.kernel.loader import ImageLoader
from hw.network.kernel.program_tables import ProgramTables
from hw.network.kernel.signals import name_signals
from hw.network.kernel.tap_store import TapStore
from hw.network.kernel.transfer_in import TransferIn
from hw.network.kernel.transfer_out import TransferOut
from hw.network.matrix.unit import MatrixUnit
from hw.network.matrix.word_gate import count_words
from hw.network.program.records import SECOND_FEED, TableNumber
from hw.network.scratchpad.scratchpad import GranuleScratchpad
from hw.network.vector.unit import VectorUnit


class NetworkBody(wiring.Component):
    """The body of the network kernel.

    See `hw.lib.kernel.BodySignature`; the arguments are those of `argument_table`.

    Behaviour
    ---------
    A launch loads the opening of the program image at ``program``, and executes the program while the rest
    arrives.  It reads inputs from the region at ``memory``, and writes outputs and spilled tensors to it.
    """

    def __init__(self, config: NetworkConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        super().__init__(BodySignature(argument_table(config), data_width=8 * config.port_bytes))

    def elaborate(self, platform: Any) -> Module:
        """Loader -> tables -> sequencer, transfers and units -> scratchpad."""
        m = Module()
        config, placer = self._config, self._placer
        m.submodules.loader = loader = ImageLoader()
        m.submodules.sequencer = sequencer = CommandSequencer(config)
        m.submodules.transfer_in = reader = TransferIn(config)
        m.submodules.transfer_out = writer = TransferOut(config)
        m.submodules.matrix = matrix = MatrixUnit(config.shape, config.matrix, placer)
        m.submodules.vector = vector = VectorUnit(config.vector, placer)
        units: list[Any] = [matrix, vector]
        if config.attention_rows:
            m.submodules.attention = attention = AttentionUnit(config.attention, placer)
            units.append(attention)
        # The most important first: a feed that loses a word never regains it.
        gated = self._gate(m, vector)
        readers = [*matrix.read, *(gate.port for gate in gated)]
        readers += [port for unit in units[2:] for port in unit.read] + [writer.read]
        writers = [unit.write for unit in units] + [reader.write]
        m.submodules.scratchpad = pad = GranuleScratchpad(
            config.shape, placer, readers=len(readers), writers=len(writers)
        )
        tables = ProgramTables(m, config, loader)
        self._load(m, loader, reader)
        self._sequence(m, tables, loader, sequencer, reader, writer)
        self._matrix(m, tables, loader, sequencer, matrix)
        self._vector(m, tables, sequencer, vector)
        for gate in gated:
            follow = sequencer.commands[Core.VECTOR].payload.follow
            m.d.comb += [gate.start.eq(vector.command.valid & vector.command.ready), gate.follow.eq(follow)]
        if config.attention_rows:
            self._attention(m, tables, sequencer, attention)
        self._count_words(m, loader, matrix, units, gated)
        for port, user in zip((*pad.read, *pad.write), (*readers, *writers), strict=True):
            connect(m, user, port)
        axi.connect(m, read=reader.axi, write=writer.axi, port=self.gmem0)
        for name, bus in zip(weight_ports(config), matrix.axi, strict=True):
            axi.connect(m, read=bus, port=getattr(self, name))
        m.d.comb += self.done.eq(sequencer.done)
        self._count(m, loader, sequencer, matrix, units[1:])
        moved = {"gmem0_read": reader.bytes_moved, "gmem0_write": writer.bytes_moved}
        moved |= {
            f"{name}_read": count
            for name, count in zip(weight_ports(config), matrix.bytes_moved, strict=True)
        }
        for name, count in moved.items():
            m.d.sync += self.counters[f"{name}_bytes"].eq(count_since(m, self.start, count))
        return m

    def _load(self, m: Module, loader: ImageLoader, reader: TransferIn) -> None:
        """Let the loader read by the transfers' DMA."""
        m.d.comb += [
            loader.start.eq(self.start),
            loader.address.eq(self.args.program),
            loader.records.eq(self.args.program_records),
            loader.opening.eq(self.args.opening_records),
            reader.loading.eq(loader.loading),
        ]
        connect(m, loader.command, reader.load)
        connect(m, reader.loaded, loader.words)

    def _sequence(
        self,
        m: Module,
        tables: ProgramTables,
        loader: ImageLoader,
        sequencer: CommandSequencer,
        reader: TransferIn,
        writer: TransferOut,
    ) -> None:
        """Place the steps of each core, and transfers."""
        m.d.comb += [sequencer.start.eq(loader.done), sequencer.loaded.eq(loader.complete)]
        for core in Core:
            steps = tables.place(TableNumber.STEPS, depth=self._config.max_steps, part="wait", core=core)
            connect(m, steps.o, sequencer.steps[core])
            m.d.comb += sequencer.totals[core].eq(steps.count)
        for number, engine, other, completed, total in (
            (TableNumber.READS, reader, writer, sequencer.reads_completed, sequencer.reads_total),
            (TableNumber.WRITES, writer, reader, sequencer.writes_completed, sequencer.writes_total),
        ):
            table = tables.place(number, depth=self._config.max_transfers)
            connect(m, table.o, engine.i)
            m.d.comb += [
                total.eq(table.count),
                completed.eq(engine.completed),
                engine.start.eq(loader.done),
                engine.base.eq(self.args.memory),
                engine.counts.others.eq(other.completed),
                *(engine.counts.finished[core].eq(sequencer.finished[core]) for core in Core),
            ]

    def _matrix(
        self,
        m: Module,
        tables: ProgramTables,
        loader: ImageLoader,
        sequencer: CommandSequencer,
        matrix: MatrixUnit,
    ) -> None:
        """Place the tables of the matrix unit: commands, and packets and tap rows ahead of them."""
        config = self._config
        m.submodules.taps = taps = TapStore(config)
        m.d.comb += Value.cast(taps.slot).eq(Value.cast(loader.slot))
        runs = tables.place(TableNumber.WEIGHTS, depth=config.max_steps, part="taps")
        weights = tables.place(TableNumber.WEIGHTS, depth=config.max_steps, part="weights")
        connect(m, runs.o, taps.run)
        connect(m, taps.entry, matrix.entry)
        connect(m, weights.o, matrix.weights)
        feed = tables.place(TableNumber.FEED, depth=config.max_steps)
        drain = tables.place(TableNumber.DRAIN, depth=config.max_steps)
        given, first = matrix.command.payload, feed.o.payload.first
        m.d.comb += [
            *(own.eq(first) for own in given.feeds),
            *(given.feeds[1][name].eq(feed.o.payload.second[name]) for name in SECOND_FEED),
            given.follow.eq(sequencer.commands[Core.MATRIX].payload.follow),
            given.k_tiles.eq(first.k_tiles),
            given.two.eq(feed.o.payload.two),
            given.drain.eq(drain.o.payload.drain),
            given.table.eq(drain.o.payload.table),
            *(base.eq(self.args[f"weights_{n}"]) for n, base in enumerate(matrix.bases)),
        ]
        tables.write_ram(TableNumber.TABLES, matrix.tables)
        self._command(m, sequencer, Core.MATRIX, (feed.o, drain.o), matrix)

    def _vector(
        self, m: Module, tables: ProgramTables, sequencer: CommandSequencer, vector: VectorUnit
    ) -> None:
        """Place the tables of the vector unit."""
        parts = [
            tables.place(number, depth=self._config.max_steps).o
            for number in (TableNumber.WALKS, TableNumber.LOOPS)
        ]
        for part in parts:
            names = part.payload.shape().members
            m.d.comb += [
                Value.cast(vector.command.payload[name]).eq(Value.cast(part.payload[name])) for name in names
            ]
        for number, port in (
            (TableNumber.VECTOR_TAPS, vector.taps),
            (TableNumber.SCALES, vector.scales),
            (TableNumber.TABLES, vector.tables),
            (TableNumber.EXPONENTIALS, vector.exponentials),
            (TableNumber.CHANNELS, vector.channels),
        ):
            tables.write_ram(number, port)
        self._command(m, sequencer, Core.VECTOR, parts, vector)

    def _attention(
        self, m: Module, tables: ProgramTables, sequencer: CommandSequencer, attention: AttentionUnit
    ) -> None:
        """Place the table of the attention unit."""
        rows = tables.place(TableNumber.ATTENTION, depth=self._config.max_steps).o
        m.d.comb += Value.cast(attention.command.payload).eq(Value.cast(rows.payload))
        self._command(m, sequencer, Core.ATTENTION, [rows], attention)

    def _gate(self, m: Module, vector: VectorUnit) -> list[GatedRead]:
        """Place the gates of the vector unit's reads: it has a request at each for each step that reads."""
        gates = []
        for n, port in enumerate(vector.read):
            m.submodules[f"vector_read_{n}"] = gate = GatedRead(self._config.shape)
            connect(m, port, gate.user)
            gates.append(gate)
        return gates

    def _count_words(
        self,
        m: Module,
        loader: ImageLoader,
        matrix: MatrixUnit,
        units: list[Any],
        gated: list[GatedRead],
    ) -> None:
        """Count the words that each core has written, which word gates compare."""
        m.d.comb += matrix.clear.eq(loader.done)
        counts = {Core.MATRIX: matrix.written}
        for core, unit in zip((Core.VECTOR, Core.ATTENTION), units[1:], strict=False):
            counts[core] = count_words(m, clear=loader.done, written=unit.write.written)
        followers: list[Any] = [matrix, *gated]
        for gate in followers:
            m.d.comb += [gate.counts[core].eq(count) for core, count in counts.items()]

    def _command(self, m: Module, sequencer: CommandSequencer, core: Core, parts: Any, unit: Any) -> None:
        """Send a unit the command in ``parts`` when the sequencer offers it."""
        offered = sequencer.commands[core]
        valid = offered.valid & Cat(part.valid for part in parts).all()
        taken = valid & unit.command.ready
        m.d.comb += [
            unit.command.valid.eq(valid),
            offered.ready.eq(taken),
            *(part.ready.eq(taken) for part in parts),
            sequencer.ends[core].eq(unit.done),
        ]

    def _count(
        self,
        m: Module,
        loader: ImageLoader,
        sequencer: CommandSequencer,
        matrix: MatrixUnit,
        others: list[Any],
    ) -> None:
        """Count cycles by cause, and commands; ``others``: the other units."""
        working = [unit.busy & ~unit.waits_read & ~unit.waits_write for unit in others]
        works = dict(zip(Core, [matrix.busy, *working], strict=False))
        takes = {core: sequencer.commands[core].ready for core in works}
        name_signals(m, takes=takes, ends=sequencer.ends, works=works, done=sequencer.done)
        stall = {
            "load": loader.loading,
            "write": sequencer.waits_writes,
            "read": sequencer.waits_reads,
            "pixels": matrix.waits.pixels,
            "weights": matrix.waits.weights,
            "room": matrix.waits.room,
            "vector_read": Cat(unit.waits_read for unit in others).any(),
            "vector_write": Cat(unit.waits_write for unit in others).any(),
            "drain": sequencer.drains,
        }
        count_cycles(m, self, busy=matrix.busy | Cat(working).any(), stall=stall)
        m.d.comb += self.counters.steps_total.eq(sum(sequencer.finished[core] for core in Core))
