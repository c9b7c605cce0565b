"""Issue control: a touch's reads start at times that depend on public times and pages alone."""

from typing import Any, ClassVar

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.errors import check_range
from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.oram.config import OramConfig
from hw.oram.core.layouts import operation_layout, record_layout, touch_layout
from hw.oram.core.touch.credits import Credits
from hw.oram.core.touch.scoreboard import Scoreboard
from hw.oram.core.touch.timer import Timer


class Issue(wiring.Component):
    """Splits operations into touches and issues them.

    ``deadline``: D, cycles from an operation's acceptance to the issue of its first touch, at least 8.
    ``idle_deadline``: the same of an operation that is alone, from 8 to D.

    Behaviour
    ---------
    i(j) is the first cycle, at least ``item_cycles`` after i(j - 1), in which the scoreboard has room. For an
    operation's first touch, it is also at least D after a(n), and fewer than ``inflight`` operations are
    issued and not admitted. All counts are those of the previous cycle. An operation must have arrived
    `LOOKUP` cycles before its earliest issue, whatever its page and the counts.

    A page that is in flight is read all the same, and the touch has the place of the earlier one
    (``forward``).

    Why
    ---
    Secrets decide only whether an operation is late. The scoreboard looks its page up at a fixed time after
    its deadline, not at its arrival.
    """

    #: Cycles from the lookup of an operation's page to the issue of its touch.
    LOOKUP: ClassVar = 1 + Scoreboard.LATENCY
    #: Cycles of the deadline outside of the timer: from a(n) to its pulse, and to the count.
    _AROUND: ClassVar = 2

    def __init__(self, config: OramConfig, *, deadline: int, idle_deadline: int) -> None:
        check_range("idle_deadline", idle_deadline, 8, deadline)
        self._config = config
        index = record_layout(config)
        super().__init__(
            {
                "accepted": In(1),  #: Pulse in the cycle after a(n).
                #: With ``accepted``: the operation is alone. All earlier ones were admitted.
                "alone": In(1),
                #: Always ready: at most ``config.accepted`` wait. Its arrival time is secret.
                "operation": In(stream.Signature(operation_layout(config))),
                "turned": In(1),  #: Pulse: the oldest issued operation was admitted.
                "released": In(1),  #: Pulse: the oldest page in flight is written.
                "halt": In(1),  #: Stops all issue.
                #: Pages to read, in the cycle after the issue.
                "page": Out(stream.Signature(config.record_index_bits, always_ready=True)),
                "record": Out(stream.Signature(index)),  #: Records to read whole.
                #: Records whose header is read: one for each label of an operation that keeps its item.
                "fresh": Out(stream.Signature(index)),
                #: In the cycle after the issue, i(j).
                "touch": Out(stream.Signature(touch_layout(config), always_ready=True)),
                "touch_alone": Out(1),  #: With ``touch``: its operation is alone.
                #: ``busy``: one of the ``item_cycles`` after an issue. ``credit``: the next touch waits for
                #: credits.
                "activity": Out(data.StructLayout({"busy": 1, "credit": 1})),
                #: An operation missed its deadline: from this cycle on nothing may be issued (``halt``).
                "late": Out(1),
            }
        )
        around = self.LOOKUP + self._AROUND
        self.timer = Timer(cycles=deadline - around, spacing=config.interval)
        self.idle_timer = Timer(cycles=idle_deadline - around, most=1)
        self.due = Credits(config.accepted, full=False)
        self.turns = Credits(config.issued)
        self.scoreboard = Scoreboard(page_bits=config.record_index_bits, pages=config.scoreboard_pages)
        # Bounded by the credits, as a proof checks: operations that wait, and the one being issued.
        self.operations = Fifo(operation_layout(config), depth=config.accepted + 1, ram_style="distributed")
        # The deep queue of headers has a longer latency than that of records, so a record is read first.
        self.records = Fifo(index, depth=config.issued * config.items, ram_style="distributed")
        self.heads = Fifo(data.ArrayLayout(index, config.label_count), depth=config.issued, ram_style="block")

    def elaborate(self, platform: Any) -> Module:
        """A slot holds one touch until its page is looked up and its credits are free."""
        m = Module()
        config = self._config
        m.submodules.timer, m.submodules.due = timer, due = self.timer, self.due
        m.submodules.idle_timer = idle_timer = self.idle_timer
        m.submodules.turns, m.submodules.scoreboard = turns, scoreboard = self.turns, self.scoreboard
        m.submodules.operations, m.submodules.records = operations, records = self.operations, self.records
        m.submodules.heads = heads = self.heads
        connect(m, flipped(self.operation), operations.i)
        connect(m, records.o, flipped(self.record))

        # The slot: loaded at its operation's deadline, found up, issued.
        slot = Signal(touch_layout(config), reset_less=True)
        full = Signal()
        found = Signal()
        checked = Signal()
        spaced = Signal(init=1)
        load = Signal()
        issue = Signal()
        issued = Signal()
        items = config.items
        number = Signal(range(config.items))
        first, last = number == 0, number == items - 1
        wanted = ~full & spaced & (~first | due.some) & ~self.halt
        m.d.comb += [
            found.eq(delay(m, "lookup", load, Scoreboard.LATENCY)),
            timer.i.eq(self.accepted & ~self.alone),
            idle_timer.i.eq(self.alone),
            due.give.eq(timer.o | idle_timer.o),  # never both: an operation alone is due before later ones
            due.take.eq(load & first),
            load.eq(wanted & operations.o.valid),
            operations.o.ready.eq(load & last),
        ]
        m.d.sync += checked.eq((found | checked) & ~issue)
        with m.If(wanted & ~operations.o.valid):
            m.d.sync += self.late.eq(1)
        with m.If(load):
            m.d.sync += [full.eq(1), number.eq(number + 1)]  # wraps: items are a power of two
            self._fill(m, slot, operations.o.payload, number, first, last)
        with m.If(issue):
            m.d.sync += full.eq(0)

        m.d.comb += [
            issue.eq(checked & scoreboard.room & (turns.some | ~slot.first) & ~self.halt),
            scoreboard.page.eq(slot.record),
            scoreboard.insert.eq(issued & slot.page_valid),
            scoreboard.release.eq(self.released),
            turns.take.eq(issued & slot.first),
            turns.give.eq(self.turned),
        ]
        wait = Signal(range(max(2, config.item_cycles - self.LOOKUP)))
        m.d.sync += issued.eq(issue)
        with m.If(issue):
            m.d.sync += [
                wait.eq(config.item_cycles - self.LOOKUP - 1),
                spaced.eq(config.item_cycles == self.LOOKUP + 1),
            ]
        with m.Elif(~spaced):
            m.d.sync += [wait.eq(wait - 1), spaced.eq(wait == 1)]

        owned = Signal(range(config.item_cycles))  # cycles that count for the last touch
        with m.If(issue):
            m.d.sync += owned.eq(config.item_cycles - 1)
        with m.Elif(owned != 0):
            m.d.sync += owned.eq(owned - 1)
        m.d.comb += [
            self.activity.busy.eq(issue | (owned != 0)),
            self.activity.credit.eq(checked),
        ]

        # An operation alone is the next one to be issued.
        alone = Signal()
        with m.If(self.alone):
            m.d.sync += alone.eq(1)
        with m.Elif(issued & slot.last):
            m.d.sync += alone.eq(0)

        # The slot keeps its touch in the cycle after the issue.
        m.d.comb += [
            self.page.valid.eq(issued & slot.page_valid),
            self.page.payload.eq(slot.record),
            self.touch.valid.eq(issued),
            self.touch_alone.eq(alone),
            self.touch.payload.eq(slot),
            self.touch.payload.forward.eq(scoreboard.found & slot.page_valid),
            self.touch.payload.place.eq(scoreboard.place),
            self.touch.payload.near.eq(Mux(slot.page_valid, scoreboard.near, 0)),
            records.i.valid.eq(issued & slot.record_valid),
            records.i.payload.index.eq(slot.record),
            heads.i.valid.eq(issued & slot.last & slot.keep),
        ]
        self._headers(m, slot)
        return m

    def _headers(self, m: Module, slot: Any) -> None:
        """Request the headers of an operation's fresh records, one after the other."""
        config, heads = self._config, self.heads
        label = Signal(range(config.label_count))
        m.d.comb += [
            self.fresh.valid.eq(heads.o.valid),
            self.fresh.payload.eq(heads.o.payload[label]),
            heads.o.ready.eq(self.fresh.ready & (label == config.label_count - 1)),
        ]
        for n in range(config.label_count):
            m.d.comb += heads.i.payload[n].index.eq(slot.fresh[n])
        with m.If(self.fresh.valid & self.fresh.ready):
            m.d.sync += label.eq(label + 1)

    def _fill(self, m: Module, slot: Any, operation: Any, number: Signal, first: Any, last: Any) -> None:
        """Load the slot with touch ``number`` of ``operation``; a label's page belongs to its last touch."""
        config = self._config
        per_label = config.items // config.label_count
        pages = Array(
            operation.page_valid[k // per_label] if k % per_label == per_label - 1 else 0
            for k in range(config.items)
        )
        m.d.sync += [
            slot.operation.eq(operation.operation),
            slot.code.eq(operation.code),
            slot.key.eq(operation.key),
            slot.status.eq(operation.status),
            slot.age.eq(operation.age),
            slot.first.eq(first),
            slot.last.eq(last),
            slot.keep.eq(operation.keep),
            slot.page_valid.eq(pages[number]),
            slot.record_valid.eq(operation.record_valid.bit_select(number, 1)),
            slot.record.eq(operation.record[number]),
            slot.fresh.eq(operation.fresh),
        ]
