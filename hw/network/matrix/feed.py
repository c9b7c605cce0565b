"""The pixel feed: the words of a layer's input, in the order in which the matrix array takes them."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import payload_register
from hw.lib.skid import Skid
from hw.network.matrix.feed_command import FeedCommand, Place, TileEntry
from hw.network.matrix.tile_table import Tile, TileTable
from hw.network.scratchpad.reader import GranuleReader, GranuleReadPort
from hw.network.scratchpad.shape import GranuleShape

#: More words than are ever asked for and not sent.
_MOST_AHEAD = 127


class PixelFeed(wiring.Component):
    """Reads a word for each pixel and k tile, and puts the zero point where there is no input.

    Behaviour
    ---------
    For each block, for each n tile, for each k tile, for each pixel of the block: one word, one a cycle.
    A granule that its entry does not have, or whose
    row or column is outside the input, is not read; all its bytes are the zero point.  The last pixel of the
    last block may be none: its words are zero points.

    The next command is taken in the cycle after the last word of the current one is sent.
    """

    #: From a command to its first word, with its entries there: tile, pixel, granules, request, and on.
    LATENCY = TileTable.LATENCY + 3 + GranuleReader.LATENCY + Skid.LATENCY

    def __init__(self, shape: GranuleShape) -> None:
        self._shape = shape
        super().__init__(
            {
                "command": In(stream.Signature(FeedCommand(shape))),
                "entry": In(stream.Signature(TileEntry(shape))),  #: Of this command and those after it.
                "read": Out(GranuleReadPort(shape)),
                "o": Out(stream.Signature(shape.word_bits)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Tiles -> pixels -> granules -> requests; responses -> words."""
        m = Module()
        shape = self._shape
        m.submodules.table = table = TileTable(shape)
        connect(m, flipped(self.entry), table.entry)
        now = Signal(FeedCommand(shape))
        tile = Signal(Tile(shape))
        tile_valid = Signal()
        ahead = Signal(range(_MOST_AHEAD + 1))  # words asked for and not sent
        begin = Signal()
        move = Signal()
        advance = Signal()
        m.d.comb += [
            self.command.ready.eq(table.command.ready & ~tile_valid & ~table.tile.valid & (ahead == 0)),
            begin.eq(self.command.valid & self.command.ready),
            table.command.valid.eq(begin),
            table.command.payload.eq(self.command.payload),
            move.eq(~self.read.request.valid | self.read.request.ready),
            advance.eq(tile_valid & move),
        ]
        with m.If(begin):
            m.d.sync += now.eq(self.command.payload)
        sent = self.o.valid & self.o.ready
        with m.If(advance & ~sent):
            m.d.sync += ahead.eq(ahead + 1)
        with m.If(sent & ~advance):
            m.d.sync += ahead.eq(ahead - 1)

        place, last_step = self._walk(m, now, begin, advance, tile, tile_valid, table.tile)
        blank = tile.final & last_step & now.blanks
        self._ask(m, now, place, tile.entry, blank, advance, move)

        m.submodules.output = output = Skid(shape.word_bits)
        word = self.read.response
        zero = now.zero.replicate(shape.granule_bits // 8)
        m.d.comb += [
            output.i.valid.eq(word.valid),
            word.ready.eq(output.i.ready),
            output.i.payload.eq(
                Cat(Mux(word.payload.enable[n], word.payload.data[n], zero) for n in range(shape.granules))
            ),
        ]
        connect(m, output.o, flipped(self.o))
        return m

    def _walk(
        self, m: Module, now: Any, begin: Signal, advance: Signal, tile: Any, tile_valid: Signal, tiles: Any
    ) -> tuple[Any, Signal]:
        """Walk over the pixels of a block for each tile; return the pixel, and whether it is its last."""
        shape = self._shape
        side = now.x_width.shape()
        names = ("address", "row", "column")
        place = Signal(Place(shape))
        x = Signal(side)
        # Of the block's first pixel.
        block = Signal(Place(shape))
        block_x = Signal(side)
        following = Signal(Place(shape))
        following_x = Signal(side)
        # Constants of a command: ready long before its first tile.
        limit = Signal(side)
        turned = Signal(Place(shape))
        turned_x = Signal(side)
        m.d.sync += [
            limit.eq(now.x_width - now.x_step),
            turned_x.eq(now.x_step - now.x_width),
            *(turned[name].eq(now.step[name] + now.turn[name]) for name in names),
        ]
        beyond = Signal()
        m.d.comb += [
            beyond.eq(x >= limit),
            following_x.eq(x + Mux(beyond, turned_x, now.x_step)),
            *(following[name].eq(place[name] + Mux(beyond, turned[name], now.step[name])) for name in names),
        ]

        left = Signal(now.steps.shape())  # pixels after this one
        last_step = Signal()
        take = Signal()
        steps = Mux(tiles.payload.final, now.last_steps, now.steps)
        m.d.comb += [
            take.eq(tiles.valid & (~tile_valid | (advance & last_step))),
            tiles.ready.eq(take),
        ]
        with m.If(begin):
            start = self.command.payload
            m.d.sync += [
                place.eq(start.start),
                x.eq(start.x_start),
                block.eq(start.start),
                block_x.eq(start.x_start),
            ]
        with m.Elif(advance):
            m.d.sync += [place.eq(following), x.eq(following_x)]
            with m.If(last_step & tile.last):
                m.d.sync += [block.eq(following), block_x.eq(following_x)]
            with m.Elif(last_step):
                m.d.sync += [place.eq(block), x.eq(block_x)]
            m.d.sync += [left.eq(left - 1), last_step.eq(left == 1)]
        with m.If(advance & last_step):
            m.d.sync += tile_valid.eq(0)
        with m.If(take):
            m.d.sync += [
                tile_valid.eq(1),
                tile.eq(tiles.payload),
                left.eq(steps - 1),
                last_step.eq(steps == 1),
            ]
        return place, last_step

    def _ask(
        self, m: Module, now: Any, place: Any, entry: Any, blank: Value, advance: Signal, move: Signal
    ) -> None:
        """Add the entry to the pixel, compare with the input's bounds, and request."""
        shape = self._shape
        coordinate = place.column.shape()
        asking = Signal()
        address = Signal(shape.granule_address_bits, reset_less=True)
        row = Signal(coordinate, reset_less=True)
        columns = [Signal(coordinate, name=f"column_{n}", reset_less=True) for n in range(shape.granules)]
        wanted = Signal(shape.granules, reset_less=True)
        request = payload_register(m, self.read.request.payload)
        # Negative coordinates are large ones without a sign.
        within = row.as_unsigned() < now.height
        with m.If(move):
            m.d.sync += [
                asking.eq(advance),
                address.eq(place.address + entry.offset),
                row.eq(place.row + entry.row),
                *(column.eq(place.column + entry.column[n]) for n, column in enumerate(columns)),
                wanted.eq(Mux(blank, 0, entry.valid)),
                self.read.request.valid.eq(asking),
                request.address.eq(address),
                request.enable.eq(
                    Cat(
                        wanted[n] & within & (column.as_unsigned() < now.width)
                        for n, column in enumerate(columns)
                    )
                ),
            ]
