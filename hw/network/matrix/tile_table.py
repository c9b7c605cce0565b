"""The tile table of a pixel feed: k tiles of the layers to come, read in the order of the sweeps."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import payload_register
from hw.lib.memory import ports, uninitialised
from hw.network.matrix.feed_command import MOST_STEPS, TABLE_ENTRIES, FeedCommand, TileEntry
from hw.network.scratchpad.shape import GranuleShape


class Tile(data.StructLayout):
    """A k tile of a sweep; ``offset`` of its entry includes the group's."""

    def __init__(self, shape: GranuleShape) -> None:
        super().__init__(
            {
                "entry": TileEntry(shape),
                "steps": range(MOST_STEPS + 1),  #: Pixels of the block.
                "begins": 1,  #: The command's first tile.
                "last": 1,  #: The block's last tile.
                "final": 1,  #: The block is the command's last.
            }
        )


class TileTable(wiring.Component):
    """Keeps the entries of commands in a ring, and sends those of the current command tile by tile.

    Behaviour
    ---------
    A command's entries come in order of the commands, at any time.  The command begins when all of its
    entries are there, and frees them after its last tile.  Then a tile a cycle: for each block, for each n
    tile, for each k tile.
    """

    #: From a command to its first tile: command, begin, RAM, tile.
    LATENCY = 4

    def __init__(self, shape: GranuleShape) -> None:
        self._shape = shape
        super().__init__(
            {
                "entry": In(stream.Signature(TileEntry(shape))),
                "command": In(stream.Signature(FeedCommand(shape))),  #: Taken when the last one has ended.
                "tile": Out(stream.Signature(Tile(shape))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Ring -> counters of the loops -> RAM -> tile."""
        m = Module()
        shape, layout = self._shape, TileEntry(self._shape)
        m.submodules.ring = ring = uninitialised(width=layout.size, depth=TABLE_ENTRIES, ram_style="block")
        to_ring, from_ring = ports(ring)
        level = Signal(range(TABLE_ENTRIES + 1))
        newest = Signal(range(TABLE_ENTRIES))
        written = Signal()
        freed = Signal()
        now = Signal(FeedCommand(shape))
        m.d.comb += [
            self.entry.ready.eq(level != TABLE_ENTRIES),
            written.eq(self.entry.valid & self.entry.ready),
            to_ring.en.eq(written),
            to_ring.addr.eq(newest),
            to_ring.data.eq(Value.cast(self.entry.payload)),
        ]
        m.d.sync += [
            newest.eq(newest + written),
            level.eq(level + written - Mux(freed, now.k_tiles, 0)),
        ]

        held = Signal()  # a command is here
        begun = Signal()  # and all of its entries
        first = Signal(range(TABLE_ENTRIES))
        m.d.comb += self.command.ready.eq(~held)
        with m.If(~held):
            m.d.sync += [held.eq(self.command.valid), now.eq(self.command.payload)]
        with m.If(freed):
            m.d.sync += [held.eq(0), begun.eq(0), first.eq(first + now.k_tiles)]
        with m.Elif(held):
            m.d.sync += begun.eq(level >= now.k_tiles)

        step = Signal()
        fetched = Signal()  # the RAM's output is a tile
        begins = Signal()
        last = Signal()
        final = Signal()
        steps = Signal.like(now.steps)
        group = Signal(shape.granule_address_bits)
        fresh = Signal()  # the next tile is the command's first
        moves = ~self.tile.valid | self.tile.ready
        m.d.comb += [
            step.eq(begun & ~freed & (~fetched | moves)),
            from_ring.en.eq(step),
        ]
        ended, flags = self._loops(m, now, begun, step, first, from_ring.addr)
        m.d.sync += freed.eq(step & ended)
        with m.If(step):
            m.d.sync += [
                fresh.eq(0),
                begins.eq(fresh),
                last.eq(flags[0]),
                final.eq(flags[1]),
                steps.eq(Mux(flags[1], now.last_steps, now.steps)),
                group.eq(flags[2]),
            ]
        with m.If(~begun):
            m.d.sync += fresh.eq(1)
        with m.If(~fetched | moves):
            m.d.sync += fetched.eq(step)
        with m.If(moves):
            m.d.sync += self.tile.valid.eq(fetched)
        tile = payload_register(m, self.tile.payload)
        entry = data.View(layout, from_ring.data)
        with m.If(moves):
            m.d.sync += [
                tile.entry.eq(entry),
                tile.entry.offset.eq(entry.offset + group),
                tile.steps.eq(steps),
                tile.begins.eq(begins),
                tile.last.eq(last),
                tile.final.eq(final),
            ]
        return m

    def _loops(
        self, m: Module, now: Any, begun: Signal, step: Signal, first: Signal, address: Signal
    ) -> tuple[Value, tuple[Value, Value, Value]]:
        """Count k tiles, n tiles and blocks; return the end, and a tile's ``last``, ``final`` and group."""
        row = Signal.like(first)
        group = Signal(self._shape.granule_address_bits)
        loops: dict[str, tuple[Signal, Signal]] = {}
        for name in ("k_tiles", "group_tiles", "n_tiles", "blocks"):
            # Rounds after this one, and whether there are none.
            loops[name] = Signal.like(now[name], name=f"{name}_left"), Signal(name=f"{name}_last")

        def restart(name: str) -> list[Any]:
            left, last = loops[name]
            return [left.eq(now[name] - 1), last.eq(now[name] == 1)]

        def count(name: str) -> list[Any]:
            left, last = loops[name]
            return [left.eq(left - 1), last.eq(left == 1)]

        k_last, group_last, n_last, final = (last for _, last in loops.values())
        m.d.comb += address.eq(row)
        with m.If(~begun):
            m.d.sync += [row.eq(first), group.eq(0), *(each for name in loops for each in restart(name))]
        with m.Elif(step):
            m.d.sync += [row.eq(row + 1), *count("k_tiles")]
            with m.If(k_last):
                m.d.sync += [row.eq(first), *restart("k_tiles"), *count("n_tiles"), *count("group_tiles")]
                with m.If(group_last):
                    m.d.sync += [group.eq(group + now.group_pitch), *restart("group_tiles")]
                with m.If(n_last):
                    m.d.sync += [group.eq(0), *restart("group_tiles"), *restart("n_tiles"), *count("blocks")]
        last = k_last & n_last
        return last & final, (last, final, group)
