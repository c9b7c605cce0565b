"""The stage: touches fill their pages from lists; operations append their items to fresh records."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.oram.config import BLOCK_BYTES, RECORD_HEADER_BYTES, VERSION_BITS, OramConfig
from hw.oram.core.bits import count_before
from hw.oram.core.layouts import BEAT_BITS, seal_layout, touch_layout
from hw.oram.core.stage.beat_delay import BeatDelay
from hw.oram.core.stage.capture import Capture
from hw.oram.core.stage.key_match import KeyMatch
from hw.oram.core.stage.layouts import (
    done_layout,
    item_layout,
    response_layout,
    searches,
    value_write_layout,
)
from hw.oram.core.stage.lists import Lists
from hw.oram.core.stage.merge import PageMerge
from hw.oram.core.stage.page_slots import PageSlots
from hw.oram.core.stage.schedule import KEY_BYTES, PAGE_KEYS_OFFSET, StageSchedule
from hw.oram.core.stage.values import Values
from hw.oram.core.stage.writer import Writer, record_write_layout

#: Maximum number of touches between the loop and their values.
TOUCHES = 8


class Stage(wiring.Component):
    """Executes operations whose records are known.

    Behaviour
    ---------
    Only a fault stalls it: the admission control ensures that records and headers arrive before a touch. No
    cycle depends on keys, records, or their content.

    Steps that depend on the previous touch form a loop of four cycles, five for long lists (`Lists`).
    `Recall` looks up ahead of it. The steps behind it need its result: `PageMerge` delays the page's beats
    until the whole record has arrived, and `Values` routes the values.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        super().__init__(
            {
                #: At least `OramConfig.item_cycles` apart, all `OramConfig.items` touches of an operation in
                #: order.
                "touch": In(stream.Signature(touch_layout(config), always_ready=True)),
                #: Pages: the first beat with its touch, the others `OramConfig.page_beat_cycles` apart. One
                #: that is forwarded has its version in the place of its tag, and its record another one.
                "page": In(stream.Signature(BEAT_BITS, always_ready=True)),
                #: Records in the order of their touches.
                "record": In(stream.Signature(BEAT_BITS)),
                #: First beats of the fresh records of operations that keep their item.
                "header": In(stream.Signature(8 * RECORD_HEADER_BYTES)),
                #: Values of commands, before their operation's touches.
                "command": In(stream.Signature(value_write_layout(config), always_ready=True)),
                #: Pages, `StageSchedule.page` cycles after their arrival.
                "sealed": Out(stream.Signature(BEAT_BITS, always_ready=True)),
                #: Page and next version of each page, before it.
                "seal": Out(stream.Signature(seal_layout(), always_ready=True)),
                #: Beats of written records, in order.
                "write": Out(stream.Signature(record_write_layout(config))),
                #: Rows of the responses, `StageSchedule.response` cycles after the operation's last touch.
                "response": Out(stream.Signature(response_layout(config), always_ready=True)),
                #: Fault, until reset: the list and the overflow were full, and an item is lost.
                "overflow": Out(1),
                #: Fault, until reset: a record or header was late, or a write was not taken in time.
                "late": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Each part has its cycle after the touch."""
        m = Module()
        config, schedule = self._config, StageSchedule(self._config)
        at = [self.touch.valid]
        for cycle in range(1, schedule.values + 1):
            at.append(delay(m, f"at_{cycle}", at[-1], 1))

        with_page = [self.touch.valid & self.touch.payload.page_valid]
        for cycle in range(1, schedule.emit):
            with_page.append(delay(m, f"with_page_{cycle}", with_page[-1], 1))

        m.submodules.lists = lists = Lists(config)
        m.submodules.merge = merge = PageMerge(config)
        m.submodules.values = values = Values(config)
        m.submodules.writer = writer = Writer(config)
        late = Signal(2)
        self._look_up(m, lists, at, late)
        record = self._records(m, lists, merge, at, late)
        page, page_own = self._pages(m, lists, merge, with_page)
        connect(m, merge.o, flipped(self.sealed))

        # Values: of the operation's item in the page or the list; and the steps behind the loop.
        m.submodules.done = waiting = Fifo(done_layout(config), depth=TOUCHES)
        done = Signal(done_layout(config), reset_less=True)
        with m.If(at[schedule.values - 1]):
            m.d.sync += done.eq(waiting.o.payload)
        m.d.comb += [
            waiting.i.valid.eq(lists.done_valid),
            waiting.i.payload.eq(lists.done),
            waiting.o.ready.eq(at[schedule.values - 1]),
            values.start.eq(at[schedule.values]),
            values.done.eq(done),
        ]
        for name, beats, own, shape in (
            ("page", page, page_own, (config.slots, config.page_beats, config.page_values_offset)),
            (
                "list",
                record,
                lists.own_slots,
                (config.record_slots, config.record_beats, config.record_values_offset),
            ),
        ):
            slots, count, offset = shape
            capture = Capture(config, slots=slots, beats=count, values_offset=offset)
            m.submodules[f"{name}_value"] = capture
            m.d.comb += [
                capture.i.valid.eq(beats.valid),
                capture.i.payload.eq(beats.payload),
                capture.own.eq(own),
                capture.bank.eq(getattr(values, f"{name}_bank")),
                capture.row.eq(values.row),
                getattr(values, f"{name}_value").eq(capture.data),
            ]
        connect(m, flipped(self.command), values.command)
        connect(m, values.response, flipped(self.response))
        connect(m, values.change, writer.change)
        connect(m, values.changed_row, writer.row)
        connect(m, writer.o, flipped(self.write))

        with m.If(lists.overflow):
            m.d.sync += self.overflow.eq(1)
        with m.If(late.any() | writer.full):
            m.d.sync += self.late.eq(1)
        return m

    def _look_up(self, m: Module, lists: Any, at: list[Any], late: Any) -> None:
        """Drive the loop with each touch, and with the headers of the fresh records."""
        config, recall = self._config, StageSchedule(self._config).recall
        coming = delay(m, "touch", self.touch.payload, recall - 1, reset=False)
        item = Signal(item_layout(config), reset_less=True)
        touch = item.touch
        turn = Signal(range(config.window))
        index = Signal.like(item.index)
        m.d.comb += [
            index.eq(Mux(coming.first, 0, item.index + 1)),
            lists.ahead.eq(at[recall - 1]),
            lists.record.eq(coming.record),
            lists.index.eq(index),
        ]
        with m.If(at[recall - 1]):
            m.d.sync += [touch.eq(coming), item.index.eq(index), item.search.eq(searches(coming))]
            with m.If(coming.first):
                m.d.sync += turn.eq(Mux(turn == config.window - 1, 0, turn + 1))
        m.d.comb += [lists.start.eq(at[recall]), lists.item.eq(item), lists.item.turn.eq(turn)]

        asked = Signal()
        for label in range(config.label_count):
            bitmap = Signal(config.record_slots, name=f"bitmap_{label}", reset_less=True)
            load = Signal.like(lists.header[label].load, name=f"load_{label}", reset_less=True)
            page_items = Signal(range(config.slots + 1), name=f"page_items_{label}", reset_less=True)
            with m.If(at[recall + 2 + label] & touch.last & touch.keep):
                m.d.comb += asked.eq(1)
                words = [self.header.payload.word_select(word, 64) for word in range(3)]
                m.d.sync += [bitmap.eq(words[1]), page_items.eq(words[2])]
            m.d.sync += load.eq(count_before(m, f"load_{label}", bitmap, cycles=0)[-1] + page_items)
            m.d.comb += [lists.header[label].bitmap.eq(bitmap), lists.header[label].load.eq(load)]
        m.d.comb += self.header.ready.eq(asked)
        m.d.sync += late[0].eq(asked & ~self.header.valid)

    def _records(self, m: Module, lists: Any, merge: Any, at: list[Any], late: Any) -> Any:
        """Request records, and delay their beats until the loop has found the operation's item."""
        config, schedule = self._config, StageSchedule(self._config)
        touch = delay(m, "record_touch", self.touch.payload, schedule.record, reset=False)
        begins = Signal()
        asks = Signal()
        left = Signal(range(config.record_beats))
        key = Signal.like(touch.key, name="record_key", reset_less=True)
        has_page = Signal()
        had_page = Signal()
        m.d.comb += [
            begins.eq(at[schedule.record] & touch.record_valid),
            asks.eq(begins | (left != 0)),
            self.record.ready.eq(asks),
            has_page.eq(Mux(begins, touch.page_valid, had_page)),
        ]
        m.d.sync += late[1].eq(asks & ~self.record.valid)
        with m.If(begins):
            m.d.sync += [left.eq(config.record_beats - 1), key.eq(touch.key), had_page.eq(touch.page_valid)]
        with m.Elif(asks):
            m.d.sync += left.eq(left - 1)

        # The page's next version. Its record in HBM may lack the write of an earlier touch in flight.
        known = delay(m, "known", self.page.payload[:VERSION_BITS], schedule.record, reset=False)
        version = Signal(VERSION_BITS, reset_less=True)
        seal = Signal(seal_layout(), reset_less=True)
        page = Signal.like(touch.record, name="page_begun", reset_less=True)
        with m.If(begins):
            m.d.sync += [version.eq(Mux(touch.forward, known, self.record.payload)), page.eq(touch.record)]
        with m.If(begun := delay(m, "begun", begins, 1)):
            m.d.sync += [seal.version.eq(version + 1), seal.page.eq(page)]
        m.d.comb += [
            self.seal.valid.eq(delay(m, "sealing", begun & had_page, 1)),
            self.seal.payload.eq(seal),
            lists.version.eq(seal.version),
        ]

        m.submodules.record_keys = keys = KeyMatch(
            slots=config.record_slots,
            beats=config.record_beats,
            bitmap_word=1,
            keys_word=RECORD_HEADER_BYTES // KEY_BYTES,
            key_bits=config.key_bits,
        )
        cycles = schedule.load - schedule.record
        m.submodules.record_delay = beats = BeatDelay(cycles=cycles)
        m.d.comb += [
            keys.valid.eq(asks),
            keys.beat.eq(self.record.payload),
            keys.key.eq(key),
            lists.bitmap.eq(keys.bitmap),
            lists.match.eq(keys.match),
            beats.i.valid.eq(asks),
            beats.i.payload.eq(self.record.payload),
            merge.record.valid.eq(delay(m, "record_has_page", asks & has_page, cycles)),
            merge.record.payload.eq(beats.o.payload),
        ]
        return beats.o

    def _pages(self, m: Module, lists: Any, merge: Any, with_page: list[Any]) -> tuple[Any, Any]:
        """Compare the pages' keys, and delay their beats until the items for them are known."""
        config, schedule = self._config, StageSchedule(self._config)
        key = Signal(config.key_bits, reset_less=True)
        with m.If(with_page[0]):
            m.d.sync += key.eq(self.touch.payload.key)
        # The next touch may be there before the last key of a short page is compared.
        search = delay(m, "search", searches(self.touch.payload), schedule.page_slots, reset=False)
        m.submodules.page_keys = keys = KeyMatch(
            slots=config.slots,
            beats=config.page_beats,
            bitmap_word=BLOCK_BYTES // KEY_BYTES,
            keys_word=PAGE_KEYS_OFFSET // KEY_BYTES,
            key_bits=config.key_bits,
        )
        m.submodules.page_slots = slots = PageSlots(config)
        m.submodules.page_delay = beats = BeatDelay(cycles=schedule.emit + 2)
        connect(m, flipped(self.page), beats.i)
        connect(m, beats.o, merge.page)
        m.d.comb += [
            keys.valid.eq(self.page.valid),
            keys.beat.eq(self.page.payload),
            keys.key.eq(key),
            slots.start.eq(with_page[schedule.page_slots]),
            slots.search.eq(search),
            slots.bitmap.eq(keys.bitmap),
            slots.match.eq(keys.match),
            lists.page_own.eq(slots.own.any()),
            lists.page_free.eq(slots.free),
            merge.choose.eq(with_page[schedule.retry]),
            merge.own.eq(slots.own),
            merge.kept.eq(slots.kept),
            merge.before.eq(slots.before),
            merge.flush.eq(lists.flush),
            merge.ranks.eq(lists.before),
            merge.start.eq(with_page[schedule.emit - 1]),
            merge.ahead.eq(beats.ahead),
        ]
        return beats.o, merge.own_now
