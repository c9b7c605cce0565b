"""Fetch of a tile: what each memory port reads, and which parts come from the cache."""

from __future__ import annotations

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

#: Tiles whose commands may wait.  What is read ahead must cover memory's latency with the shortest tiles too;
#: as deep as the RAM that one LUT makes.
TILES_AHEAD = 32


class TileFetch(wiring.Component):
    """Spreads a stream's tiles over its ports.

    Behaviour
    ---------
    Latency 5 cycles; a tile a cycle.  ``tile``, ``k`` and ``v``, whose readers have long paths, come out of
    registers, a cycle later.
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
                #: To the core; of a job that decodes, whose tiles all streams share, from stream 0 only.
                "tile": Out(stream.Signature(TileCommand(config))),
                #: Address of each port's part of keys and of values.
                **{f"{side}_base": In(data.ArrayLayout(ADDRESS_BITS, ports)) for side in "kv"},
                #: None of a job that decodes.
                **{side: Out(stream.Signature(PartCommand(config))) for side in "kv"},
                #: Key n of the stream's keys of a head is row n // P of port n % P.  A port without a row to
                #: read gets no command.  In a job that decodes, each port reads a row for each S P keys of a
                #: tile, unless the pass before had the same.
                **{f"{side}_fetch": Out(stream.Signature(RowsFetch(config))).array(ports) for side in "kv"},
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A register, products, sums with the offset, sums with the base; then the queues."""
        m = Module()
        config = self._config
        # What is held comes late, and the products begin with it.
        plan = Signal(TilePlan(config), reset_less=True)
        request = plan.request
        ports = config.ports.bit_length() - 1
        roomy, push = Signal(), Signal()
        stages = [Signal(name=f"valid_{n}") for n in range(4)]
        m.d.comb += [self.i.ready.eq(roomy), push.eq(stages[-1])]

        def after(name: str, value: Value | Any, cycles: int = 1, shape: Any = None) -> Any:
            """Register what goes with the tile."""
            for n in range(cycles):
                register = Signal(
                    shape if shape is not None else Value.cast(value).shape(),
                    name=f"{name}_{n}",
                    reset_less=True,
                )
                m.d.sync += register.eq(value)
                value = register
            return value

        m.d.sync += plan.eq(self.i.payload)
        accepted = self.i.valid & self.i.ready
        m.d.sync += [later.eq(now) for now, later in zip([accepted, *stages], stages, strict=False)]

        keys = (request.last + 1)[: config.index_bits + 1]
        row: Value = Cat(plan.held[ports : config.index_bits], _tile(config, request))
        prefills: Value = push
        if config.decodes:
            # Chosen with the plan, as the products begin with it.
            given, all_streams = self.i.payload, self.i.payload.request.source.decode
            of_stream = Cat(given.held[ports : config.index_bits], _tile(config, given.request))
            of_all = Cat(given.request.lead, _tile(config, given.request))
            row = after("row", Mux(all_streams, of_all, of_stream)[: len(row)])
            prefills = push & ~after("decode", request.source.decode, 3)
        port = after("port", plan.held[:ports], 3)
        command = after("command", request.command, 3, TileCommand(config))
        held = after("held", (plan.held - request.lead)[: config.index_bits + 1], 3)
        lead, store = after("lead", request.lead, 3), after("store", plan.store, 3)
        slot = after("slot", plan.slot, 3)
        rows = []
        for p in range(config.ports):
            skips, count = port_share(config, plan.held, keys, p)
            wanted = Mux(request.command.dummy, 0, count)[: config.index_bits + 1]
            if config.decodes:
                of_all_ports = Mux(request.source.again, 0, request.command.last_index + 1)
                wanted = Mux(request.source.decode, of_all_ports, wanted)
                skips = skips & ~request.source.decode
            early = after(f"wanted_{p}", wanted)
            rows.append((after(f"rows_{p}", early, 2), after(f"skips_{p}", skips, 2), early))

        queues = []
        for side, units, last_part, offset in (
            ("k", request.source.key_units, command.last_key_part, request.source.k_offset),
            ("v", request.source.value_units, command.last_value_part, request.source.v_offset),
        ):
            m.submodules[f"{side}_parts"] = parts = Fifo(PartCommand(config), depth=TILES_AHEAD)
            m.submodules[f"{side}_parts_skid"] = skid = Skid(PartCommand(config))
            connect(m, parts.o, skid.i)
            connect(m, skid.o, flipped(getattr(self, side)))
            m.d.comb += [
                parts.i.payload.lead.eq(lead),
                parts.i.payload.keys.eq(command.last_index + 1),
                parts.i.payload.held.eq(held),
                parts.i.payload.store.eq(store),
                parts.i.payload.dummy.eq(command.dummy),
                parts.i.payload.slot.eq(slot),
                parts.i.payload.port.eq(port),
                parts.i.payload.last_part.eq(last_part),
            ]
            queues.append((parts, prefills))
            units_next = after(f"{side}_units", units)
            units_later = after(f"{side}_units_later", units_next, 2)
            offset_later = after(f"{side}_offset", offset)
            lower = after(f"{side}_lower", offset_later + (after(f"{side}_row", row * units) << UNIT_SHIFT))
            upper = after(
                f"{side}_upper", offset_later + (after(f"{side}_next", (row + 1) * units) << UNIT_SHIFT)
            )
            for p, (count, skips, early) in enumerate(rows):
                base = getattr(self, f"{side}_base")[p]
                m.submodules[f"{side}_fetch_{p}"] = queue = Fifo(RowsFetch(config), depth=TILES_AHEAD)
                connect(m, queue.o, flipped(getattr(self, f"{side}_fetch")[p]))
                m.d.comb += [
                    queue.i.payload.address.eq(
                        after(f"{side}_address_{p}", (base + Mux(skips, upper, lower))[:ADDRESS_BITS])
                    ),
                    queue.i.payload.length.eq(after(f"{side}_length_{p}", early * units_next, 2)),
                ]
                if not config.decodes:
                    m.d.comb += [
                        queue.i.payload.rows.rows.eq(count),
                        queue.i.payload.rows.units.eq(units_later),
                    ]
                queues.append((queue, push & (count != 0)))

        m.submodules.tiles = tiles = Fifo(TileCommand(config), depth=TILES_AHEAD)
        m.submodules.tiles_skid = tiles_skid = Skid(TileCommand(config))
        connect(m, tiles.o, tiles_skid.i)
        connect(m, tiles_skid.o, flipped(self.tile))
        m.d.comb += tiles.i.payload.eq(command)
        queues.append((tiles, push if self._index == 0 else prefills))
        m.d.comb += [queue.i.valid.eq(go) for queue, go in queues]
        # The stages never wait: one enable for all of them had 1,217 loads.  Instead no tile begins unless
        # the queues have room for it and for all on the way, whose pushes the levels do not yet know.
        most = TILES_AHEAD - self.LATENCY - 1
        m.d.sync += roomy.eq(Cat(queue.level <= most for queue, _ in queues).all())
        return m


def _tile(config: AttentionConfig, request: Any) -> Any:
    """Return the number that a tile's rows are told by."""
    return request.place if config.paged else request.tile


def port_share(config: AttentionConfig, held: Value, keys: Value, port: int) -> tuple[Value, Value]:
    """Return what a port has of keys ``held`` to ``keys - 1`` of a tile.

    Returns
    -------
    skips, count
        It has ``count`` rows, from row ``held // P + skips`` on.
    """
    ports = config.ports.bit_length() - 1
    skips = held[:ports] > port  # it has given its part of that row already
    count = (keys >> ports) - (held >> ports) + (keys[:ports] > port) - skips
    return skips, count
