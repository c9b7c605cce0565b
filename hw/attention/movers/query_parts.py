"""Queries from ports to which their parts are dealt in turn."""

from typing import Any, ClassVar

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from hw.attention.config import UNIT_BITS, AttentionConfig
from hw.attention.movers.part_reader import PartReader
from hw.attention.walk.job import ADDRESS_BITS, UNIT_SHIFT
from hw.attention.walk.layouts import QueryPass
from hw.lib import axi
from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.loads import LOADS, copies
from hw.lib.skid import Skid

#: Pieces of passes that may be outstanding.
_PIECES = 256


class QueryParts(wiring.Component):
    """Reads the queries of passes, whose parts lie at Q ports in turn.

    ``config``: shape of the engine, which has ``decode``: a beat of a port is a part, and queries are whole
    parts.

    Behaviour
    ---------
    Part n of all queries lies at port ``n mod Q``, as part ``n // Q`` there.  A piece of a pass a cycle, and
    a part a cycle.

    Why
    ---
    Q ports are faster than the rows, which take a part a cycle, and prefetch Q x `PORT_PARTS` of further
    passes.  This outlasts a refresh of their channels.  With a deeper prefetch, values at the same ports
    would wait for queries of much later passes.  Whole parts need neither an aligner nor a cutter; a port of
    units of 16 bytes needs both.
    """

    #: Parts of a port that may be requested and not yet taken.
    PORT_PARTS: ClassVar = 72
    #: Parts that may wait behind all ports.
    PARTS_AHEAD: ClassVar = 32
    #: Cycles from a pass to its first ``arvalid``, and from ``rvalid`` to ``o.valid``.
    ADDRESS_LATENCY: ClassVar = 1 + Skid.LATENCY + PartReader.ADDRESS_LATENCY
    DATA_LATENCY: ClassVar = PartReader.DATA_LATENCY + PartReader.LATENCY + Fifo.LATENCY + Skid.LATENCY

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        self._elements = data.ArrayLayout(signed(8), config.lanes)
        port = axi.ReadSignature(data_width=config.part_bits, addr_width=ADDRESS_BITS)
        super().__init__(
            {
                #: Addresses and lengths count the bytes of all ports.
                "i": In(stream.Signature(QueryPass(config))),
                #: Base address of each port's queries; constant from a cycle before the first pass.
                "base": In(data.ArrayLayout(ADDRESS_BITS, config.query_port_count)),
                #: The parts of the queries of all passes in order.
                "o": Out(stream.Signature(self._elements)),
                "axi": Out(port).array(config.query_port_count),
                #: Bytes read through each port since reset.
                "bytes_useful": Out(data.ArrayLayout(48, config.query_port_count)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Pieces of passes -> a reader for each port -> their parts in turn -> those that wait."""
        m = Module()
        config, ports = self._config, self._config.query_port_count
        port_bits, part_shift = exact_log2(ports), exact_log2(config.part_bits // UNIT_BITS)

        # A piece: the number of its first part, and of its parts.
        current = self.i.payload.q
        number = Signal(range(config.rows + 1))
        start = Signal(ADDRESS_BITS)  # of the piece, behind the pass's first one
        held = Signal()
        free = Signal()
        place = Signal(ADDRESS_BITS - UNIT_SHIFT - part_shift, reset_less=True)
        parts = Signal(len(current.units) - part_shift, reset_less=True)
        ends = number == current.count - 1
        m.d.comb += self.i.ready.eq(free & ends)
        with m.If(free):
            m.d.sync += [
                held.eq(self.i.valid),
                place.eq((current.address + start)[UNIT_SHIFT + part_shift :]),
                parts.eq(current.units >> part_shift),
            ]
            with m.If(self.i.valid):
                m.d.sync += [
                    number.eq(Mux(ends, 0, number + 1)),
                    start.eq(Mux(ends, 0, start + current.stride)),
                ]

        order = data.StructLayout({"port": port_bits, "parts": parts.shape()})
        m.submodules.orders = orders = Fifo(order, depth=_PIECES, ram_style="distributed")
        m.submodules.order = turns = Skid(order)
        connect(m, orders.o, turns.i)
        first = place[:port_bits]
        m.d.comb += [
            orders.i.payload.port.eq(first),
            orders.i.payload.parts.eq(parts),
        ]
        readers, roomy = [], [orders.i.ready]
        row = data.StructLayout({"place": len(place) - port_bits, "parts": parts.shape()})
        for n in range(ports):
            m.submodules[f"reader_{n}"] = reader = PartReader(config, ahead=self.PORT_PARTS)
            m.submodules[f"row_{n}"] = skid = Skid(row)
            readers.append(reader)
            # Distance of its first part from the piece's first one.
            behind = (Const(n, port_bits) - first)[:port_bits]
            share = (parts + (ports - 1) - behind)[: len(parts) + 1] >> port_bits
            m.d.comb += [
                skid.i.payload.place.eq(place[port_bits:] + (first > n)),
                skid.i.payload.parts.eq(share),
                skid.i.valid.eq(held & free & (share != 0)),
                reader.fetch.payload.address.eq(
                    self.base[n] + (skid.o.payload.place << UNIT_SHIFT + part_shift)
                ),
                reader.fetch.payload.length.eq(skid.o.payload.parts << part_shift),
                reader.fetch.valid.eq(skid.o.valid),
                skid.o.ready.eq(reader.fetch.ready),
                self.bytes_useful[n].eq(reader.bytes_useful),
            ]
            connect(m, reader.axi, flipped(self.axi[n]))
            roomy.append(skid.i.ready)
        # All have room, or no piece waits.
        m.d.comb += [free.eq(~held | Cat(*roomy).all()), orders.i.valid.eq(held & free)]
        self._take(m, turns.o, readers)
        return m

    def _take(self, m: Module, order: Any, readers: list[PartReader]) -> None:
        """Take parts in the order of their pieces, while the queue has room."""
        index = Signal.like(order.payload.parts)
        room = Signal(range(self.PARTS_AHEAD + 1), init=self.PARTS_AHEAD)
        turn = (order.payload.port + index)[: len(order.payload.port)]
        m.submodules.waiting = waiting = Fifo(self._elements, depth=self.PARTS_AHEAD)
        m.submodules.skid = skid = Skid(self._elements)
        connect(m, waiting.o, skid.i)
        connect(m, skid.o, flipped(self.o))
        take = Signal()
        left = Signal()
        ends = index == order.payload.parts - 1
        m.d.comb += [
            take.eq(order.valid & (room != 0) & Array([reader.available for reader in readers])[turn]),
            left.eq(waiting.o.valid & waiting.o.ready),
            order.ready.eq(take & ends),
            *(reader.take.eq(take & (turn == n)) for n, reader in enumerate(readers)),
        ]
        m.d.sync += room.eq(room + left - take)
        with m.If(take):
            m.d.sync += index.eq(Mux(ends, 0, index + 1))

        # Select of the port whose part arrives, in a register for every `LOADS` bits.
        came = delay(m, "came", take, PartReader.LATENCY)
        early = delay(m, "turn", turn, PartReader.LATENCY - 1)
        width = self._config.part_bits
        own = copies(Signal(early.shape(), name="chosen"), -(-width // LOADS))
        m.d.sync += [copy.eq(early) for copy in own]
        chosen = Cat(
            Array([reader.part[low : low + LOADS] for reader in readers])[copy]
            for low, copy in zip(range(0, width, LOADS), own, strict=True)
        )
        m.d.comb += [Value.cast(waiting.i.payload).eq(chosen), waiting.i.valid.eq(came)]
