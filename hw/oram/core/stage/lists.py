"""The loop: what a touch leaves of its record's list, and where the operation's item goes."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.lib.memory import uninitialised
from hw.oram.config import OramConfig
from hw.oram.core.bits import any_of, count_before, encode, lowest
from hw.oram.core.stage.layouts import done_layout, item_layout, place_layout, state_layout
from hw.oram.core.stage.overflow import Overflow
from hw.oram.core.stage.recall import Recall
from hw.oram.core.stage.schedule import Schedule


class Lists(wiring.Component):
    """Bitmaps of the lists, in the order of the touches.

    Behaviour
    ---------
    A record's state is what the newest touch or append of the window left, or what HBM holds.  Of the touch
    and the operation just before, it comes out of registers, and their slots are not in `Recall` yet.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        slots, labels = config.list_slots, config.label_count
        done = done_layout(config)
        super().__init__(
            {
                #: ``start``, ``item``: a touch, in cycle `Schedule.recall` of it.
                "start": In(1),
                "item": In(item_layout(config)),
                #: ``bitmap``, ``match``: of its record in HBM; in cycles ``loop`` - 1 and ``loop``.
                "bitmap": In(slots),
                "match": In(slots),
                #: Of the fresh records in HBM; in cycle ``retry``.
                "header": In(data.ArrayLayout(state_layout(config), labels)),
                #: ``page_own``, ``page_free``: its page had the operation's item, and has so many free slots;
                #: from cycle ``loop`` + 1 to ``retry``.
                "page_own": In(1),
                "page_free": In(range(config.slots + 1)),
                "version": In(done.members["version"]),  #: Next version of the page; in cycle ``loop``.
                #: From cycle ``load``: the slot with the operation's item, if the record's beats show it.
                "own_slots": Out(slots),
                #: ``flush``, ``before``: in cycle ``retry``: items that go into the page, and those below
                #: each slot that may.
                "flush": Out(slots),
                "before": Out(data.ArrayLayout(range(slots + 1), slots)),
                #: ``done``, ``done_valid``: in the cycle after ``append``.
                "done_valid": Out(1),
                "done": Out(done),
                "overflow": Out(1),  #: A pulse: neither the list nor the overflow store had room.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Four or five steps, each in a cycle; ``at`` says which has its turn."""
        m = Module()
        config, schedule = self._config, Schedule(self._config)
        slots, labels, items = config.list_slots, config.label_count, config.items
        state = state_layout(config)

        def register(shape: Any, name: str, *, reset: bool = False) -> Any:
            return Signal(shape, name=name, reset_less=not reset)

        at = {schedule.recall: self.start}
        for cycle in range(schedule.recall + 1, schedule.append + 2 + labels):
            at[cycle] = delay(m, f"at_{cycle}", at[cycle - 1], 1)
        loop, retry, append = schedule.loop, schedule.retry, schedule.append
        m.submodules.recall = recall = Recall(config)
        m.submodules.overflow = overflow = Overflow(config)
        m.submodules.states = states = uninitialised(
            width=state.size, depth=1 << place_layout(config).size, ram_style="distributed"
        )
        m.d.comb += [
            recall.start.eq(self.start),
            recall.item.eq(self.item),
            overflow.prepare.eq(at[loop - 3]),
            overflow.item.eq(self.item),
            overflow.take.eq(at[loop + 1]),
            overflow.decide.eq(at[retry]),
            overflow.apply.eq(at[append]),
        ]

        def read_state(place: Any) -> Any:
            port = states.read_port(domain="comb")
            m.d.comb += port.addr.eq(Value.cast(place))
            return data.View(state, port.data)

        # Before the loop: what is not as late as the touch before.
        item = register(item_layout(config), "item_held")
        touch = item.touch
        m.d.comb += overflow.current.eq(item)
        place = data.View(place_layout(config), Cat(item.turn, item.index))
        last_place = register(place_layout(config), "last_place")
        last_turn = register(range(config.window), "last_turn")
        last_record, last_valid = (
            register(config.record_index_bits, "last_record"),
            register(1, "last_valid", reset=True),
        )
        early = register(slots, "early")
        after_touch = register(1, "after_touch")
        after_append = register(labels, "after_append")
        after_record = register(1, "after_record", reset=True)
        found = recall.found
        known = read_state(found.place)
        with m.If(at[loop - 1]):
            m.d.sync += [
                item.eq(self.item),
                early.eq(Mux(found.valid, known.bitmap, self.bitmap)),
                after_touch.eq(found.valid & (Value.cast(found.place) == Value.cast(last_place))),
                after_append.eq(
                    Cat(
                        found.valid & (found.place.turn == last_turn) & (found.place.kind == items + label)
                        for label in range(labels)
                    )
                ),
                after_record.eq(
                    last_valid & self.item.touch.record_valid & (self.item.touch.record == last_record)
                ),
                last_record.eq(self.item.touch.record),
                last_valid.eq(self.item.touch.record_valid),
            ]
            m.d.sync += Value.cast(last_place).eq(Cat(self.item.turn, self.item.index))
            with m.If(self.item.touch.last):
                m.d.sync += last_turn.eq(self.item.turn)

        # First cycle: the list as it is, without the operation's item and what HBM does not show yet.
        touched = register(state, "touched")
        appended = [register(state, f"appended_{label}") for label in range(labels)]
        slot_of = [register(slots, f"slot_of_{label}", reset=True) for label in range(labels)]
        moved_slot = register(slots, "moved_slot", reset=True)
        just = [slot_of[label] & recall.just[label].replicate(slots) for label in range(labels)]
        just_own = [slot_of[label] & recall.just_own[label].replicate(slots) for label in range(labels)]
        taken = register(1, "taken", reset=True)  # by an earlier touch of the operation
        bitmap, hidden = Signal(slots), Signal(slots)
        logged, moved = Signal(slots), Signal(slots)
        m.d.comb += [
            bitmap.eq(early),
            logged.eq(any_of([recall.own, *just_own])),
            moved.eq(overflow.own_moved & (~recall.just_put).replicate(slots)),
            hidden.eq(
                any_of([recall.unseen, overflow.moved, *just, moved_slot & after_record.replicate(slots)])
            ),
        ]
        for label in range(labels):
            with m.If(after_append[label]):
                m.d.comb += bitmap.eq(appended[label].bitmap)
        with m.If(after_touch):
            m.d.comb += bitmap.eq(touched.bitmap)
        shown = bitmap & ~hidden
        own_here = self.match & (item.search & touch.record_valid).replicate(slots)
        not_taken = touch.first | ~taken
        held, own = register(slots, "bitmap_held"), register(slots, "own")
        own_slots, flushable = register(slots, "own_slots_held"), register(slots, "flushable")
        in_log, log_turn = register(1, "in_log"), register(range(config.window), "log_turn")
        version = register(self.version.shape(), "version_held")
        with m.If(at[loop]):
            m.d.sync += [
                held.eq(bitmap),
                own.eq((logged | moved) & not_taken.replicate(slots)),
                own_slots.eq(shown & own_here),
                flushable.eq(shown & ~own_here & touch.page_valid.replicate(slots)),
                in_log.eq(logged.any() & not_taken),
                log_turn.eq(recall.log_turn),
                version.eq(self.version),
            ]
        m.d.comb += self.own_slots.eq(own_slots)

        # Second: which of its items the page has room for.
        *ranks, total = count_before(m, "rank", flushable, cycles=schedule.rank_cycles - 1)
        flush, before = register(slots, "flush_held"), register(self.before.shape(), "before_held")
        flushed, kept = register(range(config.slots + 1), "flushed"), register(slots, "kept")
        kept_count = register(range(slots + 1), "kept_count")
        left = held & ~own & ~own_slots
        with m.If(at[retry - 1]):
            m.d.sync += [
                flush.eq(Cat(flushable[slot] & (rank < self.page_free) for slot, rank in enumerate(ranks))),
                *(before[slot].eq(rank) for slot, rank in enumerate(ranks)),
                flushed.eq(Mux(total < self.page_free, total, self.page_free)),
                kept.eq(left),
                kept_count.eq(count_before(m, "left", left, cycles=0)[-1]),
            ]
        m.d.comb += [self.flush.eq(flush), self.before.eq(before)]

        # Third: the list without them, and an item that waits takes the lowest free slot.
        just_moved = moved_slot & overflow.own_just_moved.replicate(slots)
        rest = kept & ~flush & ~just_moved
        slot = lowest(m, "slot", ~rest)
        moves, move_slot = register(1, "moves"), register(slots, "move_slot")
        page_items, in_page = register(range(config.slots + 1), "page_items"), register(1, "in_page")
        stay = Mux(touch.page_valid, config.slots - self.page_free, 0)
        with m.If(at[retry]):
            m.d.sync += [
                touched.bitmap.eq(rest | slot & overflow.waits.replicate(slots)),
                touched.load.eq(stay + kept_count - overflow.own_just_moved + (overflow.waits & ~rest.all())),
                moves.eq(overflow.waits & ~rest.all()),
                move_slot.eq(slot & overflow.waits.replicate(slots)),
                page_items.eq(Mux(touch.page_valid, stay + flushed, 0)),
                in_page.eq(self.page_own & touch.page_valid),
                taken.eq((taken & ~touch.first) | own.any() | overflow.own_just_moved),
            ]
        base = [register(state, f"base_{label}") for label in range(labels)]
        after_this = register(labels, "after_this")
        twins = register(1, "twins")  # both fresh records are one
        with m.If(at[retry]):
            for label in range(labels):
                fresh = recall.fresh[label]
                known_fresh = read_state(fresh.place)
                with m.If(fresh.valid):
                    m.d.sync += base[label].eq(known_fresh)
                with m.Else():
                    m.d.sync += base[label].eq(self.header[label])
                same = Value.cast(fresh.place) == Value.cast(place)
                m.d.sync += after_this[label].eq(fresh.valid & same)
            m.d.sync += twins.eq(touch.fresh[0] == touch.fresh[labels - 1])

        # Fourth: the operation's item takes the lowest free slot of the fresh record with fewer items.
        now = [Signal(state, name=f"now_{label}") for label in range(labels)]
        for label in range(labels):
            m.d.comb += now[label].eq(Mux(after_this[label], touched, base[label]))
        free = [lowest(m, f"free_{label}", ~now[label].bitmap) for label in range(labels)]
        second = Signal()
        if labels == 2:
            m.d.comb += second.eq(~twins & (now[1].load < now[0].load))
        chosen = [~second, second][:labels]
        puts = touch.last & touch.keep
        lists_full = Cat(now[label].bitmap.all() for label in range(labels))
        full = (lists_full & Cat(chosen)).any()
        listed, stored = register(1, "listed"), register(1, "stored")
        m.d.comb += [
            overflow.move.eq(moves),
            overflow.slot.eq(move_slot),
            overflow.store.eq(puts & full),
            overflow.record.eq(Mux(second, touch.fresh[labels - 1], touch.fresh[0])),
        ]
        done_item = register(item_layout(config), "done_item")
        retried, retry_slot = register(1, "retried"), register(range(slots), "retry_slot")
        record = register(config.record_index_bits, "fresh_record")
        choice, in_list = register(1, "choice"), register(1, "in_list")
        fault = register(1, "fault", reset=True)
        m.d.sync += fault.eq(at[append] & puts & full & overflow.full)
        with m.If(at[append]):
            m.d.sync += [
                done_item.eq(item),
                moved_slot.eq(move_slot),
                retried.eq(moves),
                retry_slot.eq(encode(move_slot)),
                listed.eq(puts & ~full),
                stored.eq(puts & full),
                choice.eq(second),
                record.eq(overflow.record),
                in_list.eq(own_slots.any()),
            ]
            with m.If(touch.last):
                for label in range(labels):
                    put = free[label] & (puts & chosen[label]).replicate(slots)
                    m.d.sync += [
                        slot_of[label].eq(put),
                        appended[label].bitmap.eq(now[label].bitmap | put),
                        appended[label].load.eq(now[label].load + put.any()),
                    ]
                if labels == 2:
                    with m.If(twins):
                        put = free[0] & puts.replicate(slots)
                        m.d.sync += [
                            appended[1].bitmap.eq(now[0].bitmap | put),
                            appended[1].load.eq(now[0].load + put.any()),
                        ]

        # Afterwards: what the next touches read.
        write = states.write_port()
        m.d.comb += [write.addr.eq(Value.cast(place)), write.data.eq(touched), write.en.eq(at[append])]
        for label in range(labels):
            with m.If(at[append + 1 + label]):
                m.d.comb += [
                    write.addr.eq(Cat(done_item.turn, Const(items + label, len(place.kind)))),
                    write.data.eq(appended[label]),
                    write.en.eq(done_item.touch.last),
                ]
        m.d.comb += [
            recall.written.eq(at[append + 1] & done_item.touch.last),
            recall.written_turn.eq(done_item.turn),
            *(recall.appended[label].eq(slot_of[label]) for label in range(labels)),
            self.overflow.eq(fault),
            self.done_valid.eq(at[append + 1]),
        ]
        done = {
            "item": done_item,
            "in_page": in_page,
            "in_list": in_list,
            "in_log": in_log,
            "in_overflow": overflow.own,
            "log_turn": log_turn,
            "own_entry": overflow.own_entry,
            "version": version,
            "page_items": page_items,
            "bitmap": touched.bitmap,
            "retried": retried,
            "retry_entry": overflow.retry_entry,
            "retry_slot": retry_slot,
            "retry_key": overflow.retry_key,
            "listed": listed,
            "fresh": record,
            "fresh_bitmap": Mux(choice, appended[labels - 1].bitmap, appended[0].bitmap),
            "fresh_slot": encode(any_of(slot_of)),
            "stored": stored,
            "stored_entry": overflow.stored_entry,
        }
        m.d.comb += [getattr(self.done, name).eq(value) for name, value in done.items()]
        return m
