"""Work on an operation before its lookup: its buckets are located in the log, or requested from HBM."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.oram.config import OramConfig
from hw.oram.core.layouts import command_layout, query_layout
from hw.oram.core.position.labels import Labels
from hw.oram.core.position.recent import RecentBuckets

#: Tables of the position map: a key is in one bucket of either.
TABLES = 2


def place_bits(config: OramConfig) -> int:
    """Return the bits of a place in the log."""
    return (config.position.log - 1).bit_length()


def bucket_number(config: OramConfig, permuted: Value, table: int) -> Value:
    """Return the bucket of a permuted key in a table."""
    return permuted[table * config.bucket_bits :][: config.bucket_bits]


def tag(config: OramConfig, permuted: Value, table: int) -> Value:
    """Return the bits of a permuted key that the bucket's number does not contain."""
    below = table * config.bucket_bits
    return Cat(permuted[:below], permuted[below + config.bucket_bits :])


def turn_layout(config: OramConfig) -> data.StructLayout:
    """Return an operation after the lookahead."""
    records = data.ArrayLayout(unsigned(config.record_index_bits), config.label_count)
    place = unsigned(place_bits(config))
    return data.StructLayout(
        {
            #: ``command``, ``permuted``: as in the query.
            "command": command_layout(config),
            "permuted": config.key_bits,
            #: ``fresh``, ``miss``, ``dummy``: as in `hw.oram.core.position.labels.Labels`.
            "fresh": records,
            "miss": records,
            "dummy": records,
            "place": place,  #: Of its buckets in the log.
            #: For each table. ``logged``: the log has its bucket, which is not requested. ``recent``: the
            #: bucket's place. ``same``: the previous operation has the same bucket.
            "recent": data.ArrayLayout(place, TABLES),
            "logged": TABLES,
            "same": TABLES,
        }
    )


class Lookahead(wiring.Component):
    """Locates the buckets of operations in the log, requests the others, and turns draws into labels.

    Behaviour
    ---------
    Operations are taken at least ``config.interval`` cycles apart. At most ``config.position.inflight`` have
    been taken and are not done; there is room for all. A request follows `LATENCY` cycles after its
    operation was taken.
    """

    #: Cycles from an operation to its requests: a register, the log's places, and a queue.
    LATENCY: ClassVar = 1 + RecentBuckets.LATENCY + Fifo.LATENCY

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        super().__init__(
            {
                "clear": In(1),  #: Empties the log.
                "hold": In(1),  #: Takes no operation.
                "query": In(stream.Signature(query_layout(config))),
                "request": Out(stream.Signature(config.bucket_bits)).array(TABLES),
                "o": Out(stream.Signature(turn_layout(config))),
                "done": In(1),  #: An operation taken from ``o`` has made its changes.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """All lookups have the same latency."""
        m = Module()
        config = self._config
        query = self.query.payload
        take = self._take(m)
        asked = delay(m, "asked", query, 1, reset=False)
        step = delay(m, "step", take, 1)
        found = delay(m, "looked_up", step, RecentBuckets.LATENCY)
        m.submodules.labels = labels = Labels(config)
        m.submodules.waiting = waiting = Fifo(turn_layout(config), depth=config.position.inflight)
        connect(m, waiting.o, flipped(self.o))
        turn = waiting.i.payload
        place = Signal(place_bits(config))
        m.d.comb += [
            Value.cast(labels.draw).eq(Value.cast(asked.draw)),
            waiting.i.valid.eq(found),
            turn.place.eq(place),
        ]
        for name in ("command", "permuted"):
            delayed = delay(m, name, getattr(asked, name), RecentBuckets.LATENCY, reset=False)
            m.d.comb += getattr(turn, name).eq(delayed)
        for name in ("fresh", "miss", "dummy"):
            delayed = delay(
                m, name, getattr(labels, name), RecentBuckets.LATENCY - Labels.LATENCY, reset=False
            )
            m.d.comb += getattr(turn, name).eq(delayed)
        with m.If(found):
            m.d.sync += place.eq(Mux(place == config.position.log - 1, 0, place + 1))
        for n in range(TABLES):
            m.submodules[f"recent_{n}"] = recent = RecentBuckets(
                bits=config.bucket_bits, places=config.position.log
            )
            m.submodules[f"request_{n}"] = request = Fifo(
                config.bucket_bits, depth=config.position.inflight, ram_style="distributed"
            )
            connect(m, request.o, flipped(self.request[n]))
            m.d.comb += [
                recent.clear.eq(self.clear),
                recent.step.eq(step),
                recent.number.eq(bucket_number(config, asked.permuted, n)),
                turn.recent[n].eq(recent.place),
                turn.logged[n].eq(recent.found),
                turn.same[n].eq(recent.same),
                request.i.valid.eq(found & ~recent.found),
                request.i.payload.eq(bucket_number(config, turn.permuted, n)),
            ]
        return m

    def _take(self, m: Module) -> Signal:
        """Take operations at their interval, as far as there is room."""
        config = self._config
        assert config.interval >= RecentBuckets.SPACING
        take = Signal()
        room = Signal(init=1)
        under_way = Signal(range(config.position.inflight + 1))
        following = Signal.like(under_way)
        wait = Signal(range(config.interval))
        m.d.comb += [
            following.eq(under_way + take - self.done),
            self.query.ready.eq(room & (wait == 0) & ~self.hold),
            take.eq(self.query.valid & self.query.ready),
        ]
        m.d.sync += [
            under_way.eq(following),
            room.eq(following != config.position.inflight),
            wait.eq(wait - (wait != 0)),
        ]
        with m.If(take):
            m.d.sync += wait.eq(config.interval - 1)
        return take
