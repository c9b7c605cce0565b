"""The attention feed: commands become the streams of the attention core, from words of the scratchpad."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.core.command import QueryCommand, TileCommand
from hw.attention.core.settings import RowSettings
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.network.attention.config import AttentionUnitConfig
from hw.network.attention.head_buffer import HeadBuffer
from hw.network.attention.layouts import AttentionFields, PassRun, QueryPass, RowPlace, RowRun
from hw.network.attention.pass_walk import PassWalk, SettingsPass, SettingsWalk, TileWalk
from hw.network.attention.row_walk import RowWalk
from hw.network.scratchpad.reader import GranuleReader, GranuleReadPort, GranuleRequest

#: Commands that each walk may be behind the first one.
COMMANDS_AHEAD = 4
#: Queries that are asked for and not loaded, and passes whose commands wait for the core.
_QUERIES, _PASSES = 32, 4
#: Words that a port may be asked for before they arrive.
_ORDERS = 64


class AttentionFeed(wiring.Component):
    """Reads queries, keys and values of commands, and sends them to the core.

    Behaviour
    ---------
    Each stream of the core gets an item a cycle, also from head to head and from command to command.  A key
    and a value are read once for all queries of their head.  Lanes beyond a head's elements are zero.

    Port 0 reads keys, and port 1 queries and values.  Queries come first while none is there, in turn with
    values while fewer than those of a pass are asked for, and else last.
    """

    #: From a command to the first query, and to the first key, when no other port asks for their banks.
    QUERY_LATENCY = Fifo.LATENCY + RowWalk.LATENCY + Skid.LATENCY + GranuleReader.LATENCY + 1 + Fifo.LATENCY
    KEY_LATENCY = QUERY_LATENCY - Fifo.LATENCY + HeadBuffer.LATENCY

    def __init__(self, config: AttentionUnitConfig) -> None:
        self._config = config
        core = config.core
        bits = 8 * config.lanes
        super().__init__(
            {
                "command": In(stream.Signature(AttentionFields(config))),
                "read": Out(GranuleReadPort(config.shape)).array(2),
                #: To the core, see `hw.attention.core.command`.  Parts are plain bits: for Yosys' ABC9 an
                #: array's element and a bit of its port may have the same name.
                "query_command": Out(stream.Signature(QueryCommand(core))),
                "row": Out(stream.Signature(RowSettings(core))),
                "query": Out(stream.Signature(bits)),
                "tile": Out(stream.Signature(TileCommand(core))),
                "key": Out(stream.Signature(bits)),
                "value": Out(stream.Signature(bits)),
                #: The words of each row of results, in the core's order; ``last`` is the command's last one.
                "place": Out(stream.Signature(RowPlace(config, config.beat_granules))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Walks of rows -> requests; words -> queries and buffers; walks of passes -> the core's commands."""
        m = Module()
        config = self._config
        walks, passes = self._walks(m)
        connect(m, walks["o"].o, flipped(self.place))
        buffers = {}
        for name, port in (("key", self.key), ("value", self.value)):
            m.submodules[f"{name}_buffer"] = buffers[name] = buffer = HeadBuffer(config)
            connect(m, buffer.o, flipped(port))
        self._passes(m, passes, buffers)

        self._read_keys(m, walks["k"].o, buffers["key"])
        self._read_others(m, walks["q"].o, walks["v"].o, buffers["value"])
        return m

    def _walks(self, m: Module) -> tuple[dict[str, RowWalk], PassWalk]:
        """Place the walks of a command, each behind a queue; a command is taken when all have room."""
        config, given = self._config, self.command.payload
        words = {"q": config.granules, "k": config.granules, "v": config.granules, "o": config.beat_granules}
        walks = {name: RowWalk(config, granules=granules) for name, granules in words.items()}
        m.submodules.pass_walk = passes = PassWalk(config)
        queues = {}
        for name, walk in walks.items():
            m.submodules[f"{name}_walk"] = walk
            m.submodules[f"{name}_runs"] = queues[name] = queue = Fifo(RowRun(config), depth=COMMANDS_AHEAD)
            connect(m, queue.o, walk.i)
            run = queue.i.payload
            m.d.comb += [
                run.rows.eq(given[name]),
                run.last_row.eq(given.last_key if name in "kv" else given.last_query),
                run.last_head.eq(given.last_head),
                run.units.eq(given.units),
            ]
        m.submodules.pass_runs = queues["passes"] = queue = Fifo(PassRun(config), depth=COMMANDS_AHEAD)
        connect(m, queue.o, passes.i)
        m.d.comb += [queue.i.payload[field].eq(given[field]) for field, _ in PassRun(config)]
        take = Signal()
        m.d.comb += [
            self.command.ready.eq(Cat(queue.i.ready for queue in queues.values()).all()),
            take.eq(self.command.valid & self.command.ready),
            *(queue.i.valid.eq(take) for queue in queues.values()),
        ]
        return walks, passes

    def _passes(self, m: Module, passes: PassWalk, buffers: dict[str, HeadBuffer]) -> None:
        """Share out each pass to the core's commands, to its rows and tiles, and to the buffers."""
        config = self._config
        given: Any = passes.o.payload
        m.submodules.waiting_passes = commands = Fifo(QueryPass(config), depth=_PASSES)
        m.submodules.settings_passes = settings = Fifo(SettingsPass(config), depth=_PASSES)
        m.submodules.tile_passes = tiles = Fifo(range(config.tokens), depth=_PASSES)
        m.submodules.settings_walk = settings_walk = SettingsWalk(config)
        m.submodules.tile_walk = tile_walk = TileWalk(config)
        connect(m, settings.o, settings_walk.i)
        connect(m, tiles.o, tile_walk.i)
        connect(m, settings_walk.o, flipped(self.row))
        # Registers: the core's handshakes of keys, passes and queries follow from the tile in one cycle.
        m.submodules.tile = tile = Skid(TileCommand(config.core))
        connect(m, tile_walk.o, tile.i)
        connect(m, tile.o, flipped(self.tile))
        spans = [buffer.span for buffer in buffers.values()]
        inputs = [commands.i, settings.i, tiles.i, *spans]
        share = Signal()
        room = Cat(each.ready for each in inputs).all()
        m.d.comb += [
            share.eq(passes.o.valid & room),
            passes.o.ready.eq(room),
            *(each.valid.eq(share) for each in inputs),
            commands.i.payload.eq(given),
            *(settings.i.payload[name].eq(given[name]) for name in ("rows", "visible", "causal")),
            *(settings.i.payload[name].eq(given.scales[name]) for name in ("multiplier", "shift")),
            tiles.i.payload.eq(given.last_key),
            *(span.payload.last.eq(given.last_key) for span in spans),
            *(span.payload.frees.eq(given.ends_head) for span in spans),
        ]
        m.submodules.command = command = Skid(QueryCommand(config.core))
        now = commands.o.payload
        m.d.comb += [
            command.i.payload.rows.eq(now.rows),
            command.i.payload.value_units.eq(now.units),
            command.i.payload.scale.eq(now.scales.output),
            command.i.valid.eq(commands.o.valid),
            commands.o.ready.eq(command.i.ready),
        ]
        connect(m, command.o, flipped(self.query_command))

    def _read_keys(self, m: Module, places: Any, keys: HeadBuffer) -> None:
        """Read a key while the buffer has room."""
        requests, row, came = self._port(m, 0)
        m.d.comb += [
            requests.i.valid.eq(places.valid & keys.room),
            requests.i.payload.address.eq(places.payload.address),
            requests.i.payload.enable.eq(places.payload.enable),
            keys.asked.eq(requests.i.valid & requests.i.ready),
            places.ready.eq(keys.asked),
            keys.row.eq(row),
            keys.arrived.eq(came),
        ]

    def _read_others(self, m: Module, query_places: Any, value_places: Any, values: HeadBuffer) -> None:
        """Read queries and values."""
        m.submodules.queries = queries = Fifo(8 * self._config.lanes, depth=_QUERIES)
        m.submodules.orders = orders = Fifo(1, depth=_ORDERS)  # whether each word is a query
        connect(m, queries.o, flipped(self.query))
        requests, row, came = self._port(m, 1)
        room = Signal(init=1)
        free = Signal(range(_QUERIES + 1), init=_QUERIES)
        was_query = Signal()
        is_query = Signal()
        wants_query = Signal()
        wants_value = Signal()
        picks_query = Signal()
        asked = Signal()
        go = requests.i.ready & orders.i.ready
        few = free > _QUERIES - self._config.rows
        m.d.comb += [
            wants_query.eq(query_places.valid & room),
            wants_value.eq(value_places.valid & values.room),
            picks_query.eq(wants_query & (~wants_value | queries.empty | (few & ~was_query))),
            asked.eq(picks_query & go),
            values.asked.eq(wants_value & ~picks_query & go),
            query_places.ready.eq(asked),
            value_places.ready.eq(values.asked),
            requests.i.valid.eq(asked | values.asked),
            *(
                requests.i.payload[name].eq(
                    Mux(picks_query, query_places.payload[name], value_places.payload[name])
                )
                for name in ("address", "enable")
            ),
            orders.i.valid.eq(requests.i.valid),
            orders.i.payload.eq(picks_query),
            orders.o.ready.eq(self.read[1].response.valid),
            queries.i.payload.eq(row),
            queries.i.valid.eq(came & is_query),
            values.row.eq(row),
            values.arrived.eq(came & ~is_query),
        ]
        m.d.sync += is_query.eq(orders.o.payload)
        with m.If(go & (wants_query | wants_value)):
            m.d.sync += was_query.eq(picks_query)
        left = self.query.valid & self.query.ready
        with m.If(asked & ~left):
            m.d.sync += [free.eq(free - 1), room.eq(free != 1)]
        with m.If(left & ~asked):
            m.d.sync += [free.eq(free + 1), room.eq(1)]

    def _port(self, m: Module, number: int) -> tuple[Skid, Signal, Signal]:
        """Return the requests of a port, the word that it has read, and whether there is one."""
        config, port = self._config, self.read[number]
        m.submodules[f"requests_{number}"] = requests = Skid(GranuleRequest(config.shape))
        connect(m, requests.o, flipped(port.request))
        word = port.response.payload
        row = Signal(8 * config.lanes, name=f"row_{number}", reset_less=True)
        came = Signal(name=f"came_{number}")
        bits = config.shape.granule_bits
        m.d.comb += port.response.ready.eq(1)
        m.d.sync += [
            came.eq(port.response.valid),
            row.eq(
                Cat(Value.cast(word.data[n]) & word.enable[n].replicate(bits) for n in range(config.granules))
            ),
        ]
        return requests, row, came
