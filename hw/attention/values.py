"""The side of values: reads complete tiles of logits against values, and never lets a tile end too early."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.command import Place, Tile
from hw.attention.config import FRACTION_BITS, AttentionConfig
from hw.attention.delay import delay
from hw.attention.keys import KeySide
from hw.attention.maximum import LogitRead
from hw.attention.reciprocal import Reciprocal
from hw.attention.row import Timing
from hw.lib.fifo import Fifo


class TileEnd(data.StructLayout):
    """The last key of a tile was read.

    Members
    -------
    valid : 1
    opens, closes : 1
        The tile is the first, the last of its query tile.
    bank : 1, rows, output_fraction
        For a tile that closes: where its results go, how many rows count, and their fraction bits.
    """

    def __init__(self, config: AttentionConfig) -> None:
        super().__init__(
            {
                "valid": 1,
                "opens": 1,
                "closes": 1,
                "bank": 1,
                "rows": range(config.rows + 1),
                "output_fraction": FRACTION_BITS,
            }
        )


def spacing(config: AttentionConfig, *, closes: bool) -> int:
    """Give the fewest cycles from the end of a tile to the end of the next: its merge, and its division."""
    return max(config.merge_steps, Reciprocal.INTERVAL) if closes else config.merge_steps


class ValueSide(wiring.Component):
    """Issues values.

    Parameters
    ----------
    config
        Shape of the engine.

    Members
    -------
    i_tile : In(stream of Tile)
        Complete tiles; always ready.
    i_value : In(stream of D x int8)
        A row for each key, in the same order.
    read, exponent, value, first, last
        To the rows, each at its stage (`Timing`).
    place : Out(Place)
        What has been read.
    freed : In(1)
        The results of a query tile have left their bank.
    end : Out(TileEnd)
    blocked, starved : Out(1)
        In this cycle a tile could not end because both banks of results are full; or there was no value.

    Behaviour
    ---------
    One value a cycle.  Everything behind this side takes a fixed time and cannot wait, so whatever a tile's
    end needs is made sure of before its last key is read: that the merge of the tile before will have left
    the finished sums, that the divider will be free, and that a bank of results is.

    Why
    ---
    One place where the pipeline can wait, instead of a handshake at every stage of every row.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        elements = data.ArrayLayout(signed(8), config.head_dim)
        super().__init__(
            {
                "i_tile": In(stream.Signature(Tile(config), always_ready=True)),
                "i_value": In(stream.Signature(elements)),
                "read": Out(LogitRead(config)),
                "exponent": Out(1),
                "value": Out(elements),
                "first": Out(1),
                "last": Out(1),
                "place": Out(Place(config)),
                "freed": In(1),
                "end": Out(TileEnd(config)),
                "blocked": Out(1),
                "starved": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        m.submodules.tiles = tiles = Fifo(Tile(config), depth=KeySide.TILES)
        m.d.comb += [tiles.i.payload.eq(self.i_tile.payload), tiles.i.valid.eq(self.i_tile.valid)]
        tile = tiles.o.payload

        opens = Signal(init=1)
        bank = Signal()
        banks_free = Signal(range(3), init=2)
        wait = Signal(range(spacing(config, closes=True)))
        last, bank_lacks, room, issue, ending = Signal(), Signal(), Signal(), Signal(), Signal()
        m.d.comb += [
            last.eq(self.place.index == tile.last_index),
            bank_lacks.eq(tile.closes & (banks_free == 0)),
            room.eq(~last | ((wait == 0) & ~bank_lacks)),
            issue.eq(tiles.o.valid & room & self.i_value.valid),
            ending.eq(issue & last),
            self.i_value.ready.eq(tiles.o.valid & room),
            tiles.o.ready.eq(ending),
            self.blocked.eq(tiles.o.valid & last & bank_lacks),
            self.starved.eq(tiles.o.valid & room & ~self.i_value.valid),
        ]
        with m.If(issue):
            m.d.sync += self.place.index.eq(Mux(last, 0, self.place.index + 1))
        with m.If(ending):
            m.d.sync += [
                self.place.tile.eq(self.place.tile + 1),
                opens.eq(tile.closes),
                wait.eq(Mux(tile.closes, spacing(config, closes=True), spacing(config, closes=False)) - 1),
            ]
        with m.Elif(wait != 0):
            m.d.sync += wait.eq(wait - 1)
        closing = ending & tile.closes
        m.d.sync += banks_free.eq(banks_free + self.freed - closing)
        with m.If(closing):
            m.d.sync += bank.eq(~bank)

        timing = Timing(config)
        first = issue & (self.place.index == 0)
        m.d.comb += [
            self.read.valid.eq(issue),
            self.read.slot.eq(self.place.tile[0]),
            self.read.index.eq(self.place.index),
            self.read.first.eq(first),
            self.read.last.eq(ending),
            self.exponent.eq(delay(m, "exponent", issue, timing.exponent)),
            self.value.eq(delay(m, "value", self.i_value.payload, timing.value, reset=False)),
            self.first.eq(delay(m, "first", first, timing.value)),
            self.last.eq(delay(m, "last", ending, timing.value)),
            self.end.valid.eq(ending),
            self.end.opens.eq(opens),
            self.end.closes.eq(tile.closes),
            self.end.bank.eq(bank),
            self.end.rows.eq(tile.rows),
            self.end.output_fraction.eq(tile.output_fraction),
        ]
        return m
