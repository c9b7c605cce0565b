"""The order of results: addresses of the words that leave the matrix array."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import payload_register
from hw.network.matrix.feed_command import MOST_COUNT, MOST_STEPS
from hw.network.scratchpad.shape import GranuleShape


class ResultOrder(data.StructLayout):
    """Blocks, column tiles and words of a command, in the order in which the array computes them."""

    def __init__(self) -> None:
        super().__init__(
            {
                "steps": range(MOST_STEPS + 1),  #: Words of a block, at least 1.
                "last_steps": range(MOST_STEPS + 1),  #: Words of the last block, at least 1.
                "blocks": range(MOST_COUNT + 1),  #: At least 1.
                "n_tiles": range(MOST_COUNT + 1),  #: At least 1.
            }
        )


class ResultPlace(data.StructLayout):
    """A granule address, and whether it is the column tile's last one, and the command's last word."""

    def __init__(self, shape: GranuleShape) -> None:
        super().__init__({"address": shape.granule_address_bits, "last_tile": 1, "last": 1})


class ResultWalk(wiring.Component):
    """Walks through a tensor as results leave the array: by block, column tile, word.

    ``tile_granules``: granules of a column tile of int8.

    Behaviour
    ---------
    A place a cycle; the first one 2 cycles after ``start``.  ``order``, ``wide``, ``base`` and ``pitch`` stay
    until the last place.
    """

    def __init__(self, shape: GranuleShape, *, tile_granules: int) -> None:
        self._shape = shape
        self._tile = tile_granules
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse.
                "order": In(ResultOrder()),
                "wide": In(1),  #: A column tile has twice the granules.
                "base": In(shape.granule_address_bits),  #: Granule of the first word.
                "pitch": In(shape.granule_address_bits),  #: Granules from a word to the next of its tile.
                "o": Out(stream.Signature(ResultPlace(shape))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Three nested counters."""
        m = Module()
        order = self.order
        walking = Signal()
        address = Signal(self._shape.granule_address_bits)
        tile = Signal.like(address)  # of the tile's first word
        block = Signal.like(address)  # of the block's first word
        left = Signal.like(order.steps)
        tiles_left = Signal.like(order.n_tiles)
        blocks_left = Signal.like(order.blocks)
        last_word = Signal()
        last_tile = Signal()
        last_block = Signal()
        # Whether the next block is the last; compared a block ahead: flags of its first word need it.
        next_last = Signal()
        step = Signal()
        place = payload_register(m, self.o.payload)
        move = ~self.o.valid | self.o.ready
        m.d.comb += step.eq(walking & move)
        with m.If(move):
            m.d.sync += [
                self.o.valid.eq(walking),
                place.address.eq(address),
                place.last_tile.eq(last_tile),
                place.last.eq(last_word & last_tile & last_block),
            ]

        def begin(steps: Any) -> list[Any]:
            return [left.eq(steps - 1), last_word.eq(steps == 1)]

        steps = Mux(last_block, order.last_steps, order.steps)
        with m.If(step):
            m.d.sync += [
                address.eq(address + self.pitch),
                left.eq(left - 1),
                last_word.eq(left == 1),
            ]
            with m.If(last_word):
                following_tile = tile + Mux(self.wide, 2 * self._tile, self._tile)
                m.d.sync += [
                    address.eq(following_tile),
                    tile.eq(following_tile),
                    tiles_left.eq(tiles_left - 1),
                    last_tile.eq(tiles_left == 1),
                    *begin(steps),
                ]
                with m.If(last_tile):
                    # The last word's address less its tile's is the block's length.
                    following = block + (address - tile) + self.pitch
                    m.d.sync += [
                        address.eq(following),
                        tile.eq(following),
                        block.eq(following),
                        blocks_left.eq(blocks_left - 1),
                        last_block.eq(next_last),
                        next_last.eq(blocks_left == 2),
                        tiles_left.eq(order.n_tiles - 1),
                        last_tile.eq(order.n_tiles == 1),
                        *begin(Mux(next_last, order.last_steps, order.steps)),
                    ]
                    with m.If(last_block):
                        m.d.sync += walking.eq(0)
        with m.If(self.start):
            single = order.blocks == 1
            m.d.sync += [
                walking.eq(1),
                address.eq(self.base),
                tile.eq(self.base),
                block.eq(self.base),
                tiles_left.eq(order.n_tiles - 1),
                last_tile.eq(order.n_tiles == 1),
                blocks_left.eq(order.blocks - 1),
                last_block.eq(single),
                next_last.eq(order.blocks == 2),
                *begin(Mux(single, order.last_steps, order.steps)),
            ]
        return m
