"""A buffer of the keys, or of the values, of a head: each pass of the head takes them again."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.fifo import Fifo
from hw.lib.memory import ports, uninitialised
from hw.lib.skid import Skid
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.layouts import Span

#: Passes that wait.
_SPANS = 8


class HeadBuffer(wiring.Component):
    """A ring of rows that are read once from the scratchpad.

    Behaviour
    ---------
    A row a cycle on ``o``, also from pass to pass and from head to head.  A pass starts again at the first
    row of its head, and may take rows while later ones arrive.  The last pass of a head frees its rows one by
    one.

    Why
    ---
    A head of 128 tokens has eight passes of 16 queries.  Without the ring each pass would read all keys and
    values: with the queries, 272 words in 128 cycles, more than two ports have.
    """

    #: Cycles from ``arrived`` to ``o``: RAM, its output latch, register.
    LATENCY = 2 + Skid.LATENCY

    def __init__(self, config: AttentionUnitConfig) -> None:
        self._config = config
        self._width = 8 * config.lanes
        super().__init__(
            {
                "span": In(stream.Signature(Span(config))),  #: Of each pass.
                "room": Out(1, init=1),  #: A row may be asked for.
                "asked": In(1),  #: One is; only with ``room``.
                "arrived": In(1),  #: ``row`` is the next row asked for.
                "row": In(self._width),
                "o": Out(stream.Signature(self._width)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Rows -> RAM -> its output latch -> register."""
        m = Module()
        depth = self._config.tokens
        m.submodules.ram = ram = uninitialised(width=self._width, depth=depth, ram_style="block")
        write, read = ports(ram)
        m.submodules.output = output = Skid(self._width)
        m.submodules.spans = spans = Fifo(Span(self._config), depth=_SPANS)
        connect(m, flipped(self.span), spans.i)
        write_row = Signal(range(depth))
        first = Signal(range(depth))  # place of the head's first row
        place = Signal(range(depth))  # of the next row
        index = Signal(range(depth + 1))  # of the next row in its head
        after = Signal(range(depth + 1), init=1)  # ``index + 1``
        filled = Signal(range(depth + 1))  # rows from the head's first one on
        some = Signal()  # ``filled > index``
        latched = Signal()
        fetch = Signal()
        ends = Signal()
        leaves = Signal()  # the head has no more passes
        span = spans.o.payload
        m.d.comb += [
            write.en.eq(self.arrived),
            write.addr.eq(write_row),
            write.data.eq(self.row),
            fetch.eq(some & spans.o.valid & (~latched | output.i.ready)),
            ends.eq(index == span.last),
            leaves.eq(fetch & ends & span.frees),
            spans.o.ready.eq(fetch & ends),
            read.en.eq(fetch),
            read.addr.eq(place),
            output.i.valid.eq(latched),
            output.i.payload.eq(read.data),
        ]
        connect(m, output.o, flipped(self.o))
        following = (place + 1)[: len(place)]
        with m.If(self.arrived):
            m.d.sync += write_row.eq(write_row + 1)
        m.d.sync += [
            filled.eq(filled + self.arrived - Mux(leaves, after, 0)),
            some.eq(self.arrived | Mux(fetch, (filled != after) | (ends & ~span.frees), some)),
        ]
        with m.If(fetch):
            m.d.sync += [
                latched.eq(1),
                index.eq(Mux(ends, 0, after)),
                after.eq(Mux(ends, 1, after + 1)),
                place.eq(Mux(ends & ~span.frees, first, following)),
            ]
        with m.Elif(output.i.ready):
            m.d.sync += latched.eq(0)
        with m.If(leaves):
            m.d.sync += first.eq(following)
        self._count(m, fetch & span.frees)
        return m

    def _count(self, m: Module, freed: Value) -> None:
        """Count the places of rows that are neither asked for nor held."""
        free = Signal(range(self._config.tokens + 1), init=self._config.tokens)
        with m.If(self.asked & ~freed):
            m.d.sync += [free.eq(free - 1), self.room.eq(free != 1)]
        with m.If(freed & ~self.asked):
            m.d.sync += [free.eq(free + 1), self.room.eq(1)]
