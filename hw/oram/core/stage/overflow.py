"""Items whose list is full."""

from collections.abc import Callable
from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.memory import ports, uninitialised
from hw.oram.config import OramConfig
from hw.oram.core.bits import encode, equal_words, lowest, named, select_many
from hw.oram.core.stage.layouts import item_layout


class Overflow(wiring.Component):
    """Entries of a record and a key each; an item waits here until its record's list has a free slot.

    An entry stays taken for a window after its item moved into the list: it holds the item's slot until the
    list's beats in HBM do. It is free `OramConfig.window` operations later.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        slots, entry = config.record_slots, range(config.overflow_entries)
        super().__init__(
            {
                #: ``prepare``, ``item``: the next touch, three cycles before the loop's first.
                "prepare": In(1),
                "item": In(item_layout(config)),
                #: ``moved``, ``own_moved``: in the loop's first cycle: slots that items of the window moved
                #: into, and the slot of the operation's item. Both lack the previous touch.
                "moved": Out(slots),
                "own_moved": Out(slots),
                #: ``take``, ``current``: the loop's second cycle, and the touch until ``apply``. After the
                #: previous operation put the key elsewhere, ``own_moved`` may be its old place.
                "take": In(1),
                "current": In(item_layout(config)),
                #: ``own``, ``own_entry``: the operation's item is in an entry; from the cycle after ``take``,
                #: and from the cycle after ``decide``.
                "own": Out(1),
                #: From the cycle after ``take``: it moved with the previous touch.
                "own_moved_previous": Out(1),
                "own_entry": Out(entry),
                "waits": Out(1),  #: From the cycle after ``take``: an item waits for this record.
                "decide": In(1),  #: At least a cycle after ``take``; ``apply`` follows in the next cycle.
                #: ``apply``, ``move``, ``slot``: the lowest entry that waits for the record moves into this
                #: slot. The entry of the operation's item is freed.
                "apply": In(1),
                "move": In(1),
                "slot": In(slots),
                #: ``store``, ``record``: with ``apply``: the operation's item takes the lowest free entry,
                #: for this record.
                "store": In(1),
                "record": In(config.record_index_bits),
                "full": Out(1),  #: In the cycle of ``apply``: no entry is free.
                #: ``retry_entry``, ``retry_key``, ``stored_entry``: in the cycle after ``apply``: the entry
                #: and key that moved, and the entry that was taken.
                "retry_entry": Out(entry),
                "retry_key": Out(config.key_bits),
                "stored_entry": Out(entry),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Two bits of an entry say that it waits or has moved; a free one has neither.

        Records and keys are compared twice: three cycles before the loop's second for the slots of moved
        items, whose selection is wide, and again for an entry taken since.
        """
        m = Module()
        count = self._config.overflow_entries

        def vector(name: str) -> Signal:
            return Signal(count, name=name, reset_less=True)

        waiting = Signal(count)
        moved = Signal(count)
        stored = Signal(count)
        moves = Signal(count)
        same_record, same_key, same_turn, places, own_places = self._entries(m, vector, stored, moves, moved)

        own, candidates, expired = vector("own_held"), vector("candidates"), vector("expired")
        moved_previous = Signal(count)
        is_own = same_record & same_key & (waiting | moved)
        waits = same_record & ~same_key & waiting
        own_any = Signal()
        own_previous = Signal()
        waits_any = Signal()
        with m.If(self.take):
            m.d.sync += [
                own.eq(is_own),
                candidates.eq(waits),
                own_any.eq(is_own.any()),
                own_previous.eq((is_own & moved_previous).any()),
                waits_any.eq(waits.any()),
            ]
            with m.If(self.current.touch.first):
                m.d.sync += expired.eq(moved & same_turn)

        next_move = vector("next_move")
        room = vector("room")
        full = Signal()
        own_entry = Signal.like(self.own_entry, name="own_entry_held", reset_less=True)
        free = named(m, "free", ~(waiting | moved) | own)
        lowest_candidate, lowest_free = lowest(m, "candidate", candidates), lowest(m, "free", free)
        with m.If(self.decide):
            m.d.sync += [
                next_move.eq(lowest_candidate),
                room.eq(lowest_free),
                full.eq(~free.any()),
                own_entry.eq(encode(own)),
            ]
            with m.If(self.current.touch.last):
                m.d.sync += moved.eq(moved & ~expired)

        entry = [Signal.like(self.retry_entry, name=f"{name}_entry_held", reset_less=True) for name in "rs"]
        m.submodules.keys = keys = uninitialised(
            width=self._config.key_bits, depth=count, ram_style="distributed"
        )
        write, read = ports(keys, domain="comb")
        m.d.comb += [
            write.addr.eq(encode(room)),
            write.data.eq(self.current.touch.key),
            read.addr.eq(entry[0]),
        ]
        with m.If(self.apply):
            m.d.comb += [
                moves.eq(next_move & self.move.replicate(count)),
                stored.eq(room & self.store.replicate(count)),
                write.en.eq(self.store),
            ]
            m.d.sync += [
                waiting.eq(waiting & ~own & ~moves | stored),
                moved.eq((moved | moves) & ~own),
                moved_previous.eq(moves),
                entry[0].eq(encode(next_move)),
                entry[1].eq(encode(room)),
            ]
        m.d.comb += [
            self.moved.eq(places),
            self.own_moved.eq(own_places),
            self.own.eq(own_any),
            self.own_moved_previous.eq(own_previous),
            self.own_entry.eq(own_entry),
            self.waits.eq(waits_any),
            self.full.eq(full),
            self.retry_entry.eq(entry[0]),
            self.retry_key.eq(read.data),
            self.stored_entry.eq(entry[1]),
        ]
        return m

    def _entries(
        self, m: Module, vector: Callable[[str], Signal], stored: Signal, moves: Signal, moved: Signal
    ) -> tuple[Signal, ...]:
        """Compare every entry with the next touch; return the matches, and the slots of moved items."""
        config = self._config
        item = Signal.like(self.item, name="item_held", reset_less=True)
        touch = item.touch
        with m.If(self.prepare):
            m.d.sync += item.eq(self.item)

        same_record, same_key, same_turn = vector("same_record"), vector("same_key"), vector("same_turn")
        entries = range(config.overflow_entries)
        records, keys, turns = (
            [Signal(shape, name=f"{name}_{at}", reset_less=True) for at in entries]
            for name, shape in (
                ("record", config.record_index_bits),
                ("key", config.key_bits),
                ("turn", range(config.window)),
            )
        )
        slots = [Signal(config.record_slots, name=f"slot_{at}", reset_less=True) for at in entries]
        for at in entries:
            with m.If(stored[at]):
                m.d.sync += [records[at].eq(self.record), keys[at].eq(self.current.touch.key)]
            with m.If(moves[at]):
                m.d.sync += [slots[at].eq(self.slot), turns[at].eq(self.current.turn)]
        for same, name, kept, word, wanted in (
            (same_record, "records", records, touch.record, touch.record_valid),
            (same_key, "keys", keys, touch.key, item.search),
            (same_turn, "turns", turns, item.turn, None),
        ):
            every = None if wanted is None else wanted.replicate(len(same))
            m.d.sync += same.eq(equal_words(m, f"equal_{name}", kept, word, every))

        places = Signal(config.record_slots, reset_less=True)
        own_places = Signal(config.record_slots, reset_less=True)
        m.d.sync += [
            places.eq(select_many(m, "place", named(m, "moved_here", same_record & moved), slots)),
            own_places.eq(
                select_many(m, "own", named(m, "own_moved_here", same_record & same_key & moved), slots)
            ),
        ]
        return same_record, same_key, same_turn, places, own_places
