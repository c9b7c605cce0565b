"""Pages on their way back: items of the list fill their free slots."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Array, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.oram.config import BEAT_BYTES, BLOCK_BYTES, OramConfig
from hw.oram.core.bits import any_of, encode, named, select
from hw.oram.core.layouts import BEAT_BITS
from hw.oram.core.stage.key_match import LANES, WORD_BITS
from hw.oram.core.stage.list_values import ListValues
from hw.oram.core.stage.list_words import ListWords
from hw.oram.core.stage.schedule import KEY_BYTES, PAGE_KEYS_OFFSET

_WORD_BYTES = WORD_BITS // 8
#: Word of the bitmap in a page and in its first beat.
_BITMAP_WORD = BLOCK_BYTES // _WORD_BYTES


class PageMerge(wiring.Component):
    """Fills each free slot of a page with the flushed item of the same rank.

    Behaviour
    ---------
    Words of keys and short values are selected among registers. Values of whole beats are read from a RAM
    with two lists: the next list arrives while one is used.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        slots, items = config.slots, config.record_slots
        super().__init__(
            {
                #: Records whose pages are touched too.
                "record": In(stream.Signature(BEAT_BITS, always_ready=True)),
                #: The record's list and page are decided. ``own``: the slot that the operation's item leaves.
                #: ``kept``, ``before``: the page's other slots in use, and the free slots below each.
                #: ``flush``, ``ranks``: the items to move, and those below each.
                "choose": In(1),
                "own": In(slots),
                "kept": In(slots),
                "before": In(data.ArrayLayout(range(slots + 1), slots)),
                "flush": In(items),
                "ranks": In(data.ArrayLayout(range(items + 1), items)),
                #: With the last beat of the record, or later for a short one; after ``choose``.
                "start": In(1),
                #: ``page``: a beat of the page. ``ahead``: two cycles before it, first in the cycle after
                #: ``start``.
                "ahead": In(1),
                "page": In(stream.Signature(BEAT_BITS, always_ready=True)),
                #: A cycle after each beat. A slot that an item left is zeros unless filled; tag, padding and
                #: other free slots are unchanged.
                "o": Out(stream.Signature(BEAT_BITS, always_ready=True)),
                "own_now": Out(slots),  #: With the page's beats: ``own``.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Select the item of each slot; hold the list's words; compose the beats."""
        m = Module()
        config = self._config
        slots, items = config.slots, config.record_slots
        # One-hot: the item of each slot, or none.
        taken = [Signal(items, name=f"taken_{slot}", reset_less=True) for slot in range(slots)]
        held = [Signal(items, name=f"held_{slot}", reset_less=True) for slot in range(slots)]
        kept = Signal(slots, reset_less=True)
        bitmap = Signal(slots, reset_less=True)
        left = Signal(slots, reset_less=True)
        leaving = Signal(slots, reset_less=True)
        with m.If(self.choose):
            m.d.sync += [kept.eq(self.kept), left.eq(self.own)]
            for slot in range(slots):
                same = Cat(self.before[slot] == self.ranks[item] for item in range(items))
                m.d.sync += taken[slot].eq(same & self.flush & (~self.kept[slot]).replicate(items))
        with m.If(self.start):
            m.d.sync += [now.eq(then) for now, then in zip(held, taken, strict=True)]
            m.d.sync += [bitmap.eq(kept | Cat(one.any() for one in taken)), leaving.eq(left)]
        m.d.comb += self.own_now.eq(delay(m, "leaving", leaving, 2, reset=False))

        # ``index`` numbers the beats of the page.  A word comes from an item of the list, else from the page.
        index = Signal(range(config.page_beats))
        with m.If(self.ahead):
            m.d.sync += index.eq(index + 1)
            with m.If(index == config.page_beats - 1):
                m.d.sync += index.eq(0)
        first = delay(m, "first", self.ahead & (index == 0), 2)
        m.submodules.words = words = ListWords(config)
        m.d.comb += words.start.eq(self.start)
        connect(m, flipped(self.record), words.record)

        def by_beat(values: list[Value]) -> Value:
            return Array(values)[index]

        merged = [self.page.payload.word_select(lane, WORD_BITS) for lane in range(LANES)]
        for lane in range(LANES):
            sources: list[Value] = []
            picks: list[Value] = []
            leaves: list[Value] = []
            for name, first_byte, size in self._fields:
                slots_at = [
                    _slot_at(beat * BEAT_BYTES + lane * _WORD_BYTES - first_byte, size, slots)
                    for beat in range(config.page_beats)
                ]
                if all(slot is None for slot in slots_at):
                    continue
                pick = Signal(items, name=f"{name}_pick_{lane}", reset_less=True)
                m.d.sync += pick.eq(
                    by_beat([Const(0, items) if slot is None else held[slot] for slot in slots_at])
                )
                word = 0 if name == "key" else 1 + (lane * _WORD_BYTES % size) // _WORD_BYTES
                sources.append(select(pick, [words.words[item][word] for item in range(items)]))
                picks.append(pick)
                leaves.append(by_beat([Const(0, 1) if slot is None else leaving[slot] for slot in slots_at]))
            if sources:
                chosen = Signal(WORD_BITS, name=f"chosen_{lane}", reset_less=True)
                taking = Signal(name=f"taking_{lane}", reset_less=True)
                m.d.sync += [chosen.eq(any_of(sources)), taking.eq(Cat(picks).any())]
                cleared = delay(m, f"cleared_{lane}", Cat(leaves).any(), 2, reset=False)
                merged[lane] = Mux(taking, chosen, merged[lane] & ~cleared.replicate(WORD_BITS))
        merged[_BITMAP_WORD] = Mux(first, bitmap, merged[_BITMAP_WORD])
        whole = Cat(word[:WORD_BITS] for word in merged)
        if config.value_bytes >= BEAT_BYTES:
            whole = self._long_values(m, whole, held, leaving, by_beat)
        out = Signal(BEAT_BITS, reset_less=True)
        m.d.sync += [out.eq(whole), self.o.valid.eq(self.page.valid)]
        m.d.comb += self.o.payload.eq(out)
        return m

    @property
    def _fields(self) -> list[tuple[str, int, int]]:
        """Name, first byte and bytes of each field selected by words."""
        config = self._config
        fields = [("key", PAGE_KEYS_OFFSET, KEY_BYTES)]
        if config.value_bytes < BEAT_BYTES:
            fields.append(("value", config.page_values_offset, config.value_bytes))
        return fields

    def _long_values(
        self,
        m: Module,
        page: Value,
        held: list[Signal],
        leaving: Signal,
        by_beat: Callable[[list[Value]], Value],
    ) -> Value:
        """Return the beat with a value from the list, where it holds one."""
        config = self._config
        items = config.record_slots
        m.submodules.values = values = ListValues(config)
        m.d.comb += values.start.eq(self.start)
        connect(m, flipped(self.record), values.record)
        first = config.page_values_offset // BEAT_BYTES
        slots_at = [
            _slot_at(beat - first, config.value_rows, config.slots) for beat in range(config.page_beats)
        ]
        pick = named(
            m, "pick", by_beat([Const(0, items) if slot is None else held[slot] for slot in slots_at])
        )
        rows = [Const(max(0, beat - first) % config.value_rows, 3) for beat in range(config.page_beats)]
        item = Signal.like(values.item, reset_less=True)
        row = Signal.like(values.row, reset_less=True)
        takes = Signal(2, reset_less=True)
        m.d.sync += [item.eq(encode(pick)), row.eq(by_beat(rows)), takes.eq(Cat(pick.any(), takes[0]))]
        m.d.comb += [values.item.eq(item), values.row.eq(row)]
        leaves = by_beat([Const(0, 1) if slot is None else leaving[slot] for slot in slots_at])
        cleared = delay(m, "cleared", leaves, 2, reset=False)
        return Mux(takes[1], values.data, page & ~cleared.replicate(BEAT_BITS))


def _slot_at(offset: int, size: int, slots: int) -> int | None:
    """Return the slot, of ``size`` bytes, at an offset, or None."""
    return offset // size if 0 <= offset < slots * size else None
