"""The side of keys: loads queries, passes keys to the rows, and says when a tile's logits are complete."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.command import KEYS_BITS, Command, Place, Tile
from hw.attention.config import MULTIPLIER_BITS, SHIFT_BITS, AttentionConfig
from hw.attention.delay import delay
from hw.attention.maximum import LogitWrite
from hw.attention.row import Timing


class KeySide(wiring.Component):
    """Issues keys.

    Parameters
    ----------
    config
        Shape of the engine.

    Members
    -------
    i_command : In(stream of Command)
    i_query : In(stream of D x int8)
        ``rows`` transfers for each command, row 0 first.
    i_key : In(stream of D x int8)
        ``keys`` transfers for each command.
    query : Out(D x int8), load : Out(rows), swap : Out(1)
        To the rows; ``load`` has a bit for each.
    key : Out(D x int8)
        To the rows: the key taken in the cycle before.
    multiplier, shift, write
        To the rows, at their stages (`Timing`).
    read : In(Place)
        How far the other side has emptied the logit buffers.
    tile : Out(stream of Tile)
        Complete tiles, valid for a cycle: the receiver must always have room for `TILES` of them.
    issue, blocked, starved, unloaded : Out(1)
        In this cycle a key is taken; or there is none because the logit buffers are full, or because none has
        come, or because the next query tile is not loaded although its command is there.

    Behaviour
    ---------
    One key a cycle, also from one query tile to the next: queries load into waiting registers while the query
    tile before computes.  A tile takes a slot of the logit buffers whatever its length.
    """

    #: Complete tiles that the other side may not have read to their end.
    TILES = 4

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        elements = data.ArrayLayout(signed(8), config.head_dim)
        super().__init__(
            {
                "i_command": In(stream.Signature(Command(config))),
                "i_query": In(stream.Signature(elements)),
                "i_key": In(stream.Signature(elements)),
                "query": Out(elements),
                "load": Out(config.rows),
                "swap": Out(1),
                "key": Out(elements),
                "multiplier": Out(MULTIPLIER_BITS),
                "shift": Out(SHIFT_BITS),
                "write": Out(LogitWrite(config)),
                "read": In(Place(config)),
                "tile": Out(stream.Signature(Tile(config), always_ready=True)),
                "issue": Out(1),
                "blocked": Out(1),
                "starved": Out(1),
                "unloaded": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config = self._config
        waiting = Signal(Command(config))  # its queries are in the waiting registers
        waiting_valid = Signal()
        current = Signal(Command(config))
        active = Signal()
        take = Signal()  # the waiting command becomes the current one
        self._load_queries(m, waiting, waiting_valid, take)

        # Keys of the current command.
        left = Signal(KEYS_BITS - 1)  # after this one
        index = Signal(config.index_bits)
        tile = Signal(2)
        opens = Signal()
        last_key, last_of_tile = left == 0, Signal()
        ahead = Signal(2)
        room = Signal()
        m.d.comb += [
            last_of_tile.eq(last_key | index.all()),
            ahead.eq(tile - self.read.tile),
            # With two tiles unread, this one follows the reader through the slot of the first.
            room.eq((ahead < 2) | ((ahead == 2) & (index < self.read.index))),
            self.i_key.ready.eq(active & room),
            self.issue.eq(self.i_key.valid & self.i_key.ready),
            self.blocked.eq(active & ~room),
            self.starved.eq(active & room & ~self.i_key.valid),
            self.unloaded.eq(~active & (self.i_command.valid | waiting_valid)),
            take.eq(waiting_valid & (~active | (self.issue & last_key))),
        ]
        with m.If(self.issue):
            m.d.sync += [
                self.key.eq(self.i_key.payload),
                left.eq(left - 1),
                index.eq(Mux(last_of_tile, 0, index + 1)),
            ]
            with m.If(last_of_tile):
                m.d.sync += [tile.eq(tile + 1), opens.eq(0)]
            with m.If(last_key):
                m.d.sync += active.eq(0)
        with m.If(take):
            m.d.sync += [
                current.eq(waiting),
                active.eq(1),
                left.eq((waiting.keys - 1)[: len(left)]),
                opens.eq(1),
            ]
        m.d.sync += self.swap.eq(take)  # the key taken in this cycle meets its query in the next one

        timing = Timing(config)
        write = Signal(LogitWrite(config))
        m.d.comb += [
            write.valid.eq(self.issue),
            write.slot.eq(tile[0]),
            write.index.eq(index),
            write.first.eq(index == 0),
            write.last.eq(last_of_tile),
            write.opens.eq(opens),
        ]
        complete = Signal(Tile(config))
        m.d.comb += [
            complete.last_index.eq(index),
            complete.closes.eq(last_key),
            complete.rows.eq(current.rows),
            complete.output_fraction.eq(current.output_fraction),
        ]
        # A key taken now is on `key` in the next cycle; a queue that takes one cycle follows `tile`.
        scale = 1 + timing.scale
        m.d.comb += [
            self.multiplier.eq(delay(m, "multiplier", current.score_multiplier, scale, reset=False)),
            self.shift.eq(delay(m, "shift", current.score_shift, scale + 1, reset=False)),
            self.write.eq(delay(m, "write", write, 1 + timing.write)),
            self.tile.valid.eq(delay(m, "tile_valid", self.issue & last_of_tile, timing.ready)),
            self.tile.payload.eq(delay(m, "tile", complete, timing.ready, reset=False)),
        ]
        return m

    def _load_queries(self, m: Module, waiting: Any, waiting_valid: Signal, take: Signal) -> None:
        """Fill the waiting registers with the queries of the next command."""
        config = self._config
        row = Signal(range(config.rows))
        load = self.i_query.valid & self.i_query.ready
        last = row == (self.i_command.payload.rows - 1)[: len(row)]
        m.d.comb += [
            self.i_query.ready.eq(self.i_command.valid & (~waiting_valid | take)),
            self.i_command.ready.eq(load & last),
        ]
        with m.If(take):
            m.d.sync += waiting_valid.eq(0)
        m.d.sync += self.load.eq(Mux(load, 1 << row, 0))
        with m.If(load):
            m.d.sync += [self.query.eq(self.i_query.payload), row.eq(Mux(last, 0, row + 1))]
            with m.If(last):
                m.d.sync += [waiting.eq(self.i_command.payload), waiting_valid.eq(1)]
