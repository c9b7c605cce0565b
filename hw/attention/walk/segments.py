"""The tiles of a pass that a stream has to give: all, a range by arithmetic, or those with a bit."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.attention.core.command import NO_KEY
from hw.attention.walk.bitmap import WORD_TILES
from hw.attention.walk.geometry import BITMAP_ROW_BYTES, bitmap_rows_shape, stream_tile_shape
from hw.attention.walk.layouts import KeyPass, TileRequest


class TileWalker(wiring.Component):
    """Lists the tiles of one stream.

    Parameters
    ----------
    config
        Shape of the engine.
    index
        The stream: its tile n is tile ``n * S + index`` of the head.

    Members
    -------
    i : In(stream of KeyPass)
    words : In(stream of WORD_TILES / S bits)
        For each pass with bitmap rows, bits of this stream's tiles from the first on; all of them are taken.
    o : Out(stream of TileRequest)
        The tiles of a pass in order, or a dummy if there are none.

    Behaviour
    ---------
    First tile of a pass in the cycle after it was taken, then one a cycle; with a bitmap, one in two cycles,
    and three cycles more for each word.

    Why
    ---
    Whether a tile closes its pass is known only when the next one is found or none is: a tile from a bitmap
    waits for that, for all other passes the last tile follows from the last key.  Bits outside the pass's
    range are taken off before they are looked at, so that tiles that other rules hide cost nothing either.
    """

    #: Cycles from a pass to its first tile; from a word of a bitmap to the search for a bit; from one search
    #: to the next; from one that finds none, and from the last word, to what comes next.
    LATENCY: ClassVar = 1
    BITS_LATENCY: ClassVar = 2
    BIT_INTERVAL: ClassVar = 2
    WORD_LATENCY: ClassVar = 1

    def __init__(self, config: AttentionConfig, *, index: int) -> None:
        self._config = config
        self._index = index
        super().__init__(
            {
                "i": In(stream.Signature(KeyPass(config))),
                "words": In(stream.Signature(WORD_TILES // config.streams)),
                "o": Out(stream.Signature(TileRequest(config))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, o = self._config, self.o.payload
        current = Signal(KeyPass(config), reset_less=True)
        tile, last_tile = Signal(stream_tile_shape(config)), Signal(stream_tile_shape(config))
        none, outside, short, opens, closes = (
            Signal(name=name) for name in ("none", "outside", "short", "opens", "closes")
        )
        m.d.comb += [
            o.tile.eq(tile),
            o.clear.eq(current.clear & opens),
            o.source.eq(current.source),
            self._command(o.command, current, tile, none=none, opens=opens, closes=closes, short=short),
        ]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += opens.eq(0)

        first_n, last_n, nothing, ends_here = tile_range(self._config, self._index, self.i.payload)
        words_left = Signal(range(self._words(1) * (bitmap_rows_shape(config).stop - 1) + 1))
        bits = Signal(WORD_TILES // config.streams)
        base = Signal(stream_tile_shape(config))  # of the bits, the first tile: a multiple of their number
        # From there to the first and to the last tile: kept, as to subtract takes long.
        to_first, to_last = (
            Signal(signed(len(tile) + 2), name=name, reset_less=True) for name in ("to_first", "to_last")
        )
        lowest = Signal(range(len(bits)), reset_less=True)  # bit that is set
        has_short = Signal()  # the last tile is not whole
        with m.FSM():
            with m.State("PASS"):
                m.d.comb += self.i.ready.eq(1)
                m.d.sync += [
                    current.eq(self.i.payload),
                    to_first.eq(first_n + len(bits)),
                    to_last.eq(last_n + len(bits)),
                    tile.eq(first_n),
                    last_tile.eq(last_n),
                    none.eq(nothing),
                    outside.eq(nothing),
                    has_short.eq(ends_here),
                    opens.eq(1),
                    bits.eq(0),
                    base.eq(-len(bits)),
                    words_left.eq(self._words(self.i.payload.bitmap_rows)),
                ]
                with m.If(self.i.valid):
                    m.next = "TILES"
                    with m.If(self.i.payload.bitmap_rows != 0):
                        m.d.sync += none.eq(1)  # until one is found
                        m.next = "WORD"
            with m.State("TILES"):
                m.d.comb += [self.o.valid.eq(1), closes.eq(none | (tile == last_tile))]
                with m.If(self.o.ready):
                    m.d.sync += tile.eq(tile + 1)
                    with m.If(closes):
                        m.next = "PASS"
            # With a bitmap: the tile found last waits, as `tile` unless `none`, for what comes after it.
            with m.State("WORD"):
                m.d.comb += self.words.ready.eq(words_left != 0)
                m.d.sync += bits.eq(self.words.payload)
                with m.If(words_left == 0):
                    m.next = "CLOSE"
                with m.Elif(self.words.valid):
                    m.d.sync += [
                        words_left.eq(words_left - 1),
                        base.eq(base + len(bits)),
                        to_first.eq(to_first - len(bits)),
                        to_last.eq(to_last - len(bits)),
                    ]
                    m.next = "MASK"
            with m.State("MASK"):
                m.d.sync += bits.eq(Mux(outside, 0, bits & within(to_first, to_last, width=len(bits))))
                m.next = "FIND"
            with m.State("FIND"):
                m.d.sync += lowest.eq(_lowest(bits))
                m.next = "WORD"
                with m.If(bits.any()):
                    m.next = "BIT"
            with m.State("BIT"):
                m.d.comb += self.o.valid.eq(~none)
                with m.If(none | self.o.ready):
                    m.d.sync += [none.eq(0), tile.eq(base | lowest), bits.eq(bits & ~(1 << lowest))]
                    m.next = "FIND"
            with m.State("CLOSE"):
                m.d.comb += [self.o.valid.eq(1), closes.eq(1)]
                with m.If(self.o.ready):
                    m.next = "PASS"
        m.d.comb += short.eq(has_short & (tile == last_tile))
        return m

    def _words(self, rows: Any) -> Any:
        """Count the words that this stream gets for ``rows`` times 32 bytes of a bitmap row."""
        return rows * (8 * BITMAP_ROW_BYTES // WORD_TILES)

    def _command(
        self,
        command: Any,
        current: Any,
        tile: Value,
        *,
        none: Value,
        opens: Value,
        closes: Value,
        short: Value,
    ) -> list[Any]:
        """Assign what the core is told."""
        config = self._config
        streams = config.streams.bit_length() - 1
        first = Cat(Const(0, config.index_bits), Const(self._index, streams), tile)
        last_key = (current.end - 1)[: config.index_bits]
        assignments = [
            command.first.eq(Mux(none, NO_KEY, first)),
            command.last_index.eq(Mux(none, 0, Mux(short, last_key, config.tile_keys - 1))),
            command.opens.eq(opens),
            command.closes.eq(closes),
            command.dummy.eq(none),
            command.last_key_part.eq(current.source.last_key_part),
            command.last_value_part.eq(current.source.last_value_part),
        ]
        if config.logit_cap:
            assignments.append(command.cap.eq(current.source.cap))
        return assignments


def tile_range(config: AttentionConfig, index: int, given: Any) -> tuple[Value, Value, Value, Value]:
    """Give the tiles of stream ``index`` that hold keys ``given.first <= j < given.end``.

    Returns
    -------
    first, last, nothing, ends_here
        The first and the last one, unless there is ``nothing``; whether the last key is in the last one.
    """
    streams = config.streams.bit_length() - 1
    first = given.first >> config.index_bits
    last = (given.end - 1)[: len(given.end)] >> config.index_bits
    if config.streams == 1:
        return first, last, given.none, Const(1)
    after = first[:streams] > index  # this stream's tile of the first round lies before it
    before = last[:streams] < index
    first_n = (first >> streams) + after
    last_n = (last >> streams) - before
    nothing = given.none | ((first >> streams) + after + before > (last >> streams))
    return first_n, last_n, nothing, last[:streams] == index


def within(first: Value, last: Value, *, width: int) -> Value:
    """Give a bit for each of ``width`` tiles: it is one of ``first`` to ``last``, which may lie before or
    behind all of them.
    """
    # Shifted constants, as comparisons with every number would be chains of carries.
    ones, bits = Const((1 << width) - 1, width), width.bit_length() - 1
    from_first = Mux(first[bits:].any(), 0, (ones << first[:bits])[:width])
    to_last = Mux(last[bits:].any(), ones, ~((ones << last[:bits]) << 1)[:width])
    return Mux(first < 0, ones, from_first) & Mux(last < 0, 0, to_last)


def _lowest(bits: Value) -> Value:
    """Index of the lowest bit that is set: a tree of choices."""
    if len(bits) == 1:
        return Const(0, 0)
    half = len(bits) // 2
    low, high = bits[:half], bits[half:]
    return Mux(low.any(), _lowest(low), _lowest(high) | half)
