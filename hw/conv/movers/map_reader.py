"""Reads maps, and the bypass, through all ports."""

from typing import Any

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import GatherRequest
from hw.conv.movers.gather_requester import GatherRequester
from hw.conv.movers.join import Join, JoinCommand
from hw.conv.movers.layouts import ADDRESS_BITS, GatherRead, MapRead, map_rows
from hw.conv.movers.port_order import PortOrder
from hw.conv.movers.requester import Requester
from hw.conv.movers.shared_read import SharedRead
from hw.lib import axi
from hw.lib.fifo import Fifo
from hw.lib.rows.cutter import RowCutter

#: Maps in the queue, and commands whose words may be outstanding.
_MAPS, _ROWS = 2, 64


class MapReader(wiring.Component):
    """Reads maps in memory as streams of words.

    ``streams``: streams of maps that share the ports.

    Behaviour
    ---------
    A word a cycle, unless ports or memory limit it.

    Why
    ---
    Streams share the ports, whose words arrive in order.  A bypass behind the map of a later job would wait
    for that job, which may wait for the bypass: its weights come after those of the bypass's job.
    """

    def __init__(self, config: ConvConfig, *, data_width: int, streams: int = 2) -> None:
        self._config = config
        self._data_width = data_width
        self._streams = streams
        gather: dict[str, Any] = {
            #: ``gather``, ``requests``, ``gathered``: maps whose pixels are read one by one, see
            #: `GatherRequester`, if the engine can gather.
            "gather": In(stream.Signature(GatherRead(config))),
            "requests": In(stream.Signature(GatherRequest())),
            "gathered": Out(stream.Signature(config.word_bits)),
        }
        super().__init__(
            {
                #: Maps of each stream.  A map of the second stream begins with its ``paired`` map of the
                #: first, and the next map of the first after its last request.
                "i": In(stream.Signature(MapRead(config))).array(streams),
                #: ``token``, ``row_token``: credits for these words; maps of the first stream may use those
                #: of rows, see `Requester`.
                "token": In(stream.Signature(1)).array(streams),
                "row_token": In(stream.Signature(1)),
                "o": Out(stream.Signature(config.word_bits)).array(streams),
                "axi": Out(axi.ReadSignature(data_width=data_width, addr_width=ADDRESS_BITS)).array(
                    config.ports
                ),
                "bytes_useful": Out(48).array(config.ports),
                "busy": Out(1),  #: Requests of a map are outstanding.
                **(gather if config.gather_words else {}),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build requester, cutters and join for each stream and the gather, and a shared DMA for
        each port.
        """
        m = Module()
        config = self._config
        sources = self._streams + (config.gather_words > 0)
        m.submodules.order = order = PortOrder(sources=sources, ports=config.ports)
        readers = []
        requesters: list[tuple[Any, Any]] = []
        for p in range(config.ports):
            reader = SharedRead(sources=sources, data_width=self._data_width)
            connect(m, order.o[p], reader.command)
            m.submodules[f"reader_{p}"] = reader
            connect(m, reader.axi, flipped(self.axi[p]))
            m.d.comb += self.bytes_useful[p].eq(reader.bytes_useful)
            readers.append(reader)
        busy: Any = 0
        for n in range(self._streams):
            m.submodules[f"requester_{n}"] = requester = Requester(config)
            m.submodules[f"maps_{n}"] = maps = Fifo(MapRead(config), depth=_MAPS)
            m.submodules[f"words_{n}"] = words = Fifo(JoinCommand(config), depth=_MAPS)
            connect(m, flipped(self.token[n]), requester.token)
            if n == 0:
                connect(m, flipped(self.row_token), requester.row_token)
            requesters.append((requester, maps.o))
            connect(m, requester.commands, order.i[n])
            given = self.i[n]
            m.d.comb += [
                given.ready.eq(maps.i.ready & words.i.ready),
                maps.i.valid.eq(given.valid & words.i.ready),
                words.i.valid.eq(given.valid & maps.i.ready),
                maps.i.payload.eq(given.payload),
                words.i.payload.words.eq(given.payload.words),
                words.i.payload.total.eq(given.payload.total_words),
            ]
            busy = busy | requester.busy | maps.o.valid
            queues = []
            for p in range(config.ports):
                m.submodules[f"rows_{n}_{p}"] = rows = Fifo(map_rows(config), depth=_ROWS)
                m.d.comb += words.i.payload.units[p].eq(given.payload.ports[p].units)
                connect(m, requester.rows[p], rows.i)
                queues.append(rows.o)
            self._cut(m, str(n), [reader.o[n] for reader in readers], queues, words.o, self.o[n])
        self._in_order(m, requesters)
        if config.gather_words:
            m.submodules.gather = gather = GatherRequester(config, rows_ahead=_ROWS)
            m.submodules.gathers = gathers = Fifo(GatherRead(config), depth=_MAPS)
            connect(m, flipped(self.gather), gathers.i)
            connect(m, gathers.o, gather.i)
            connect(m, flipped(self.requests), gather.requests)
            connect(m, gather.commands, order.i[-1])
            self._cut(
                m, "gather", [reader.o[-1] for reader in readers], gather.rows, gather.joins, self.gathered
            )
        m.d.comb += self.busy.eq(busy)
        return m

    def _in_order(self, m: Module, requesters: Any) -> None:
        """Release maps to the requesters in order: a bypass with its map, the next map after it."""
        begun = Signal()  # a map whose bypass has not begun
        asks, mine = Const(0), []
        for requester, maps in requesters:
            takes = requester.i.valid & requester.i.ready
            m.d.comb += [requester.i.payload.eq(maps.payload), maps.ready.eq(takes)]
            mine.append((requester.i, maps, takes))
        for requester, _ in requesters[1:]:
            asks = requester.busy | requester.commands.valid
        first, maps, takes = mine[0]
        m.d.comb += first.valid.eq(maps.valid & ~begun & ~asks)
        with m.If(takes):
            m.d.sync += begun.eq(maps.payload.paired)
        for bypass, maps, takes in mine[1:]:
            m.d.comb += bypass.valid.eq(maps.valid & begun)
            with m.If(takes):
                m.d.sync += begun.eq(0)

    def _cut(self, m: Module, name: str, data: Any, rows: Any, joins: Any, words: Any) -> None:
        """Join the reads of all ports to the words of one user."""
        config = self._config
        m.submodules[f"join_{name}"] = join = Join(config)
        connect(m, joins, join.command)
        connect(m, join.o, flipped(words))
        for p in range(config.ports):
            m.submodules[f"cutter_{name}_{p}"] = cutter = RowCutter(
                map_rows(config), part_bits=config.word_bits // config.ports, data_width=self._data_width
            )
            connect(m, rows[p], cutter.rows)
            connect(m, data[p], cutter.i)
            connect(m, cutter.o, join.i[p])
