"""The pixel feed: the words of a layer's input, in the order in which the matrix array takes them."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import payload_register
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid
from hw.network.matrix.feed_command import FeedCommand, Place, TileEntry
from hw.network.matrix.layouts import SHIFT_BITS
from hw.network.matrix.tile_table import Tile, TileTable
from hw.network.matrix.word_gate import CORES, COUNT_BITS, FollowFields, WordGate
from hw.network.scratchpad.reader import GranuleReader, GranuleReadPort
from hw.network.scratchpad.shape import GranuleShape

#: More words than a reader has asked for and not answered.
_MOST_AHEAD = 40


class _Walk(data.StructLayout):
    """Constants of the walk over a command's pixels."""

    def __init__(self, shape: GranuleShape) -> None:
        command = FeedCommand(shape)
        side = command["x_step"].shape
        super().__init__(
            {
                "step": Place(shape),  #: From a pixel to the next.
                "turned": Place(shape),  #: The same, if the next pixel is beyond its row's end.
                "limit": side,  #: From this column on the next pixel is beyond its row's end.
                "x_step": side,  #: ``x_step``, ``x_turned``: as ``step`` and ``turned``, of the column.
                "x_turned": side,
                "height": side,
                "width": side,
                "blanks": 1,
                "zero": 8,
            }
        )


class _Mark(data.StructLayout):
    """What a word has beside the granules that are read."""

    def __init__(self) -> None:
        super().__init__({"zero": 8, "shift": SHIFT_BITS})


class PixelFeed(wiring.Component):
    """Reads a word for each pixel and k tile, and puts the zero point where there is no input.

    Behaviour
    ---------
    For each block, for each n tile, for each k tile, for each pixel of the block: one word, one a cycle.
    A granule that its entry does not have, or whose
    row or column is outside the input, is not read; all its bytes are the zero point.  The last pixel of the
    last block may be none: its words are zero points.

    A request of a command that follows another one's words waits for them (`WordGate`).

    The next command is taken while words of the current one are asked for.  Its first word follows the last
    one at once, if the last tile has more pixels than `TURN`; otherwise at most `TURN` cycles later.
    """

    #: From a command to its first word, with its entries there: tile, pixel, granules, request, and on.
    LATENCY = TileTable.LATENCY + 3 + GranuleReader.LATENCY + Skid.LATENCY
    #: Cycles without a tile between two commands, while tiles of the first one wait for their pixels.
    TURN = TileTable.LATENCY - 1

    def __init__(self, shape: GranuleShape) -> None:
        self._shape = shape
        super().__init__(
            {
                "command": In(stream.Signature(FeedCommand(shape))),
                "follow": In(FollowFields()),  #: With the command: words that its first requests wait for.
                "counts": In(COUNT_BITS).array(CORES),  #: Words that each core has written.
                "entry": In(stream.Signature(TileEntry(shape))),  #: Of this command and those after it.
                "read": Out(GranuleReadPort(shape)),
                "o": Out(stream.Signature(shape.word_bits)),
                "shift": Out(SHIFT_BITS),  #: Of the word on ``o``, as its entry has it.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Tiles -> pixels -> granules -> requests; responses -> words."""
        m = Module()
        shape = self._shape
        m.submodules.table = table = TileTable(shape)
        m.submodules.gate = gate = WordGate()
        connect(m, flipped(self.entry), table.entry)
        following = Signal(FeedCommand(shape))  # the table's command, until its first pixel
        follow = Signal(FollowFields())
        waits = Signal()
        accept = Signal()
        tile = Signal(Tile(shape))
        tile_valid = Signal()
        begin = Signal()
        move = Signal()
        advance = Signal()
        m.d.comb += [
            self.command.ready.eq(table.command.ready & ~waits),
            accept.eq(self.command.valid & self.command.ready),
            table.command.valid.eq(accept),
            table.command.payload.eq(self.command.payload),
            advance.eq(tile_valid & move & gate.go),
            *(own.eq(count) for own, count in zip(gate.counts, self.counts, strict=True)),
            gate.start.eq(begin),
            gate.follow.eq(follow),
            gate.taken.eq(advance),
        ]
        with m.If(begin):
            m.d.sync += waits.eq(0)
        with m.If(accept):
            m.d.sync += [following.eq(self.command.payload), follow.eq(self.follow), waits.eq(1)]
        now = self._constants(m, following, begin)
        place, last_step = self._walk(m, now, following, begin, advance, tile, tile_valid, table.tile)
        blank = tile.final & last_step & now.blanks
        self._ask(m, now, place, tile.entry, blank, advance, move)
        return m

    def _constants(self, m: Module, following: Any, begin: Signal) -> Any:
        """Return the constants of the current command; those of the next one are ready long before it."""
        now = Signal(_Walk(self._shape))
        ready = Signal(_Walk(self._shape), reset_less=True)
        names = ("address", "row", "column")
        m.d.sync += [
            ready.step.eq(following.step),
            *(ready.turned[name].eq(following.step[name] + following.turn[name]) for name in names),
            ready.limit.eq(following.x_width - following.x_step),
            ready.x_step.eq(following.x_step),
            ready.x_turned.eq(following.x_step - following.x_width),
            *(ready[name].eq(following[name]) for name in ("height", "width", "blanks", "zero")),
        ]
        with m.If(begin):
            m.d.sync += now.eq(ready)
        return now

    def _walk(
        self,
        m: Module,
        now: Any,
        following: Any,
        begin: Signal,
        advance: Signal,
        tile: Any,
        tile_valid: Signal,
        tiles: Any,
    ) -> tuple[Any, Signal]:
        """Walk over the pixels of a block for each tile; return the pixel, and whether it is its last."""
        shape = self._shape
        names = ("address", "row", "column")
        place = Signal(Place(shape))
        x = Signal.like(now.limit)
        # Of the block's first pixel.
        block = Signal(Place(shape))
        block_x = Signal.like(x)
        onward = Signal(Place(shape))
        onward_x = Signal.like(x)
        beyond = Signal()
        m.d.comb += [
            beyond.eq(x >= now.limit),
            onward_x.eq(x + Mux(beyond, now.x_turned, now.x_step)),
            *(onward[name].eq(place[name] + Mux(beyond, now.turned[name], now.step[name])) for name in names),
        ]

        left = Signal(tile.steps.shape())  # pixels after this one
        last_step = Signal()
        take = Signal()
        m.d.comb += [
            take.eq(tiles.valid & (~tile_valid | (advance & last_step))),
            tiles.ready.eq(take),
            begin.eq(take & tiles.payload.begins),
        ]
        with m.If(begin):
            m.d.sync += [
                place.eq(following.start),
                x.eq(following.x_start),
                block.eq(following.start),
                block_x.eq(following.x_start),
            ]
        with m.Elif(advance):
            m.d.sync += [place.eq(onward), x.eq(onward_x)]
            with m.If(last_step & tile.last):
                m.d.sync += [block.eq(onward), block_x.eq(onward_x)]
            with m.Elif(last_step):
                m.d.sync += [place.eq(block), x.eq(block_x)]
        with m.If(take):
            steps = tiles.payload.steps
            m.d.sync += [
                tile_valid.eq(1),
                tile.eq(tiles.payload),
                left.eq(steps - 1),
                last_step.eq(steps == 1),
            ]
        with m.Elif(advance):
            m.d.sync += [left.eq(left - 1), last_step.eq(left == 1), tile_valid.eq(~last_step)]
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
        # Of the command that asks: the next pixel may be another's.
        height = Signal.like(now.height, reset_less=True)
        width = Signal.like(now.width, reset_less=True)
        mark = Signal(_Mark(), reset_less=True)
        m.submodules.marks = marks = Fifo(_Mark(), depth=_MOST_AHEAD)
        request = payload_register(m, self.read.request.payload)
        # Negative coordinates are large ones without a sign.
        within = row.as_unsigned() < height
        m.d.comb += [
            move.eq((~self.read.request.valid | self.read.request.ready) & marks.i.ready),
            marks.i.valid.eq(asking & move),
            marks.i.payload.eq(mark),
        ]
        with m.If(move):
            m.d.sync += [
                asking.eq(advance),
                address.eq(place.address + entry.offset),
                row.eq(place.row + entry.row),
                *(column.eq(place.column + entry.column[n]) for n, column in enumerate(columns)),
                wanted.eq(Mux(blank, 0, entry.valid)),
                height.eq(now.height),
                width.eq(now.width),
                mark.zero.eq(now.zero),
                mark.shift.eq(entry.shift),
                request.address.eq(address),
                request.enable.eq(
                    Cat(
                        wanted[n] & within & (column.as_unsigned() < width)
                        for n, column in enumerate(columns)
                    )
                ),
            ]
        with m.If(move):
            m.d.sync += self.read.request.valid.eq(asking)
        with m.Elif(self.read.request.ready):
            m.d.sync += self.read.request.valid.eq(0)
        self._words(m, marks)

    def _words(self, m: Module, marks: Fifo) -> None:
        """Put zero points where nothing was read, and send the words."""
        shape = self._shape
        m.submodules.output = output = Skid(data.StructLayout({"word": shape.word_bits, "shift": SHIFT_BITS}))
        word, mark = self.read.response, marks.o.payload
        zero = mark.zero.replicate(shape.granule_bits // 8)
        m.d.comb += [
            output.i.valid.eq(word.valid),
            word.ready.eq(output.i.ready),
            marks.o.ready.eq(word.valid & output.i.ready),
            output.i.payload.word.eq(
                Cat(Mux(word.payload.enable[n], word.payload.data[n], zero) for n in range(shape.granules))
            ),
            output.i.payload.shift.eq(mark.shift),
            self.o.valid.eq(output.o.valid),
            output.o.ready.eq(self.o.ready),
            self.o.payload.eq(output.o.payload.word),
            self.shift.eq(output.o.payload.shift),
        ]
