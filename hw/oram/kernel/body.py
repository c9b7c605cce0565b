"""The oblivious map between its registers and its memories."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import connect, flipped

from hw.lib import axi
from hw.lib.counters import COUNTER_WIDTH, count_cycles, count_since
from hw.lib.delay import delay
from hw.lib.kernel import BodySignature
from hw.lib.place import Placer
from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.core.border import stream_at_border
from hw.oram.core.layouts import BEAT_BITS, HBM_BEAT_BYTES, seal_layout
from hw.oram.core.pages.buffer import PageBuffer
from hw.oram.core.pages.opener import PageOpener, page_shape
from hw.oram.core.pages.sealer import PageSealer
from hw.oram.core.position.lookahead import TABLES
from hw.oram.core.position.position import Position
from hw.oram.core.session.keys import Keys
from hw.oram.core.session.queries import Queries
from hw.oram.core.session.record import record_shape
from hw.oram.core.session.response_sealer import ResponseSealer
from hw.oram.core.stage.stage import Stage
from hw.oram.core.touch.touch import Touch
from hw.oram.kernel.arguments import (
    CAUSES,
    PAGE_PORT,
    RING_PORT,
    SECRET_WORDS,
    argument_table,
    position_names,
    record_names,
)
from hw.oram.kernel.sequencer import Sequencer
from hw.oram.movers.blocks.reader import BlockReader
from hw.oram.movers.blocks.writer import BlockWriter
from hw.oram.movers.erase import Erase
from hw.oram.movers.init import Init
from hw.oram.movers.outstanding import Outstanding
from hw.oram.movers.ring.command_reader import CommandReader
from hw.oram.movers.ring.response_writer import ResponseWriter
from hw.oram.movers.tables.buckets import Buckets
from hw.oram.movers.tables.records import Records
from hw.oram.movers.timing import PathTiming


class OramBody(wiring.Component):
    """The body of the map's kernel.

    See `hw.lib.kernel.BodySignature`; the arguments are those of `argument_table`.

    Behaviour
    ---------
    A launch follows `hw.oram.kernel.sequencer.Sequencer`; the map keeps its content until reset.
    """

    def __init__(self, config: OramConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        table = argument_table(config)
        widths = {
            port: 8 * (BEAT_BYTES if port.startswith("host") else HBM_BEAT_BYTES) for port in table.ports
        }
        super().__init__(BodySignature(table, data_width=widths))

    def elaborate(self, platform: Any) -> Module:
        """Connect the parts along the path of an operation."""
        m = Module()
        config, placer, timing = self._config, self._placer, PathTiming(self._config)
        pages = {"index_bits": config.record_index_bits, "beats": config.page_beats}

        def part(name: str, make: Callable[[], wiring.Component]) -> Any:
            """Place a large part as a cell with a reset of its own: tools map it separately."""
            return placer.place(m, name, f"oram_{name}", make)

        keys = part("keys", lambda: Keys(page=page_shape(config), record=record_shape(config), placer=placer))
        m.submodules.commands = commands = CommandReader(config)
        queries = part("queries", lambda: Queries(config, placer))
        position = part("position", lambda: Position(config))
        buckets = part("buckets", lambda: Buckets(config, placer))
        touch = part("touch", lambda: Touch(config, timing.touches))
        records = part("records", lambda: Records(config, placer))
        m.submodules.page_reader = page_reader = BlockReader(**pages, blocks=config.read_pages)
        opener = part("opener", lambda: PageOpener(config, placer))
        page_buffer = part("page_buffer", lambda: PageBuffer(config))
        stage = part("stage", lambda: Stage(config))
        sealer = part("sealer", lambda: PageSealer(config, placer))
        m.submodules.page_writer = page_writer = BlockWriter(
            **pages, blocks=config.write_pages, outstanding=config.scoreboard_pages
        )
        answers = part("answers", lambda: ResponseSealer(config, placer))
        m.submodules.responses = responses = ResponseWriter(config)
        m.submodules.init = init = Init(config)
        m.submodules.erase = erase = Erase(config)
        m.submodules.sequencer = sequencer = Sequencer(quiet_cycles=timing.quiet, end_cycles=timing.end)

        connect(m, commands.o, touch.command_i)
        connect(m, touch.command_o, queries.i)
        connect(m, queries.value, stage.command)
        connect(m, queries.query, position.query)
        for n in range(TABLES):
            connect(m, position.request[n], buckets.request[n])
            connect(m, buckets.bucket[n], position.bucket[n])
            connect(m, position.write[n], buckets.write[n])
        connect(m, position.operation, touch.operation)
        connect(m, touch.page, page_reader.i)
        connect(m, touch.record, records.touch)
        connect(m, touch.fresh, records.fresh)
        connect(m, page_reader.o, touch.page_i)
        connect(m, records.version, opener.request)
        connect(m, touch.beat, opener.i)
        connect(m, records.record, stage.record)
        connect(m, records.header, stage.header)
        connect(m, stage.write, records.write)
        self._cross(m, "response", stage.response, answers.i)
        self._cross(m, "answer", answers.o, responses.beat)
        m.d.comb += [
            touch.command_arrived.eq(commands.arrived),
            touch.page_arrived.eq(page_reader.arrived),
            touch.keystream_arrived.eq(opener.arrived),
            touch.record_arrived.eq(records.record_arrived),
            touch.fresh_arrived.eq(records.header_arrived),
            touch.response_written.eq(responses.written),
            responses.arrived.eq(commands.arrived),
            touch.stop.eq(sequencer.halt),
        ]
        self._send_pages(m, touch, opener, page_buffer, stage)
        self._write_pages(m, init, touch, stage, sealer, page_writer)
        self._launch(m, keys, commands, responses, init, position, sequencer)
        self._erase(m, erase, buckets, records, sequencer)
        for unit in (opener, sealer):
            m.d.comb += [unit.power.eq(keys.page_power), unit.round_keys.eq(keys.page_keys)]
        m.d.comb += [
            answers.power.eq(keys.session_power),
            answers.confirm.eq(keys.confirm),
            answers.enable.eq(sequencer.enable),
            queries.session_power.eq(keys.session_power),
            queries.enable.eq(sequencer.enable),
            answers.round_keys.eq(keys.session_keys),
            queries.session_keys.eq(keys.session_keys),
            queries.permutation_keys.eq(keys.permutation_keys),
            queries.draw_keys.eq(keys.draw_keys),
            commands.halt.eq(sequencer.halt),
            page_writer.halt.eq(sequencer.halt),
            responses.halt.eq(sequencer.halt),
            page_reader.base.eq(self._place(m, sequencer, "pages")),
            page_writer.base.eq(page_reader.base),
            sequencer.init_busy.eq(init.busy | erase.busy | position.clearing),
            sequencer.fault.late_operation.eq(touch.late.operation),
            sequencer.fault.late_touch.eq(touch.late.touch | stage.late | opener.starved),
            sequencer.fault.late_write.eq(buckets.late | records.late | erase.late),
            sequencer.fault.overflow.eq(stage.overflow),
            sequencer.fault.page.eq(page_buffer.forged),
        ]
        failing = (commands, responses, page_reader, page_writer, buckets, records)
        m.d.sync += sequencer.fault.bus.eq(Cat(part.error for part in failing).any())

        axi.connect(m, read=page_reader.axi, write=page_writer.axi, port=getattr(self, PAGE_PORT))
        axi.connect(m, read=commands.axi, write=responses.axi, port=getattr(self, RING_PORT))
        self._connect_tables(m, buckets, records, sequencer)
        self._count(m, commands, responses, queries, touch, sequencer)
        return m

    def _connect_tables(self, m: Module, buckets: Any, records: Any, sequencer: Any) -> None:
        """Connect the tables to their ports of HBM, and watch the bursts at all ports."""
        gmem = 0
        for table, names in ((buckets, position_names(self._config)), (records, record_names(self._config))):
            for n, name in enumerate(names):
                connect(m, table.axi[n], flipped(getattr(self, f"gmem{gmem}")))
                m.d.comb += table.base[n].eq(self._place(m, sequencer, name))
                gmem += 1
        busy = {}
        for port in self.signature.ports:
            m.submodules[f"{port}_outstanding"] = outstanding = Outstanding()
            outstanding.watch(m, getattr(self, port))
            busy[port] = outstanding.busy
        m.d.comb += [
            sequencer.bus_busy.eq(Cat(busy.values()).any()),
            sequencer.host_busy.eq(Cat(busy[port] for port in (PAGE_PORT, RING_PORT)).any()),
        ]

    def _place(self, m: Module, sequencer: Any, name: str) -> Value:
        """Return an address as of the initialization: a later launch cannot overlay one table with
        another.
        """
        place = Signal.like(self.args[name], name=f"{name}_place", reset_less=True)
        with m.If(sequencer.keys_start):
            m.d.sync += place.eq(self.args[name])
        return place

    def _send_pages(self, m: Module, touch: Any, opener: Any, page_buffer: Any, stage: Any) -> None:
        """Send touches and opened pages to the stage, or pages it composed for an earlier touch in flight."""
        turn, cycles = touch.turn, PageOpener.latency(self._config)
        m.d.comb += [
            stage.touch.valid.eq(delay(m, "turn", turn.valid, cycles)),
            stage.touch.payload.eq(delay(m, "turned", turn.payload, cycles, reset=False)),
        ]
        connect(m, opener.o, page_buffer.opened)
        connect(m, opener.verdict, page_buffer.verdict)
        connect(m, page_buffer.page, stage.page)
        m.d.comb += [page_buffer.place.eq(touch.place), page_buffer.beat.eq(touch.beat.valid)]
        for taken, given in (
            (page_buffer.turn, touch.turn),
            (page_buffer.seal, stage.seal),
            (page_buffer.composed, stage.sealed),
        ):
            m.d.comb += [taken.valid.eq(given.valid), taken.payload.eq(given.payload)]

    def _write_pages(
        self, m: Module, init: Any, touch: Any, stage: Any, sealer: Any, page_writer: Any
    ) -> None:
        """Seal and write the pages of the stage, or empty ones."""
        config = self._config
        left = Signal(range(config.page_beats + 1))
        pause = Signal(range(config.page_beat_cycles))
        empty = (left != 0) & (pause == 0)
        with m.If(init.announce.valid):
            m.d.sync += [left.eq(config.page_beats), pause.eq(0)]
        with m.Elif(left != 0):
            m.d.sync += pause.eq(pause + 1)  # wraps: a power of two
            with m.If(pause == config.page_beat_cycles - 1):
                m.d.sync += left.eq(left - 1)
        turn = touch.turn
        seal = stream.Signature(seal_layout(), always_ready=True).create()
        page = stream.Signature(BEAT_BITS, always_ready=True).create()
        m.d.comb += [
            seal.valid.eq(Mux(init.busy, init.request.valid, stage.seal.valid)),
            seal.payload.eq(Mux(init.busy, init.request.payload, stage.seal.payload)),
            page.valid.eq(empty | stage.sealed.valid),
            page.payload.eq(Mux(empty, 0, stage.sealed.payload)),
            page_writer.i.valid.eq(init.announce.valid | (turn.valid & turn.payload.page_valid)),
            page_writer.i.payload.eq(Mux(init.busy, init.announce.payload, turn.payload.record)),
            init.page_left.eq(page_writer.left),
            init.page_written.eq(page_writer.written),
            touch.page_left.eq(page_writer.left & ~init.busy),
            touch.page_written.eq(page_writer.written & ~init.busy),
        ]
        self._cross(m, "seal", seal, sealer.request)
        self._cross(m, "page", page, sealer.i)
        self._cross(m, "sealed", sealer.o, page_writer.beat)

    def _cross(self, m: Module, name: str, source: Any, target: Any) -> None:
        """Connect streams through a register on the memory's die: a sealer may lie on another one."""
        held = stream_at_border(m, name, source)
        m.d.comb += [target.valid.eq(held.valid), target.payload.eq(held.payload)]

    def _launch(
        self,
        m: Module,
        keys: Any,
        commands: Any,
        responses: Any,
        init: Any,
        position: Any,
        sequencer: Any,
    ) -> None:
        """Connect the arguments and the sequencer's pulses to their parts."""
        args = self.args

        def secret(name: str) -> Value:
            return Cat(args[f"{name}{n}"] for n in range(SECRET_WORDS[name]))

        mask = Signal.like(commands.mask)
        m.d.sync += mask.eq(args.ring_slots - 1)
        under_way = Signal(range(2 * self._config.command_records + self._config.accepted + 1))
        m.d.sync += under_way.eq(under_way + commands.arrived - responses.written)
        m.d.comb += [
            keys.start.eq(sequencer.keys_start),
            keys.session.eq(secret("session_key")),
            keys.seed.eq(secret("seed")),
            keys.epoch.eq(secret("epoch")),
            init.start.eq(sequencer.init_start),
            position.clear.eq(sequencer.init_start),
            position.flush.eq(sequencer.flush),
            sequencer.flushing.eq(position.flushing),
            commands.start.eq(sequencer.run_start),
            commands.operations.eq(args.operation_count),
            commands.poll.eq(args.poll_cycles),
            commands.base.eq(args.commands),
            commands.mask.eq(mask),
            responses.base.eq(args.responses),
            responses.mask.eq(mask),
            sequencer.start.eq(self.start),
            sequencer.initialize.eq(args.initialize[0]),
            sequencer.keyed.eq(self.keyed),
            sequencer.finish.eq(args.finish[0]),
            sequencer.keys_done.eq(keys.done),
            sequencer.commands_busy.eq(commands.busy),
            sequencer.operations_busy.eq(under_way.any()),
            self.done.eq(sequencer.done),
        ]

    def _erase(self, m: Module, erase: Any, buckets: Any, records: Any, sequencer: Any) -> None:
        """Erase both tables before their first use, and at the end."""
        tables = (buckets, records)
        m.d.comb += [
            erase.start.eq(sequencer.init_start | sequencer.erase_start),
            erase.last.eq(sequencer.erase_start),
            *(table.erase.eq(erase.erase) for table in tables),
            sequencer.erase_busy.eq(erase.busy),
            self.forget.eq(sequencer.forget),
            # An error of HBM may leave bytes as they were.
            self.counters.erased.eq(sequencer.erased & ~Cat(table.error for table in tables).any()),
        ]
        m.d.sync += erase.erased.eq(Cat(table.erased for table in tables).all())

    def _count(
        self, m: Module, commands: Any, responses: Any, queries: Any, touch: Any, sequencer: Any
    ) -> None:
        """Count cycles, bytes at the host's ports, answers and rejected commands."""
        stall = {cause: touch.activity[cause] for cause in CAUSES if cause != "deadline"}
        stall["deadline"] = sequencer.operations_busy
        busy = sequencer.initializing | sequencer.erasing | touch.activity.busy
        count_cycles(m, self, busy=busy, stall=stall)
        m.d.comb += self.counters.status.eq(sequencer.status)

        def count(name: str, event: Value) -> Value:
            counted = Signal(COUNTER_WIDTH, name=name)
            m.d.sync += counted.eq(counted + event)
            return counted

        for port in (PAGE_PORT, RING_PORT):
            bus = getattr(self, port)
            for direction, beat in (
                ("read", bus.rvalid & bus.rready),
                ("write", bus.wvalid & bus.wready),
            ):
                beats = count_since(m, self.start, count(f"{port}_{direction}_beats", beat))
                m.d.sync += self.counters[f"{port}_{direction}_bytes"].eq(beats * BEAT_BYTES)
        cycles = count("initialization", sequencer.initializing)
        m.d.comb += [
            self.counters.answered_count.eq(count("answered", responses.written)),
            self.counters.rejected_count.eq(count("rejected", queries.rejected)),
            self.counters.initialization_cycles.eq(count_since(m, self.start, cycles)),
        ]
