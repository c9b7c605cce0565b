"""The position map: from a permuted key and its draws to the pages and records of an operation."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.oram.config import OramConfig
from hw.oram.core.bits import any_of
from hw.oram.core.layouts import (
    STATUS_BITS,
    Code,
    Status,
    bucket_beat_layout,
    bucket_layout,
    operation_layout,
    query_layout,
)
from hw.oram.core.position.log import BucketLog
from hw.oram.core.position.lookahead import (
    TABLES,
    Lookahead,
    bucket_number,
    place_bits,
    tag,
    turn_layout,
)
from hw.oram.core.position.stamps import number_bits
from hw.oram.core.position.sweep import Sweep
from hw.oram.core.position.table import BucketTable

#: Operations at the output, one of them still in the pipeline.
_RESULTS = 4


class Position(wiring.Component):
    """Looks keys up, assigns fresh labels, inserts and frees keys, in order.

    Behaviour
    ---------
    An operation takes ``config.interval`` cycles, whatever its key, and leaves `LATENCY` cycles after its
    buckets arrived.

    The log holds the buckets of the last ``config.position.log`` operations. An operation requests the bucket
    of a table if the log does not have it. Its changes leave for HBM when ``config.position.write_back``
    further operations were looked up, unless a later one on the same bucket took them over. At most
    ``config.position.inflight`` operations have been taken and not made their changes.
    """

    LATENCY: ClassVar = BucketTable.TURN + Fifo.LATENCY

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        super().__init__(
            {
                #: ``clear``, ``clearing``: empties the log, until ``clearing`` falls; all buckets in HBM are
                #: to be zeros. Only while no operation is in flight.
                "clear": In(1),
                "clearing": Out(1),
                #: ``flush``, ``flushing``: sends all changes to HBM, in `Sweep.cycles` if writes are taken
                #: at once. Only while no operation is in flight; the log is used further.
                "flush": In(1),
                "flushing": Out(1),
                "query": In(stream.Signature(query_layout(config))),
                #: The operation's bucket of each table, if the log does not have it.
                "request": Out(stream.Signature(config.bucket_bits)).array(TABLES),
                #: Those buckets, in order, as read after their request.
                "bucket": In(stream.Signature(bucket_layout(config))).array(TABLES),
                #: Changed beats of buckets.
                "write": Out(stream.Signature(bucket_beat_layout(config))).array(TABLES),
                "operation": Out(stream.Signature(operation_layout(config))),
                "live": Out(range(config.keys + 1)),  #: Keys in the map.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Cycles of an operation are counted as in a table."""
        m = Module()
        config = self._config
        m.submodules.lookahead = lookahead = Lookahead(config)
        m.submodules.results = results = Fifo(operation_layout(config), depth=_RESULTS)
        connect(m, flipped(self.query), lookahead.query)
        connect(m, results.o, flipped(self.operation))
        load = Signal()
        turn = [load, *(delay(m, f"turn_{n}", load, n) for n in range(1, BucketTable.TURN + 1))]
        now = Signal(turn_layout(config), reset_less=True)
        with m.If(load):
            m.d.sync += now.eq(lookahead.o.payload)
        tables = []
        for n in range(TABLES):
            m.submodules[f"table_{n}"] = table = BucketTable(config)
            connect(m, lookahead.request[n], flipped(self.request[n]))
            m.d.comb += [
                table.entry.tag.eq(tag(config, now.permuted, n)),
                table.entry.record.eq(now.fresh),
            ]
            tables.append(table)
        m.d.comb += [lookahead.clear.eq(self.clear), lookahead.done.eq(turn[-1])]
        age = self._stamp(m, load, tables)
        self._load(m, load, lookahead.o, results, tables)
        self._leave(m, turn, lookahead, tables)
        hit, status, keep = self._decide(m, turn, now, tables)
        m.d.comb += [
            results.i.valid.eq(turn[-1]),
            results.i.payload.operation.eq(now.command.operation),
            results.i.payload.code.eq(now.command.code),
            results.i.payload.key.eq(now.command.key),
            results.i.payload.status.eq(status),
            results.i.payload.keep.eq(keep),
            results.i.payload.age.eq(age),
            results.i.payload.fresh.eq(now.fresh),
        ]
        self._touch(m, turn, now, hit, tables, results.i.payload)
        return m

    def _stamp(self, m: Module, load: Signal, tables: list[BucketTable]) -> Value:
        """Number operations; return the age of the found entry's stamp, valid from four cycles after the load
        on.
        """
        window = self._config.window
        number = Signal(number_bits(self._config))
        age = Signal.like(number, reset_less=True)
        stamped = Signal(reset_less=True)
        with m.If(load):
            m.d.sync += number.eq(number + 1)
        m.d.comb += [table.stamp.eq(number) for table in tables]
        m.d.sync += [
            age.eq(number - any_of([table.found_stamp for table in tables])),
            stamped.eq(Cat(table.stamped for table in tables).any()),
        ]
        return Mux(stamped & (age <= window), age, 0)

    def _leave(self, m: Module, turn: list[Value], lookahead: Lookahead, tables: list[BucketTable]) -> None:
        """With each operation an older one leaves the log for HBM; a sweep visits all places."""
        config = self._config
        m.submodules.sweep = sweep = Sweep(config)
        oldest = Signal(place_bits(config), init=config.position.log - config.position.write_back)
        leaving = Signal.like(oldest)
        assert BucketLog.SPACING <= BucketTable.TURN <= config.interval
        with m.If(turn[2]):
            m.d.sync += oldest.eq(Mux(oldest == config.position.log - 1, 0, oldest + 1))
        m.d.sync += leaving.eq(Mux(sweep.busy, sweep.place, oldest))
        m.d.comb += [
            sweep.clear.eq(self.clear),
            sweep.flush.eq(self.flush),
            sweep.ready.eq(Cat(table.ready for table in tables).all()),
            self.clearing.eq(sweep.busy & sweep.discard),
            self.flushing.eq(sweep.busy & ~sweep.discard),
            lookahead.hold.eq(sweep.busy),
        ]
        for n, table in enumerate(tables):
            connect(m, table.beat, flipped(self.write[n]))
            m.d.comb += [
                table.leave.eq(turn[1] | sweep.leave),
                table.leaving.eq(leaving),
                table.discard.eq(self.clearing),
            ]

    def _load(self, m: Module, load: Signal, turn: Any, results: Fifo, tables: list[BucketTable]) -> None:
        """Load an operation when its buckets have arrived and its result has room."""
        config = self._config
        cycle = Signal(range(config.interval))
        paced = Signal(init=1)
        room = Signal()
        with m.If(load):
            m.d.sync += [cycle.eq(0), paced.eq(0)]
        with m.Elif(~paced):
            m.d.sync += [cycle.eq(cycle + 1), paced.eq(cycle == config.interval - 2)]
        m.d.sync += room.eq(results.level <= _RESULTS - 2)
        fetched = turn.valid  # high until the log has been read
        for n in range(BucketTable.RECENT):
            waits = Signal(name=f"waits_{n}")
            m.d.sync += waits.eq(fetched & ~load)
            fetched = waits
        logged = turn.payload.logged
        arrived = Cat(bucket.valid | logged[n] for n, bucket in enumerate(self.bucket)).all()
        ready = Cat(table.ready for table in tables).all()
        m.d.comb += [load.eq(fetched & paced & room & arrived & ready), turn.ready.eq(load)]
        for n, table in enumerate(tables):
            m.d.comb += [
                self.bucket[n].ready.eq(load & ~logged[n]),
                table.load.eq(load),
                table.read.eq(self.bucket[n].payload),
                table.number.eq(bucket_number(config, turn.payload.permuted, n)),
                table.place.eq(turn.payload.place),
                table.recent.eq(turn.payload.recent[n]),
                table.same.eq(turn.payload.same[n]),
                table.logged.eq(logged[n]),
            ]

    def _decide(
        self, m: Module, turn: list[Value], now: Any, tables: list[BucketTable]
    ) -> tuple[Value, Value, Value]:
        """Change the tables; return whether labels are revealed, the status, and whether the item is kept.

        All three are valid from three cycles after the load on.
        """
        config, command = self._config, now.command
        legal = ~command.rejected & ~command.malformed

        def asks(name: str, *codes: Code) -> Signal:
            flag = Signal(name=name)
            m.d.sync += flag.eq(turn[1] & legal & Cat(command.code == code for code in codes).any())
            return flag

        renewing, removing = asks("renewing", Code.GET, Code.PUT), asks("removing", Code.DELETE)
        inserting, loading = asks("inserting", Code.PUT, Code.LOAD), asks("loading", Code.LOAD)
        found = Cat(table.hit for table in tables).any()
        hits = (renewing | removing) & found
        second = tables[1].used < tables[0].used
        room = (second | (tables[0].used != config.bucket_entries)) & ~self.live[config.log_n]
        insert = inserting & ~found & room
        for table, chosen in zip(tables, (~second, second), strict=True):
            m.d.comb += [
                table.renew.eq(renewing),
                table.remove.eq(removing),
                table.insert.eq(insert & chosen),
            ]
        m.d.sync += self.live.eq(self.live + insert - (removing & found))
        with m.If(self.clear):
            m.d.sync += self.live.eq(0)

        hit = Signal(reset_less=True)
        keep = Signal(reset_less=True)
        status = Signal(STATUS_BITS, reset_less=True)
        with m.If(turn[2]):
            m.d.sync += [hit.eq(hits), keep.eq(insert | (renewing & found)), status.eq(Status.MISS)]
            with m.If(command.rejected):
                m.d.sync += status.eq(Status.REJECTED)
            with m.Elif(command.malformed):
                m.d.sync += status.eq(Status.MALFORMED)
            with m.Elif(hits):
                m.d.sync += status.eq(Status.HIT)
            with m.Elif(loading & found):
                m.d.sync += status.eq(Status.DUPLICATE)
            with m.Elif(inserting):
                m.d.sync += status.eq(Mux(room, Status.INSERTED, Status.FULL))
        return hit, status, keep

    def _touch(
        self, m: Module, turn: list[Value], now: Any, hit: Value, tables: list[BucketTable], result: Any
    ) -> None:
        """Drive the pages and records to touch: those of the labels, or of a LOAD the next page."""
        config = self._config
        pages, labels = config.host_pages, config.label_count
        items = config.items // labels
        command = now.command
        loading = Signal(reset_less=True)
        m.d.sync += loading.eq((command.code == Code.LOAD) & ~command.rejected & ~command.malformed)
        following = Signal(config.record_index_bits)
        with m.If(turn[-1] & loading):
            m.d.sync += following.eq(Mux(following == pages - 1, 0, following + 1))
        with m.If(self.clear):
            m.d.sync += following.eq(0)

        for label in range(labels):
            shown = Signal(config.record_index_bits, name=f"shown_{label}", reset_less=True)
            found = tables[0].found[label] | tables[1].found[label]
            m.d.sync += shown.eq(Mux(hit, found, now.miss[label]))
            in_host = shown < pages
            other = now.dummy[label] if items > 1 else shown
            page_valid: Value = in_host & ~loading
            page: Value = Mux(page_valid, shown, other)
            if label == 0:
                page_valid = page_valid | loading
                page = Mux(loading, following, page)
            first = label * items
            m.d.comb += result.page[label].eq(page)
            if items == 1:
                m.d.comb += [
                    result.page_valid[label].eq(page_valid),
                    result.record_valid[first].eq(page_valid | hit),
                    result.record[first].eq(page),
                ]
            else:
                m.d.comb += [
                    result.page_valid[label].eq(1),
                    result.record_valid[first].eq(hit & ~in_host),
                    result.record[first].eq(shown),
                    result.record_valid[first + 1].eq(1),
                    result.record[first + 1].eq(page),
                ]
