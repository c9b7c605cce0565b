"""The loop: a touch's effect on its record's list, and the place of the operation's item."""

from typing import Any

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.lib.memory import uninitialised
from hw.oram.config import OramConfig
from hw.oram.core.bits import any_of, count_before, encode, lowest
from hw.oram.core.stage.layouts import done_layout, item_layout, place_layout, state_layout
from hw.oram.core.stage.overflow import Overflow
from hw.oram.core.stage.recall import Recall
from hw.oram.core.stage.schedule import StageSchedule


class Lists(wiring.Component):
    """Bitmaps of the lists, in the order of the touches.

    Behaviour
    ---------
    A record's state is the one after its newest touch or append within the window, else that in HBM. The
    states of the previous touch and operation are forwarded from registers: `Recall` does not hold their
    slots yet.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        slots, labels = config.record_slots, config.label_count
        done = done_layout(config)
        super().__init__(
            {
                #: ``ahead``, ``record``, ``index``: as in `Recall`.
                "ahead": In(1),
                "record": In(config.record_index_bits),
                "index": In(range(config.items + config.label_count)),
                #: ``start``, ``item``: a touch, in its cycle `StageSchedule.recall`.
                "start": In(1),
                "item": In(item_layout(config)),
                #: ``bitmap``, ``match``: of its record in HBM; in cycles ``loop`` - 1 and ``loop``.
                "bitmap": In(slots),
                "match": In(slots),
                #: Of the fresh records in HBM; in cycle ``retry``.
                "header": In(data.ArrayLayout(state_layout(config), labels)),
                #: ``page_own``, ``page_free``: its page holds the operation's item, and its free slots; from
                #: cycle ``loop`` + 1 to ``retry``.
                "page_own": In(1),
                "page_free": In(range(config.slots + 1)),
                "version": In(done.members["version"]),  #: Next version of the page; in cycle ``loop``.
                #: From cycle ``load``: the slot with the operation's item, if the record's beats hold it.
                "own_slots": Out(slots),
                #: ``flush``, ``before``: in cycle ``retry``: items that move into the page, and the
                #: candidates below each slot.
                "flush": Out(slots),
                "before": Out(data.ArrayLayout(range(slots + 1), slots)),
                #: ``done``, ``done_valid``: in the cycle after ``append``.
                "done_valid": Out(1),
                "done": Out(done),
                "overflow": Out(1),  #: A pulse: the list and the overflow were full.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Build the steps: a cycle each, or `StageSchedule.rank_cycles` for `rank`."""
        m = Module()
        steps = _Steps(m, self, self._config)
        steps.prepare()
        steps.hide()
        steps.rank()
        steps.retry()
        steps.append()
        steps.remember()
        return m


class _Steps:
    """The steps of `Lists`, one in each method, and the registers between them."""

    def __init__(self, m: Module, lists: Lists, config: OramConfig) -> None:
        schedule = StageSchedule(config)
        slots, labels = config.record_slots, config.label_count
        state = state_layout(config)
        self.m, self.lists, self.config, self.schedule = m, lists, config, schedule

        self.at = {schedule.recall: lists.start}
        for cycle in range(schedule.recall + 1, schedule.append + 2 + labels):
            self.at[cycle] = delay(m, f"at_{cycle}", self.at[cycle - 1], 1)
        self.loop, self.retry_at, self.append_at = schedule.loop, schedule.retry, schedule.append
        m.submodules.recall = self.recall = Recall(config)
        m.submodules.overflow = self.overflow = Overflow(config)
        #: States at each kind of place.
        self.states = [
            uninitialised(width=state.size, depth=config.window, ram_style="distributed")
            for _ in range(config.items + labels)
        ]
        for kind, states in enumerate(self.states):
            m.submodules[f"states_{kind}"] = states

        #: Set by `prepare`.
        self.item = _register(item_layout(config), "item_held")
        self.place = data.View(place_layout(config), Cat(self.item.turn, self.item.index))
        self.early = _register(slots, "early")
        self.after_touch = _register(1, "after_touch")
        self.after_append = _register(labels, "after_append")
        self.after_record = _register(1, "after_record", reset=True)
        #: Set by `hide`.
        self.held, self.own = _register(slots, "bitmap_held"), _register(slots, "own")
        self.own_slots = _register(slots, "own_slots_held")
        self.flushable = _register(slots, "flushable")
        self.in_log, self.log_turn = _register(1, "in_log"), _register(range(config.window), "log_turn")
        self.version = _register(lists.version.shape(), "version_held")
        #: Set by `rank`.
        self.flush = _register(slots, "flush_held")
        self.flushed = _register(range(config.slots + 1), "flushed")
        self.kept, self.kept_count = _register(slots, "kept"), _register(range(slots + 1), "kept_count")
        #: Set by `retry`: the list's state after the touch; whether and where an overflow item moves into it.
        self.touched = _register(state, "touched")
        self.taken = _register(1, "taken", reset=True)  # by an earlier touch of the operation
        self.moves, self.move_slot = _register(1, "moves"), _register(slots, "move_slot")
        self.page_items = _register(range(config.slots + 1), "page_items")
        self.in_page = _register(1, "in_page")
        self.base = [_register(state, f"base_{label}") for label in range(labels)]
        self.after_this = _register(labels, "after_this")
        self.fresh_equal = _register(1, "fresh_equal")  # both fresh records are the same
        #: Set by `append`: states of the fresh records, and the slots that were filled.
        self.appended = [_register(state, f"appended_{label}") for label in range(labels)]
        self.slot_of = [_register(slots, f"slot_of_{label}", reset=True) for label in range(labels)]
        self.moved_slot = _register(slots, "moved_slot", reset=True)
        self.listed, self.stored = _register(1, "listed"), _register(1, "stored")
        self.done_item = _register(item_layout(config), "done_item")
        self.retried, self.retry_slot = _register(1, "retried"), _register(range(slots), "retry_slot")
        self.record = _register(config.record_index_bits, "fresh_record")
        self.choice, self.in_list = _register(1, "choice"), _register(1, "in_list")
        self.fault = _register(1, "fault", reset=True)

    def _read_state(self, place: Any) -> Any:
        """Read the state at a place of the log."""
        read = []
        for states in self.states:
            port = states.read_port(domain="comb")
            self.m.d.comb += port.addr.eq(place.turn)
            read.append(port.data)
        return data.View(state_layout(self.config), Array(read)[place.kind])

    def prepare(self) -> None:
        """Before the loop: find the record's state, except for changes of the previous touch."""
        m, at, loop, lists = self.m, self.at, self.loop, self.lists
        recall, overflow = self.recall, self.overflow
        m.d.comb += [
            recall.ahead.eq(lists.ahead),
            recall.record.eq(lists.record),
            recall.index.eq(lists.index),
            recall.start.eq(lists.start),
            recall.item.eq(lists.item),
            overflow.prepare.eq(at[loop - 3]),
            overflow.item.eq(lists.item),
            overflow.take.eq(at[loop + 1]),
            overflow.decide.eq(at[self.retry_at]),
            overflow.apply.eq(at[self.append_at]),
            overflow.current.eq(self.item),
        ]
        last_place = _register(place_layout(self.config), "last_place")
        last_turn = _register(range(self.config.window), "last_turn")
        last_record = _register(self.config.record_index_bits, "last_record")
        last_valid = _register(1, "last_valid", reset=True)
        found, items, labels = recall.found, self.config.items, self.config.label_count
        logged_state = self._read_state(found.place)
        with m.If(at[loop - 1]):
            m.d.sync += [
                self.item.eq(lists.item),
                self.early.eq(Mux(found.valid, logged_state.bitmap, lists.bitmap)),
                self.after_touch.eq(found.valid & (Value.cast(found.place) == Value.cast(last_place))),
                self.after_append.eq(
                    Cat(
                        found.valid & (found.place.turn == last_turn) & (found.place.kind == items + label)
                        for label in range(labels)
                    )
                ),
                self.after_record.eq(
                    last_valid & lists.item.touch.record_valid & (lists.item.touch.record == last_record)
                ),
                last_record.eq(lists.item.touch.record),
                last_valid.eq(lists.item.touch.record_valid),
            ]
            m.d.sync += Value.cast(last_place).eq(Cat(lists.item.turn, lists.item.index))
            with m.If(lists.item.touch.last):
                m.d.sync += last_turn.eq(lists.item.turn)

    def hide(self) -> None:
        """First: forward the previous touch's bitmap; hide items that HBM does not hold yet."""
        m, recall, overflow, touch = self.m, self.recall, self.overflow, self.item.touch
        slots, labels = self.config.record_slots, self.config.label_count
        previous = [self.slot_of[n] & recall.previous[n].replicate(slots) for n in range(labels)]
        previous_own = [self.slot_of[n] & recall.previous_own[n].replicate(slots) for n in range(labels)]
        bitmap = Signal(slots)
        hidden = Signal(slots)
        logged = Signal(slots)
        moved = Signal(slots)
        m.d.comb += [
            bitmap.eq(self.early),
            logged.eq(any_of([recall.own, *previous_own])),
            moved.eq(overflow.own_moved & (~recall.previous_put).replicate(slots)),
            hidden.eq(
                any_of(
                    [
                        recall.unseen,
                        overflow.moved,
                        *previous,
                        self.moved_slot & self.after_record.replicate(slots),
                    ]
                )
            ),
        ]
        for label in range(labels):
            with m.If(self.after_append[label]):
                m.d.comb += bitmap.eq(self.appended[label].bitmap)
        with m.If(self.after_touch):
            m.d.comb += bitmap.eq(self.touched.bitmap)
        shown = bitmap & ~hidden
        own_here = self.lists.match & (self.item.search & touch.record_valid).replicate(slots)
        not_taken = touch.first | ~self.taken
        with m.If(self.at[self.loop]):
            m.d.sync += [
                self.held.eq(bitmap),
                self.own.eq((logged | moved) & not_taken.replicate(slots)),
                self.own_slots.eq(shown & own_here),
                self.flushable.eq(shown & ~own_here & touch.page_valid.replicate(slots)),
                self.in_log.eq(logged.any() & not_taken),
                self.log_turn.eq(recall.log_turn),
                self.version.eq(self.lists.version),
            ]
        m.d.comb += self.lists.own_slots.eq(self.own_slots)

    def rank(self) -> None:
        """Second: rank the list's items; the page takes as many as it has free slots."""
        m, free = self.m, self.lists.page_free
        *ranks, total = count_before(m, "rank", self.flushable, cycles=self.schedule.rank_cycles - 1)
        before = _register(self.lists.before.shape(), "before_held")
        left = self.held & ~self.own & ~self.own_slots
        with m.If(self.at[self.retry_at - 1]):
            m.d.sync += [
                self.flush.eq(Cat(self.flushable[slot] & (rank < free) for slot, rank in enumerate(ranks))),
                *(before[slot].eq(rank) for slot, rank in enumerate(ranks)),
                self.flushed.eq(Mux(total < free, total, free)),
                self.kept.eq(left),
                self.kept_count.eq(count_before(m, "left", left, cycles=0)[-1]),
            ]
        m.d.comb += [self.lists.flush.eq(self.flush), self.lists.before.eq(before)]

    def retry(self) -> None:
        """Third: an overflow item takes the lowest free slot; read the fresh records' states."""
        m, overflow, touch, slots = self.m, self.overflow, self.item.touch, self.config.record_slots
        moved_before = self.moved_slot & overflow.own_moved_previous.replicate(slots)
        rest = self.kept & ~self.flush & ~moved_before
        slot = lowest(m, "slot", ~rest)
        stay = Mux(touch.page_valid, self.config.slots - self.lists.page_free, 0)
        with m.If(self.at[self.retry_at]):
            m.d.sync += [
                self.touched.bitmap.eq(rest | slot & overflow.waits.replicate(slots)),
                self.touched.load.eq(
                    stay + self.kept_count - overflow.own_moved_previous + (overflow.waits & ~rest.all())
                ),
                self.moves.eq(overflow.waits & ~rest.all()),
                self.move_slot.eq(slot & overflow.waits.replicate(slots)),
                self.page_items.eq(Mux(touch.page_valid, stay + self.flushed, 0)),
                self.in_page.eq(self.lists.page_own & touch.page_valid),
                self.taken.eq((self.taken & ~touch.first) | self.own.any() | overflow.own_moved_previous),
            ]
        labels = self.config.label_count
        with m.If(self.at[self.retry_at]):
            for label in range(labels):
                fresh = self.recall.fresh[label]
                fresh_state = self._read_state(fresh.place)
                with m.If(fresh.valid):
                    m.d.sync += self.base[label].eq(fresh_state)
                with m.Else():
                    m.d.sync += self.base[label].eq(self.lists.header[label])
                same = Value.cast(fresh.place) == Value.cast(self.place)
                m.d.sync += self.after_this[label].eq(fresh.valid & same)
            m.d.sync += self.fresh_equal.eq(touch.fresh[0] == touch.fresh[labels - 1])

    def append(self) -> None:
        """Fourth: the operation's item takes the lowest free slot of the fresh record with fewer items."""
        m, overflow, touch, labels = self.m, self.overflow, self.item.touch, self.config.label_count
        state = state_layout(self.config)
        now = [Signal(state, name=f"now_{label}") for label in range(labels)]
        for label in range(labels):
            m.d.comb += now[label].eq(Mux(self.after_this[label], self.touched, self.base[label]))
        free = [lowest(m, f"free_{label}", ~now[label].bitmap) for label in range(labels)]
        second = Signal()
        if labels == 2:
            m.d.comb += second.eq(~self.fresh_equal & (now[1].load < now[0].load))
        chosen = [~second, second][:labels]
        puts = touch.last & touch.keep
        lists_full = Cat(now[label].bitmap.all() for label in range(labels))
        full = (lists_full & Cat(chosen)).any()
        m.d.comb += [
            overflow.move.eq(self.moves),
            overflow.slot.eq(self.move_slot),
            overflow.store.eq(puts & full),
            overflow.record.eq(Mux(second, touch.fresh[labels - 1], touch.fresh[0])),
        ]
        m.d.sync += self.fault.eq(self.at[self.append_at] & puts & full & overflow.full)
        with m.If(self.at[self.append_at]):
            m.d.sync += [
                self.done_item.eq(self.item),
                self.moved_slot.eq(self.move_slot),
                self.retried.eq(self.moves),
                self.retry_slot.eq(encode(self.move_slot)),
                self.listed.eq(puts & ~full),
                self.stored.eq(puts & full),
                self.choice.eq(second),
                self.record.eq(overflow.record),
                self.in_list.eq(self.own_slots.any()),
            ]
            with m.If(touch.last):
                for label in range(labels):
                    put = free[label] & (puts & chosen[label]).replicate(self.config.record_slots)
                    m.d.sync += self.slot_of[label].eq(put)
                    self._add(self.appended[label], now[label], put)
                if labels == 2:
                    with m.If(self.fresh_equal):
                        put = free[0] & puts.replicate(self.config.record_slots)
                        self._add(self.appended[1], now[0], put)

    def _add(self, appended: Any, state: Any, put: Value) -> None:
        """Add an item to a state, in slot ``put`` or none."""
        self.m.d.sync += [
            appended.bitmap.eq(state.bitmap | put),
            appended.load.eq(state.load + put.any()),
        ]

    def remember(self) -> None:
        """Last: write the states for the next touches, and drive `Lists.done`."""
        m, lists, recall, overflow = self.m, self.lists, self.recall, self.overflow
        items, labels, append = self.config.items, self.config.label_count, self.append_at
        for kind, states in enumerate(self.states):
            write = states.write_port()
            if kind < items:
                m.d.comb += [
                    write.addr.eq(self.item.turn),
                    write.data.eq(self.touched),
                    write.en.eq(self.at[append] & (self.item.index == kind)),
                ]
            else:
                m.d.comb += [
                    write.addr.eq(self.done_item.turn),
                    write.data.eq(self.appended[kind - items]),
                    write.en.eq(self.at[append + 1 + kind - items] & self.done_item.touch.last),
                ]
        m.d.comb += [
            recall.written.eq(self.at[append + 1] & self.done_item.touch.last),
            recall.written_turn.eq(self.done_item.turn),
            *(recall.appended[label].eq(self.slot_of[label]) for label in range(labels)),
            lists.overflow.eq(self.fault),
            lists.done_valid.eq(self.at[append + 1]),
        ]
        fresh_bitmap = Mux(self.choice, self.appended[labels - 1].bitmap, self.appended[0].bitmap)
        done = {
            "item": self.done_item,
            "in_page": self.in_page,
            "in_list": self.in_list,
            "in_log": self.in_log,
            "in_overflow": overflow.own,
            "log_turn": self.log_turn,
            "own_entry": overflow.own_entry,
            "version": self.version,
            "page_items": self.page_items,
            "bitmap": self.touched.bitmap,
            "retried": self.retried,
            "retry_entry": overflow.retry_entry,
            "retry_slot": self.retry_slot,
            "retry_key": overflow.retry_key,
            "listed": self.listed,
            "fresh": self.record,
            "fresh_bitmap": fresh_bitmap,
            "fresh_slot": encode(any_of(self.slot_of)),
            "stored": self.stored,
            "stored_entry": overflow.stored_entry,
        }
        m.d.comb += [getattr(lists.done, name).eq(value) for name, value in done.items()]


def _register(shape: Any, name: str, *, reset: bool = False) -> Any:
    return Signal(shape, name=name, reset_less=not reset)
