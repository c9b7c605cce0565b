"""The tiles of a pass in one stream: all tiles, a range by arithmetic, or those with a bit in the bitmap."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.attention.core.command import NO_KEY
from hw.attention.walk.job_setup import BITMAP_ROW_BYTES, bitmap_rows_shape, tile_shape
from hw.attention.walk.layouts import KeyPass, TileRequest
from hw.attention.walk.table_words import WORD_TILES

#: Bits of a bitmap word searched in one cycle; the group of bits is chosen in the cycle before. A search of
#: all bits takes longer than a cycle of 300 MHz.
_GROUP = 16


class _Registers:
    """Registers of the pass and of the tile at hand."""

    def __init__(self, config: AttentionConfig) -> None:
        # ``decided``: it is decided in this cycle whether the pass is ``empty``.
        self.decided = Signal()
        self.empty = Signal(name="empty")
        self.unknown = Signal()  # whether the pass at hand is empty
        self.no_keys = Signal()  # in its range
        self.some = Signal()  # of the word's bits, before any is cleared
        self.owed = Signal()  # a clear, by a pass without tiles
        self.current = Signal(KeyPass(config), reset_less=True)
        self.tile = Signal(tile_shape(config))
        self.last_tile = Signal(tile_shape(config))
        self.none, self.outside, self.opens, self.closes = (
            Signal(name=name) for name in ("none", "outside", "opens", "closes")
        )
        self.lead = Signal(config.index_bits, reset_less=True)  # of `tile`
        self.last_key = Signal(config.index_bits, reset_less=True)  # of the last tile
        self.last = Signal(config.index_bits)  # of `tile`


class _Search:
    """The lowest bit of a word of the bitmap that is set, in two cycles."""

    def __init__(self, m: Module, config: AttentionConfig, now: _Registers) -> None:
        self.bits = bits = Signal(WORD_TILES, name="bits")
        # The group of bits with the lowest set bit, and the index of this bit in the group.
        group = Signal(range(len(bits) // _GROUP), reset_less=True)
        place = Signal(range(_GROUP), reset_less=True)
        self.lowest = Cat(place, group)
        self.base = Signal(tile_shape(config))  # first tile of the bits: a multiple of their number
        # Distances to the first and to the last tile: registers, as a subtraction takes long.
        self.to_first, self.to_last = (
            Signal(signed(max(len(now.tile), len(self.lowest)) + 2), name=name, reset_less=True)
            for name in ("to_first", "to_last")
        )
        # In every cycle, as `bits` are constant from the search to the use of its result.
        self.groups = groups = Signal(len(bits) // _GROUP, name="groups")
        m.d.comb += groups.eq(Cat(bits.word_select(n, _GROUP).any() for n in range(len(groups))))
        m.d.sync += [group.eq(_lowest(groups)), place.eq(_lowest(bits.word_select(group, _GROUP)))]

    def in_range(self) -> Value:
        """Return a bit for each tile of the word: the tile is in the range of the pass."""
        return within(self.to_first, self.to_last, width=len(self.bits))


class TileWalker(wiring.Component):
    """Lists the tiles of one stream.

    ``index``: the stream: its key n is key ``n * S + index`` of the head.

    Behaviour
    ---------
    The first tile of a pass comes in the cycle after the pass, then one a cycle.  With a bitmap a tile comes
    every three cycles, and each word costs three more.  A pass is empty if its range of keys or its bitmap
    row is empty. Passes that decode and passes with pages are never empty.

    Why
    ---
    A tile of a bitmap waits until the next bit is found or the words end. Only then it is known whether it
    closes its pass.  In all other passes the last tile follows from the last key.  Bits outside the range of
    the pass are cleared before the search, so tiles hidden by other rules cost nothing.  Each stream has a
    range of its own, but a pass is empty for all streams or for none. So this is decided before bits are
    cleared.
    """

    #: Cycles from a pass to its first tile; from a word of a bitmap to the search of a bit; from one search
    #: to the next.  Then, from a search that fails, or the last word, to the next state.
    LATENCY: ClassVar = 1
    BITS_LATENCY: ClassVar = 2
    BIT_INTERVAL: ClassVar = 3
    WORD_LATENCY: ClassVar = 1
    #: Cycles from the decision whether a pass is empty to ``empty``.
    EMPTY_LATENCY: ClassVar = 1

    def __init__(self, config: AttentionConfig, *, index: int) -> None:
        self._config = config
        self._index = index
        members = {
            "i": In(stream.Signature(KeyPass(config))),
            #: For each pass with bitmap rows, bits of its tiles from tile 0 on; all of them are read.
            "words": In(stream.Signature(WORD_TILES)),
            #: The tiles of a pass in order; a placeholder if there are none and the pass is not ``empty``.
            #: The tile with the first key of the range begins at this key, all others at their first key. In
            #: a job that decodes each stream lists all tiles, from the first row of S P keys to the last row
            #: with a key of the range.
            "o": Out(stream.Signature(TileRequest(config))),
        }
        if not index:
            #: Stream 0 only, for each pass: it has no tiles in any stream.  Always ready.
            members["empty"] = Out(stream.Signature(1, always_ready=True))
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """A state machine: tiles by count, or word by word and bit by bit of the bitmap."""
        m = Module()
        now = _Registers(self._config)
        if not self._index:
            m.d.sync += [self.empty.valid.eq(now.decided), self.empty.payload.eq(now.empty)]
        self._drive(m, now)
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [now.opens.eq(0), now.lead.eq(0), now.owed.eq(0)]

        ends = tile_range(self._config, self._index, self.i.payload)
        words_left = Signal(range(self._words(1) * (bitmap_rows_shape(self._config).stop - 1) + 1))
        search = _Search(m, self._config, now)
        with m.FSM():
            with m.State("PASS"):
                self._open_pass(m, now, search, ends, words_left)
            with m.State("TILES"):
                m.d.comb += [self.o.valid.eq(1), now.closes.eq(now.none | (now.tile == now.last_tile))]
                with m.If(self.o.ready):
                    m.d.sync += now.tile.eq(now.tile + 1)
                    with m.If(now.closes):
                        m.next = "PASS"
            # With a bitmap the tile found last waits in `tile`, unless `none`, until the next one is found.
            with m.State("WORD"):
                self._take_word(m, now, search, words_left)
            with m.State("MASK"):
                m.d.sync += search.bits.eq(Mux(now.outside, 0, search.bits & search.in_range()))
                m.d.sync += now.some.eq(search.groups.any() & ~now.no_keys)
                m.next = "FIND"
            with m.State("FIND"):
                with m.If(now.unknown & now.some):
                    m.d.comb += now.decided.eq(1)
                    m.d.sync += now.unknown.eq(0)
                m.next = "WORD"
                with m.If(search.groups.any()):
                    m.next = "PLACE"
            with m.State("PLACE"):
                m.next = "BIT"
            with m.State("BIT"):
                self._take_bit(m, now, search)
            with m.State("CLOSE"):
                m.d.comb += [self.o.valid.eq(1), now.closes.eq(1)]
                with m.If(self.o.ready):
                    m.next = "PASS"
        return m

    def _drive(self, m: Module, now: _Registers) -> None:
        """Drive the request of the tile at hand."""
        o = self.o.payload
        m.d.comb += [
            now.last.eq(Mux(now.tile == now.last_tile, now.last_key, self._config.tile_keys - 1)),
            o.tile.eq(now.tile),
            o.lead.eq(now.lead),
            o.last.eq(now.last),
            o.clear.eq((now.current.clear | now.owed) & now.opens),
            o.source.eq(now.current.source),
            # From the registers and not from ``o``: some tools report a vector whose bits depend on its other
            # bits as a loop.
            self._command(now),
        ]

    def _open_pass(
        self, m: Module, now: _Registers, search: _Search, ends: tuple[Value, ...], words_left: Signal
    ) -> None:
        """Load the registers of a pass; decide whether it is empty, unless its bitmap decides."""
        first_n, first_index, last_n, last_index, nothing = ends
        m.d.comb += self.i.ready.eq(1)
        m.d.sync += [
            now.current.eq(self.i.payload),
            search.to_first.eq(first_n + WORD_TILES),
            search.to_last.eq(last_n + WORD_TILES),
            now.tile.eq(first_n),
            now.lead.eq(first_index),
            now.last_tile.eq(last_n),
            now.none.eq(nothing),
            now.outside.eq(nothing),
            now.last_key.eq(last_index),
            now.opens.eq(1),
            search.bits.eq(0),
            search.base.eq(-WORD_TILES),
            words_left.eq(self._words(self.i.payload.bitmap_rows)),
        ]
        given = self.i.payload
        may_be_empty = self._may_be_empty(given)
        sparse = given.bitmap_rows != 0
        m.d.sync += [now.unknown.eq(may_be_empty), now.no_keys.eq(given.none)]
        with m.If(self.i.valid):
            m.d.comb += [
                now.decided.eq(~(may_be_empty & sparse)),
                now.empty.eq(may_be_empty & given.none),
            ]
            m.next = "TILES"
            with m.If(sparse):
                m.d.sync += now.none.eq(1)  # until one is found
                m.next = "WORD"
            with m.Elif(now.empty):
                m.d.sync += now.owed.eq(now.owed | given.clear)
                m.next = "PASS"

    def _take_word(self, m: Module, now: _Registers, search: _Search, words_left: Signal) -> None:
        """Take the next word of the bitmap, or close the pass behind the last one."""
        bits = search.bits
        m.d.comb += self.words.ready.eq(words_left != 0)
        m.d.sync += bits.eq(self.words.payload)
        with m.If(words_left == 0):
            m.next = "CLOSE"
            with m.If(now.unknown):
                m.d.comb += [now.decided.eq(1), now.empty.eq(1)]
                m.d.sync += now.owed.eq(now.owed | now.current.clear)
                m.next = "PASS"
        with m.Elif(self.words.valid):
            m.d.sync += [
                words_left.eq(words_left - 1),
                search.base.eq(search.base + len(bits)),
                search.to_first.eq(search.to_first - len(bits)),
                search.to_last.eq(search.to_last - len(bits)),
            ]
            m.next = "MASK"

    def _take_bit(self, m: Module, now: _Registers, search: _Search) -> None:
        """Request the tile that waits, and let the one just found wait instead."""
        bits, lowest = search.bits, search.lowest
        m.d.comb += self.o.valid.eq(~now.none)
        with m.If(now.none | self.o.ready):
            m.d.sync += [now.none.eq(0), now.tile.eq(search.base | lowest), bits.eq(bits & ~(1 << lowest))]
            with m.If(lowest != search.to_first):
                m.d.sync += now.lead.eq(0)  # the tile of the first key has no bit, or is before it
            m.next = "FIND"

    def _may_be_empty(self, given: Any) -> Value:
        """Say whether a pass may have no tiles: page lookup and lockstep need one."""
        may: Value = Const(1)
        if self._config.paged:
            may &= ~given.source.paged
        if self._config.decodes:
            may &= ~given.source.decode
        return may

    def _words(self, rows: Any) -> Any:
        """Count the words of a bitmap row of ``rows`` times 32 bytes."""
        return rows * (8 * BITMAP_ROW_BYTES // WORD_TILES)

    def _command(self, now: _Registers) -> list[Any]:
        """Assign the core's command for the tile at hand."""
        config, command, source = self._config, self.o.payload.command, now.current.source
        first = Cat(Const(self._index, config.stream_bits), now.lead, now.tile)
        if config.decodes:
            of_all = Cat(Const(0, config.decode_stream_bits), now.lead, now.tile)
            first = Mux(source.decode, of_all, first)
        assignments = [
            command.first.eq(Mux(now.none, NO_KEY, first)),
            command.last_index.eq(Mux(now.none, 0, now.last - now.lead)),
            command.opens.eq(now.opens),
            command.closes.eq(now.closes),
            command.dummy.eq(now.none),
            command.last_key_part.eq(source.last_key_part),
            command.last_value_part.eq(source.last_value_part),
        ]
        if config.logit_cap:
            assignments.append(command.cap.eq(source.cap))
        if config.decodes:
            assignments.append(command.keep.eq(source.keep))
        return assignments


def tile_range(config: AttentionConfig, index: int, given: Any) -> tuple[Value, Value, Value, Value, Value]:
    """Return the tiles with the keys ``given.first <= j < given.end`` that stream ``index`` holds.

    In a job that decodes all streams hold the whole rows of these keys.  Returns the first tile, the
    index of its first key, the last tile, the index of its last key, and whether there are no keys.
    """
    if config.streams == 1:
        first, last, nothing = given.first, (given.end - 1)[: len(given.end)], given.none
    else:
        first = (given.first + (config.streams - 1 - index)) >> config.stream_bits
        last = (given.end - 1 - index) >> config.stream_bits  # below 0 where the stream has none
        nothing = given.none | (last < first)
    if config.decodes:
        decode, shift = given.source.decode, config.decode_stream_bits
        nothing = Mux(decode, given.none, nothing)
        ends = ((given.first, first), ((given.end - 1)[: len(given.end)], last))
        first, last = (Mux(decode, Mux(given.none, 0, key >> shift), own) for key, own in ends)
    bits = config.index_bits
    return first >> bits, first[:bits], last >> bits, last[:bits], nothing


def within(first: Value, last: Value, *, width: int) -> Value:
    """Return a bit for each of ``width`` tiles: it is one of ``first`` to ``last``, which may lie outside."""
    # Shifted constants: comparisons with each number would be carry chains.
    ones, bits = Const((1 << width) - 1, width), width.bit_length() - 1
    from_first = Mux(first[bits:].any(), 0, (ones << first[:bits])[:width])
    to_last = Mux(last[bits:].any(), ones, ~((ones << last[:bits]) << 1)[:width])
    return Mux(first < 0, ones, from_first) & Mux(last < 0, 0, to_last)


def _lowest(bits: Value) -> Value:
    """Return the index of the lowest bit that is set, by a tree of choices."""
    if len(bits) == 1:
        return Const(0, 0)
    half = len(bits) // 2
    low, high = bits[:half], bits[half:]
    return Mux(low.any(), _lowest(low), _lowest(high) | half)
