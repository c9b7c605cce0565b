"""Fetch of a tile: the reads of each memory port, and the parts that come from the cache."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.core.command import TileCommand
from hw.attention.walk.job import ADDRESS_BITS, UNIT_SHIFT
from hw.attention.walk.layouts import PartCommand, RowsFetch, TilePlan
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid

#: Tiles whose commands are queued: as deep as the RAM of one LUT.  The prefetch must cover memory's latency
#: with the shortest tiles too.
TILES_AHEAD = 32


class TileFetch(wiring.Component):
    """Spreads the keys and values of a stream's tiles over its ports.

    Behaviour
    ---------
    Latency 5 cycles; a tile a cycle.  ``tile``, ``k`` and ``v`` come out of registers, a cycle later, because
    their readers have long paths.
    """

    #: Cycles from ``i`` to the queues of commands.
    LATENCY: ClassVar = 5

    def __init__(self, config: AttentionConfig, *, index: int) -> None:
        self._config = config
        self._index = index
        ports = config.ports
        super().__init__(
            {
                "i": In(stream.Signature(TilePlan(config))),
                #: To the core.  In a job that decodes all streams share the tiles of stream 0, and only its
                #: ``tile`` is used.
                "tile": Out(stream.Signature(TileCommand(config))),
                #: Base address of each port's keys and values.
                **{f"{side}_base": In(data.ArrayLayout(ADDRESS_BITS, ports)) for side in "kv"},
                #: None in a job that decodes.
                **{side: Out(stream.Signature(PartCommand(config))) for side in "kv"},
                #: Key n of the stream is row n // P of port n % P.  A port without a row to read gets no
                #: command.  In a job that decodes each port reads a row for each S P keys of a tile, unless
                #: the pass before had the same keys.
                **{f"{side}_fetch": Out(stream.Signature(RowsFetch(config))).array(ports) for side in "kv"},
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A register; products; sums with the offset; sums with the base; then the queues."""
        m = Module()
        config = self._config
        # `held` is late, and the products begin with it.
        plan = Signal(TilePlan(config), reset_less=True)
        request = plan.request
        ports = config.ports.bit_length() - 1
        roomy = Signal()
        push = Signal(name="push")
        stages = [Signal(name=f"valid_{n}") for n in range(4)]
        m.d.comb += [self.i.ready.eq(roomy), push.eq(stages[-1])]
        m.d.sync += plan.eq(self.i.payload)
        accepted = self.i.valid & self.i.ready
        m.d.sync += [later.eq(now) for now, later in zip([accepted, *stages], stages, strict=False)]

        row: Value = Cat(plan.held[ports : config.index_bits], _tile(config, request))
        prefills: Value = push
        if config.decodes:
            # Selected with the plan, as the products begin with it.
            given, all_streams = self.i.payload, self.i.payload.request.source.decode
            of_stream = Cat(given.held[ports : config.index_bits], _tile(config, given.request))
            of_all = Cat(given.request.lead, _tile(config, given.request))
            row = _after(m, "row", Mux(all_streams, of_all, of_stream)[: len(row)])
            prefills = push & ~_after(m, "decode", request.source.decode, 3)
        fields = {
            "port": _after(m, "port", plan.held[:ports], 3),
            "command": _after(m, "command", request.command, 3, TileCommand(config)),
            "held": _after(m, "held", (plan.held - request.lead)[: config.index_bits + 1], 3),
            "lead": _after(m, "lead", request.lead, 3),
            "store": _after(m, "store", plan.store, 3),
            "slot": _after(m, "slot", plan.slot, 3),
        }
        rows = self._rows(m, plan)
        queues = []
        for side in "kv":
            queues.append((self._queue_parts(m, side, fields), prefills))
            fetches = self._queue_fetches(m, side, request.source, row, rows)
            queues += [
                (queue, push & (count != 0)) for queue, (count, _, _) in zip(fetches, rows, strict=True)
            ]

        command = fields["command"]
        m.submodules.tiles = tiles = Fifo(TileCommand(config), depth=TILES_AHEAD)
        m.submodules.tiles_skid = tiles_skid = Skid(TileCommand(config))
        connect(m, tiles.o, tiles_skid.i)
        connect(m, tiles_skid.o, flipped(self.tile))
        m.d.comb += tiles.i.payload.eq(command)
        queues.append((tiles, push if self._index == 0 else prefills))
        m.d.comb += [queue.i.valid.eq(go) for queue, go in queues]
        # The stages never wait: one enable for all of them had 1,217 loads.  Instead a tile begins only while
        # the queues have room for it and for all in the stages, which their levels do not count yet.
        most = TILES_AHEAD - self.LATENCY - 1
        m.d.sync += roomy.eq(Cat(queue.level <= most for queue, _ in queues).all())
        return m

    def _rows(self, m: Module, plan: Any) -> list[tuple[Value, Value, Value]]:
        """Count the rows of each port: late, with ``skips`` of `port_share`, and two cycles earlier."""
        config, request = self._config, plan.request
        keys = (request.last + 1)[: config.index_bits + 1]
        rows = []
        for p in range(config.ports):
            skips, count = port_share(config, plan.held, keys, p)
            wanted = Mux(request.command.dummy, 0, count)[: config.index_bits + 1]
            if config.decodes:
                of_all_ports = Mux(request.source.again, 0, request.command.last_index + 1)
                wanted = Mux(request.source.decode, of_all_ports, wanted)
                skips = skips & ~request.source.decode
            early = _after(m, f"wanted_{p}", wanted)
            rows.append((_after(m, f"rows_{p}", early, 2), _after(m, f"skips_{p}", skips, 2), early))
        return rows

    def _queue_parts(self, m: Module, side: str, fields: dict[str, Any]) -> Fifo:
        """Queue the command of a side's cache."""
        command = fields["command"]
        m.submodules[f"{side}_parts"] = parts = Fifo(PartCommand(self._config), depth=TILES_AHEAD)
        m.submodules[f"{side}_parts_skid"] = skid = Skid(PartCommand(self._config))
        connect(m, parts.o, skid.i)
        connect(m, skid.o, flipped(getattr(self, side)))
        m.d.comb += [
            parts.i.payload.lead.eq(fields["lead"]),
            parts.i.payload.keys.eq(command.last_index + 1),
            parts.i.payload.held.eq(fields["held"]),
            parts.i.payload.store.eq(fields["store"]),
            parts.i.payload.dummy.eq(command.dummy),
            parts.i.payload.slot.eq(fields["slot"]),
            parts.i.payload.port.eq(fields["port"]),
            parts.i.payload.last_part.eq(command.last_key_part if side == "k" else command.last_value_part),
        ]
        return parts

    def _queue_fetches(
        self, m: Module, side: str, source: Any, row: Value, rows: list[tuple[Value, Value, Value]]
    ) -> list[Fifo]:
        """Queue the reads of each port of a side: ``row`` or the next one, times the units of a row."""
        config, queues = self._config, []
        units = source.key_units if side == "k" else source.value_units
        units_next = _after(m, f"{side}_units", units)
        units_later = _after(m, f"{side}_units_later", units_next, 2)
        offset_later = _after(m, f"{side}_offset", source[f"{side}_offset"])
        lower, upper = (
            _after(
                m,
                f"{side}_{name}",
                offset_later + (_after(m, f"{side}_{product}", number * units) << UNIT_SHIFT),
            )
            for name, product, number in (("lower", "row", row), ("upper", "next", row + 1))
        )
        for p, (count, skips, early) in enumerate(rows):
            base = getattr(self, f"{side}_base")[p]
            m.submodules[f"{side}_fetch_{p}"] = queue = Fifo(RowsFetch(config), depth=TILES_AHEAD)
            connect(m, queue.o, flipped(getattr(self, f"{side}_fetch")[p]))
            address = (base + Mux(skips, upper, lower))[:ADDRESS_BITS]
            m.d.comb += [
                queue.i.payload.address.eq(_after(m, f"{side}_address_{p}", address)),
                queue.i.payload.length.eq(_after(m, f"{side}_length_{p}", early * units_next, 2)),
            ]
            if not config.decodes:
                m.d.comb += [
                    queue.i.payload.rows.rows.eq(count),
                    queue.i.payload.rows.units.eq(units_later),
                ]
            queues.append(queue)
        return queues


def _after(m: Module, name: str, value: Value | Any, cycles: int = 1, shape: Any = None) -> Any:
    """Register ``value`` for so many cycles, beside its tile."""
    for n in range(cycles):
        register = Signal(
            shape if shape is not None else Value.cast(value).shape(), name=f"{name}_{n}", reset_less=True
        )
        m.d.sync += register.eq(value)
        value = register
    return value


def _tile(config: AttentionConfig, request: Any) -> Any:
    """Return the tile's number in its page or head."""
    return request.place if config.paged else request.tile


def port_share(config: AttentionConfig, held: Value, keys: Value, port: int) -> tuple[Value, Value]:
    """Return the share of a port in the keys ``held`` to ``keys - 1`` of a tile.

    With its ``skips`` and ``count`` the port reads ``count`` rows, from row ``held // P + skips`` on.
    """
    ports = config.ports.bit_length() - 1
    skips = held[:ports] > port  # its part of that row is cached
    count = (keys >> ports) - (held >> ports) + (keys[:ports] > port) - skips
    return skips, count
