"""Work on an operation before its lookup: its buckets are requested from HBM and located in the log."""

from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.oram.config import OramConfig
from hw.oram.core.layouts import command_layout, query_layout
from hw.oram.core.position.labels import Labels
from hw.oram.core.position.recent import RecentBuckets

#: Tables of the position map: a key is in one bucket of either.
TABLES = 2


def place_bits(config: OramConfig) -> int:
    """Return the bits of a place in the log, which holds the window and one operation more."""
    return config.position_window.bit_length()


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
            "place": place,  #: Index of its buckets in the log.
            #: For each table. ``logged``: the log has a copy of its bucket. ``recent``: index of the newest
            #: copy.
            "recent": data.ArrayLayout(place, TABLES),
            "logged": TABLES,
            "same": TABLES,  #: For each table: the newest copy is the previous operation's.
        }
    )


class Lookahead(wiring.Component):
    """Requests the buckets of operations, locates their copies in the log, and turns draws into labels.

    Behaviour
    ---------
    At most ``config.position_inflight`` operations have been taken and are not done; there is room for all.
    """

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
        take = Signal()
        under_way = Signal(range(config.position_inflight + 1))
        m.d.sync += under_way.eq(under_way + take - self.done)
        asking = []
        for n in range(TABLES):
            m.submodules[f"request_{n}"] = request = Skid(config.bucket_bits)
            connect(m, request.o, flipped(self.request[n]))
            m.d.comb += [
                request.i.valid.eq(take),
                request.i.payload.eq(bucket_number(config, query.permuted, n)),
            ]
            asking.append(request.i.ready)
        m.d.comb += [
            self.query.ready.eq((under_way != config.position_inflight) & ~self.hold & Cat(asking).all()),
            take.eq(self.query.valid & self.query.ready),
        ]

        asked = delay(m, "asked", query, 1, reset=False)
        step = delay(m, "step", take, 1)
        m.submodules.labels = labels = Labels(config)
        m.submodules.waiting = waiting = Fifo(turn_layout(config), depth=config.position_inflight)
        connect(m, waiting.o, flipped(self.o))
        turn = waiting.i.payload
        place = Signal(place_bits(config))
        assert Labels.LATENCY == RecentBuckets.LATENCY
        m.d.comb += [
            Value.cast(labels.draw).eq(Value.cast(asked.draw)),
            waiting.i.valid.eq(delay(m, "looked_up", step, RecentBuckets.LATENCY)),
            turn.place.eq(place),
        ]
        for name in ("command", "permuted"):
            delayed = delay(m, name, getattr(asked, name), RecentBuckets.LATENCY, reset=False)
            m.d.comb += getattr(turn, name).eq(delayed)
        for name in ("fresh", "miss", "dummy"):
            m.d.comb += getattr(turn, name).eq(getattr(labels, name))
        with m.If(waiting.i.valid):
            m.d.sync += place.eq(place + 1)
        for n in range(TABLES):
            m.submodules[f"recent_{n}"] = recent = RecentBuckets(
                bits=config.bucket_bits, depth=config.position_window
            )
            m.d.comb += [
                recent.clear.eq(self.clear),
                recent.step.eq(step),
                recent.number.eq(bucket_number(config, asked.permuted, n)),
                turn.recent[n].eq(place - 1 - recent.age),
                turn.logged[n].eq(recent.found),
                turn.same[n].eq(recent.found & (recent.age == 0)),
            ]
        return m
