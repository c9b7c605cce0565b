"""What is done for an operation before its turn: its buckets are asked for, in HBM and in the log."""

from __future__ import annotations

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
from hw.oram.core.position.recent import Recent

#: Tables of the position map: a key is in a bucket of the one or of the other.
TABLES = 2


def place_bits(config: OramConfig) -> int:
    """Return the bits of a place in the log, which has room for the window and one operation more."""
    return config.position_window.bit_length()


def bucket_number(config: OramConfig, permuted: Value, table: int) -> Value:
    """Return the bucket of a permuted key in a table."""
    return permuted[table * config.bucket_bits :][: config.bucket_bits]


def tag(config: OramConfig, permuted: Value, table: int) -> Value:
    """Return what the bucket of a table does not tell of a permuted key."""
    below = table * config.bucket_bits
    return Cat(permuted[:below], permuted[below + config.bucket_bits :])


def turn_layout(config: OramConfig) -> data.StructLayout:
    """Return what is known of an operation when its turn comes."""
    records = data.ArrayLayout(unsigned(config.record_index_bits), config.label_count)
    place = unsigned(place_bits(config))
    return data.StructLayout(
        {
            #: ``command``, ``permuted``: as in the query.
            "command": command_layout(config),
            "permuted": config.key_bits,
            #: ``fresh``, ``miss``, ``dummy``: of its draws; see `hw.oram.core.position.labels.Labels`.
            "fresh": records,
            "miss": records,
            "dummy": records,
            "place": place,  #: Where the log keeps its buckets.
            #: ``logged``, ``recent``: for each table: whether the log has its bucket, and the place where the
            #: newest lies.
            "recent": data.ArrayLayout(place, TABLES),
            "logged": TABLES,
            "same": TABLES,  #: For each table: whether the newest is the operation before.
        }
    )


class Lookahead(wiring.Component):
    """Asks for the buckets of operations, finds out which of them the log has, and makes labels of the draws.

    Behaviour
    ---------
    At most ``config.position_inflight`` operations have been taken and are not done; for as many there is
    room.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        super().__init__(
            {
                "clear": In(1),  #: The log has nothing.
                "hold": In(1),  #: No operation is taken.
                "query": In(stream.Signature(query_layout(config))),
                "request": Out(stream.Signature(config.bucket_bits)).array(TABLES),
                "o": Out(stream.Signature(turn_layout(config))),
                "done": In(1),  #: An operation that was taken from ``o`` has made its changes.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """All that looks up takes as long."""
        m = Module()
        config = self._config
        query = self.query.payload
        take, under_way = Signal(), Signal(range(config.position_inflight + 1))
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
        turn, place = waiting.i.payload, Signal(place_bits(config))
        assert Labels.LATENCY == Recent.LATENCY
        m.d.comb += [
            Value.cast(labels.draw).eq(Value.cast(asked.draw)),
            waiting.i.valid.eq(delay(m, "looked_up", step, Recent.LATENCY)),
            turn.place.eq(place),
        ]
        for name in ("command", "permuted"):
            known = delay(m, name, getattr(asked, name), Recent.LATENCY, reset=False)
            m.d.comb += getattr(turn, name).eq(known)
        for name in ("fresh", "miss", "dummy"):
            m.d.comb += getattr(turn, name).eq(getattr(labels, name))
        with m.If(waiting.i.valid):
            m.d.sync += place.eq(place + 1)
        for n in range(TABLES):
            m.submodules[f"recent_{n}"] = recent = Recent(
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
