"""The data movers of attention: from jobs to the core's streams, and from its results to memory."""

from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Any

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import UNIT_BITS, AttentionConfig
from hw.attention.core.command import PART_LATENCY, PartSource, QueryCommand, TileCommand
from hw.attention.core.settings import RowSettings
from hw.attention.core.timing import CoreTiming
from hw.attention.movers.feed import StreamFeed
from hw.attention.movers.lockstep import Lockstep
from hw.attention.movers.ports import (
    TABLE_PORT,
    PortBytes,
    key_port,
    port_count,
    port_users,
    query_port,
    result_port,
    value_port,
)
from hw.attention.movers.query_parts import QueryParts
from hw.attention.movers.query_reader import QueryReader
from hw.attention.movers.result_writer import ResultWriter
from hw.attention.movers.tables import TablePort
from hw.attention.walk.job import ADDRESS_BITS, COUNT_BITS, Job
from hw.attention.walk.job_queue import JobQueue
from hw.attention.walk.job_setup import PAGE_ENTRY_BYTES, JobSetup
from hw.attention.walk.layouts import KeyPass, QueryPass, RowPass, TablePass, WritePass
from hw.attention.walk.pages import ENTRIES_AHEAD, PageEntry
from hw.attention.walk.passes import PassWalker
from hw.attention.walk.rows import RowWalker
from hw.attention.walk.table_words import BITMAP_WORDS, WORD_TILES, TableWords
from hw.lib import axi
from hw.lib.dma.join_read import ReadJoin
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid

#: Passes queued for a reader, the writer or the core: as deep as the RAM of one LUT.
PASSES_AHEAD = 32
#: Settings of rows queued for the core.
_ROWS_AHEAD = 32


def _registered(m: Module, name: str, shape: Any, depth: int, target: Any) -> Fifo:
    """Place a queue and registers behind it: its readers begin long paths, and LUT RAM is slow."""
    m.submodules[name] = fifo = Fifo(shape, depth=depth)
    m.submodules[f"{name}_skid"] = skid = Skid(shape)
    connect(m, fifo.o, skid.i)
    connect(m, skid.o, target)
    return fifo


class _PassQueues:
    """The queues that every pass enters at once."""

    def __init__(self, m: Module) -> None:
        self._m = m
        self.fifos: list[Fifo] = []

    def add(self, name: str, shape: Any, payload: Any, target: Any) -> None:
        """Place the queue of one part of a pass."""
        fifo = _registered(self._m, name, shape, PASSES_AHEAD, target)
        self._m.d.comb += fifo.i.payload.eq(payload)
        self.fifos.append(fifo)


class _Ports:
    """Users of the memory ports: once all users of a port are known, ``connect`` joins them to it."""

    def __init__(
        self, config: AttentionConfig, connect: Callable[[int, list[tuple[Any, Any]]], None]
    ) -> None:
        self._users: dict[int, list[tuple[Any, Any]]] = {}
        self._expected = port_users(config)
        self._connect = connect

    def use(self, number: int, user: Any, count: Any) -> None:
        """Add a user of a memory port, and its count of bytes."""
        self._users.setdefault(number, []).append((user, count))
        if len(self._users[number]) == self._expected[number]:
            self._connect(number, self._users[number])


class AttentionMovers(wiring.Component):
    """Feeds an `hw.attention.core.core.AttentionCore` from memory.

    ``data_width``: bits of a beat of every memory port: a power of two from 128 to 1024.

    Behaviour
    ---------
    Reads are issued as early as the queues have room, so memory's latency is paid once, at the start.
    Between jobs of different phases the engine drains: ``o_decode`` changes once all results before are in
    memory.
    """

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        elements = data.ArrayLayout(signed(8), config.lanes)
        bases = data.ArrayLayout(data.ArrayLayout(ADDRESS_BITS, config.ports), config.streams)
        port = axi.Signature(data_width=data_width, addr_width=ADDRESS_BITS)
        own: dict[str, Any] = {}
        if config.decodes:
            own = {"o_decode": Out(1)}  #: Passes to the core are of jobs that decode.
            #: ``o_own_key``, ``o_own_value``: of these jobs; their only stream of tiles is ``o_tile[0]``.
            own |= {name: Out(PartSource(config)) for name in ("o_own_key", "o_own_value")}
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse; not before the last ``done``.
                #: ``job``, ``jobs``, ``job_count``: the first job, and address and number of the descriptors
                #: of the others; constant from ``start`` to ``done``.
                "job": In(Job(config)),
                "jobs": In(ADDRESS_BITS),
                "job_count": In(COUNT_BITS),
                #: ``k_base``, ``v_base``: address of each port's keys and values.
                "k_base": In(bases),
                "v_base": In(bases),
                #: Address of each port's results.
                "o_base": In(data.ArrayLayout(ADDRESS_BITS, config.result_ports)),
                #: Address of each port's queries.
                "q_base": In(data.ArrayLayout(ADDRESS_BITS, config.query_port_count)),
                "done": Out(1),  #: One-cycle pulse: every result is in memory.
                #: ``o_*``: to the core, see `hw.attention.core.command`; ``o_tile``, ``o_key`` and
                #: ``o_value`` are arrays of S streams.
                "o_command": Out(stream.Signature(QueryCommand(config))),
                "o_row": Out(stream.Signature(RowSettings(config))),
                "o_query": Out(stream.Signature(elements)),
                "o_empty": Out(stream.Signature(1)),
                "o_tile": Out(stream.Signature(TileCommand(config))).array(config.streams),
                "o_key": Out(stream.Signature(elements)).array(config.streams),
                "o_value": Out(stream.Signature(elements)).array(config.streams),
                **own,
                #: Beats of results, a slice for each port.
                "i": In(stream.Signature(config.result_ports * config.result_slice(data_width))),
                "moved": Out(PortBytes(config)),
                #: See `hw.attention.movers.ports`.
                **{f"gmem{n}": Out(port) for n in range(port_count(config))},
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Jobs -> passes -> queues -> readers and writers."""
        m = Module()
        config, width = self._config, self._data_width
        m.submodules.jobs = jobs = JobQueue(config, data_width=width)
        m.submodules.setup = setup = JobSetup(config)
        m.submodules.passes = passes = PassWalker(config)
        m.submodules.tables = tables = TablePort(config, data_width=width)
        m.submodules.bitmaps = bitmaps = TableWords(
            config, WORD_TILES, word_bits=WORD_TILES, depth=BITMAP_WORDS, data_width=width
        )
        m.submodules.rows = rows = RowWalker(config, data_width=width)
        connect(m, jobs.o, setup.i)
        connect(m, setup.o, passes.i)
        connect(m, jobs.fetch, tables.fetch)
        connect(m, tables.descriptors, jobs.words)
        connect(m, tables.bitmaps, bitmaps.i)
        if config.alibi:
            connect(m, tables.slopes, rows.words)
        pages = self._pages(m, tables) if config.paged else None
        ports = _Ports(config, lambda number, users: self._connect(m, number, users))
        ports.use(TABLE_PORT, tables.axi, tables.bytes_useful)
        m.d.comb += [
            jobs.start.eq(self.start),
            jobs.first.eq(self.job),
            jobs.address.eq(self.jobs),
            jobs.count.eq(self.job_count),
        ]
        connect(
            m, rows.o, _registered(m, "row_queue", RowSettings(config), _ROWS_AHEAD, flipped(self.o_row)).i
        )

        # Every pass enters all queues at once.
        queues = _PassQueues(m)
        current = passes.o.payload
        queues.add("command_queue", QueryCommand(config), current.command, flipped(self.o_command))
        queues.add("table_queue", TablePass(config), current.tables, tables.i)
        queues.add("row_pass_queue", RowPass(config), current.rows, rows.i)
        self._place_queries(m, current, queues, ports)
        writers = self._place_writers(m, current, queues, ports)
        feeds = [
            self._place_feed(m, s, current, queues, ports, bitmaps, pages) for s in range(config.streams)
        ]
        accept = passes.o.valid & passes.o.ready
        agrees = Signal()  # with the phase of the passes that began
        ready = [fifo.i.ready for fifo in queues.fifos] + [agrees] * config.decodes
        m.d.comb += [
            passes.o.ready.eq(Cat(*ready).all()),
            *(fifo.i.valid.eq(accept) for fifo in queues.fifos),
        ]
        written = self._finish(m, jobs, passes, writers)
        if config.decodes:
            self._phase(m, passes, written, agrees)
            self._lockstep(m, feeds)
        return m

    def _pages(self, m: Module, tables: TablePort) -> TableWords:
        """Cut page tables into entries."""
        m.submodules.pages = pages = TableWords(
            self._config,
            PageEntry(),
            word_bits=8 * PAGE_ENTRY_BYTES,
            depth=ENTRIES_AHEAD,
            data_width=self._data_width,
        )
        connect(m, tables.pages, pages.i)
        return pages

    def _place_queries(self, m: Module, current: Any, queues: _PassQueues, ports: _Ports) -> None:
        """Place the readers of queries."""
        config = self._config
        if config.decodes:
            m.submodules.queries = queries = QueryParts(config)
            queues.add("query_queue", QueryPass(config), current.queries, queries.i)
            connect(m, queries.o, flipped(self.o_query))
            m.d.comb += queries.base.eq(self.q_base)
            for n in range(config.query_port_count):
                ports.use(query_port(config, n), queries.axi[n], queries.bytes_useful[n])
            return
        readers = []
        for n in range(config.query_port_count):
            m.submodules[f"query_{n}"] = reader = QueryReader(config, data_width=self._data_width)
            queues.add(f"query_queue_{n}", QueryPass(config), current.queries, reader.i)
            ports.use(query_port(config, n), reader.axi, reader.bytes_useful)
            m.d.comb += reader.base.eq(self.q_base[n])
            readers.append(reader)
        self._join(m, [reader.o for reader in readers])

    def _place_writers(
        self, m: Module, current: Any, queues: _PassQueues, ports: _Ports
    ) -> list[ResultWriter]:
        """Place the writers of results."""
        writers = []
        for w in range(self._config.result_ports):
            m.submodules[f"writer_{w}"] = writer = ResultWriter(self._config, data_width=self._data_width)
            queues.add(f"write_queue_{w}", WritePass(self._config), current.write, writer.i)
            ports.use(result_port(self._config, w), writer.axi, writer.bytes_useful)
            m.d.comb += writer.base.eq(self.o_base[w])
            writers.append(writer)
        self._deal(m, [writer.beats for writer in writers])
        return writers

    def _place_feed(
        self,
        m: Module,
        s: int,
        current: Any,
        queues: _PassQueues,
        ports: _Ports,
        bitmaps: TableWords,
        pages: TableWords | None,
    ) -> StreamFeed:
        """Place the feed of stream ``s``."""
        config = self._config
        m.submodules[f"feed_{s}"] = feed = StreamFeed(config, index=s, data_width=self._data_width)
        queues.add(f"key_queue_{s}", KeyPass(config), current.keys, feed.i)
        connect(m, bitmaps.o[s], feed.words)
        if not s:
            # Always room: the commands of these passes are in their queue, or in the registers behind it.
            m.submodules.empty = empty = Fifo(1, depth=PASSES_AHEAD + Skid.CAPACITY)
            m.d.comb += [empty.i.payload.eq(feed.empty.payload), empty.i.valid.eq(feed.empty.valid)]
            connect(m, empty.o, flipped(self.o_empty))
        if pages is not None:
            connect(m, pages.o[s], feed.entries)
        connect(m, feed.tile, flipped(self.o_tile[s]))
        connect(m, feed.k, flipped(self.o_key[s]))
        connect(m, feed.v, flipped(self.o_value[s]))
        m.d.comb += [feed.k_base.eq(self.k_base[s]), feed.v_base.eq(self.v_base[s])]
        for p in range(config.ports):
            ports.use(key_port(config, s, p), feed.k_axi[p], feed.k_bytes[p])
            ports.use(value_port(config, s, p), feed.v_axi[p], feed.v_bytes[p])
        return feed

    def _connect(self, m: Module, number: int, users: list[tuple[Any, Any]]) -> None:
        """Join the readers and the writer of a memory port, and count its bytes."""
        halves: dict[str, Any] = {}
        for direction, half in (("read", axi.ReadSignature), ("write", axi.WriteSignature)):
            own = [(user, count) for user, count in users if isinstance(user.signature, half)]
            if not own:
                continue
            halves[direction] = own[0][0]
            if len(own) > 1:
                join = ReadJoin(inputs=len(own), data_width=self._data_width, addr_width=ADDRESS_BITS)
                m.submodules[f"join_{number}"] = join
                for n, (user, _) in enumerate(own):
                    connect(m, user, join.i[n])
                halves[direction] = join.o
            m.d.sync += self.moved[f"gmem{number}_{direction}_bytes"].eq(
                reduce(add, (count for _, count in own))
            )
        axi.connect(m, **halves, port=getattr(self, f"gmem{number}"))

    def _phase(self, m: Module, passes: PassWalker, written: list[Any], agrees: Signal) -> None:
        """Change the phase when a pass of the other phase waits and all results are written."""
        all_written = Signal()
        wanted = passes.o.payload.keys.source.decode
        # Both a cycle late.  A pass is offered three cycles after the one before was taken, and its job, with
        # the phase, is valid in the last two of these.
        m.d.sync += [agrees.eq(wanted == self.o_decode), all_written.eq(Cat(*written).all())]
        with m.If(passes.o.valid & ~agrees & all_written):
            m.d.sync += self.o_decode.eq(wanted)

    def _lockstep(self, m: Module, feeds: list[StreamFeed]) -> None:
        """Join all readers of keys into one source, and all readers of values."""
        config = self._config
        for side, source, latency in (
            ("k", self.o_own_key, PART_LATENCY),
            ("v", self.o_own_value, CoreTiming(config).step),
        ):
            m.submodules[f"{side}_lockstep"] = lockstep = Lockstep(config, part_latency=latency)
            connect(m, lockstep.o, flipped(source))
            m.d.comb += lockstep.enable.eq(self.o_decode)
            for s, feed in enumerate(feeds):
                for p in range(config.ports):
                    n = s + config.streams * p
                    m.d.comb += [
                        lockstep.arrived[n].eq(getattr(feed, f"{side}_arrived")[p]),
                        lockstep.part[n].eq(getattr(feed, f"{side}_part")[p]),
                        *(
                            getattr(feed, f"{side}_{name}")[p].eq(getattr(lockstep, name)[n])
                            for name in ("take", "last", "keep")
                        ),
                    ]

    def _join(self, m: Module, ports: list[Any]) -> None:
        """Join the parts of all ports, unit by unit in turn, when all are valid."""
        valid = Cat(port.valid for port in ports)
        units = self._config.part_bits // UNIT_BITS // len(ports)
        m.d.comb += [
            self.o_query.payload.eq(
                Cat(port.payload.elements.word_select(n, UNIT_BITS) for n in range(units) for port in ports)
            ),
            self.o_query.valid.eq(valid.all()),
            *(port.ready.eq(self.o_query.ready & valid.all()) for port in ports),
        ]

    def _deal(self, m: Module, targets: list[Any]) -> None:
        """Send each target its slice of a beat, when all have room."""
        ready = Cat(target.ready for target in targets)
        width = self._config.result_slice(self._data_width)
        m.d.comb += self.i.ready.eq(ready.all())
        for n, target in enumerate(targets):
            m.d.comb += [
                target.payload.eq(self.i.payload.word_select(n, width)),
                # All but its own ready, as the valid of a stream must not depend on its ready.
                target.valid.eq(self.i.valid & Cat(ready[:n], ready[n + 1 :]).all()),
            ]

    def _finish(
        self, m: Module, jobs: JobQueue, passes: PassWalker, writers: list[ResultWriter]
    ) -> list[Any]:
        """Count the jobs that are not done with passes, and the passes that each writer has not taken.

        Returns conditions that all hold when the results of all passes are written.
        """
        running = Signal()
        jobs_open = Signal(4)
        walked: list[Any] = [~jobs.busy, jobs_open == 0]
        quiet: list[Any] = []

        def passing(port: Any) -> Any:
            return port.valid & port.ready

        m.d.sync += jobs_open.eq(jobs_open + passing(jobs.o) - passing(passes.i))
        for n, writer in enumerate(writers):
            passes_open = Signal(range(PASSES_AHEAD + Skid.CAPACITY + 2), name=f"passes_open_{n}")
            m.d.sync += passes_open.eq(passes_open + passing(passes.o) - passing(writer.i))
            quiet += [passes_open == 0, ~writer.busy]
        m.d.comb += self.done.eq(running & Cat(*walked, *quiet).all())
        with m.If(self.start):
            m.d.sync += running.eq(1)
        with m.Elif(self.done):
            m.d.sync += running.eq(0)
        return quiet
