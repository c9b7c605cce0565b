"""The log of recent operations: places of a touch's records, and the slot of the operation's item."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.lib.memory import ports, uninitialised
from hw.oram.config import OramConfig
from hw.oram.core.bits import any_of, encode, select
from hw.oram.core.stage.filled import FilledSlots
from hw.oram.core.stage.layouts import item_layout, place_layout
from hw.oram.core.stage.recent import Recent


def found_layout(config: OramConfig) -> data.StructLayout:
    """Return the place of a record in the log, if any."""
    return data.StructLayout({"valid": 1, "place": place_layout(config)})


def appended_layout(config: OramConfig) -> data.StructLayout:
    """Return the slot of the appended item in each fresh record, one-hot or none."""
    return data.ArrayLayout(config.record_slots, config.label_count)


class Recall(wiring.Component):
    """The log of the last `OramConfig.window` operations: touched and fresh records, and slots.

    All outputs are constant until the same cycle of the next touch.

    Behaviour
    ---------
    Records are entered in the order of their touches, then the fresh ones, a cycle each. A place holds the
    entry of `OramConfig.window` operations ago until it is overwritten: an operation's touches still see that
    slot. The position map tells which operation last kept the key.
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        slots, labels = config.record_slots, config.label_count
        super().__init__(
            {
                #: ``ahead``, ``record``, ``index``: the cycle before ``start``; the touch's record, and its
                #: number in its operation.
                "ahead": In(1),
                "record": In(config.record_index_bits),
                "index": In(range(config.items + config.label_count)),
                #: ``start``, ``item``: a touch, constant for four cycles.
                "start": In(1),
                "item": In(item_layout(config)),
                #: ``written``, ``written_turn``, ``appended``: the slots of an operation's item.
                "written": In(1),
                "written_turn": In(range(config.window)),
                "appended": In(appended_layout(config)),
                #: Three cycles after ``start``: the place of the touched record.
                "found": Out(found_layout(config)),
                #: For the last touch: four cycles after ``start``, and five for the second label.
                "fresh": Out(found_layout(config)).array(labels),
                #: Four cycles after ``start``: slots of the record that operations of the window filled. This
                #: and the outputs below lack the previous operation, whose slot is known later.
                "unseen": Out(slots),
                #: ``own``, ``log_turn``: four cycles after ``start``: the slot of the operation's item in
                #: this record, if an operation of the window appended it, and that operation.
                "own": Out(slots),
                "log_turn": Out(range(config.window)),
                #: ``previous``, ``previous_own``: four cycles after ``start``: for each label: the touched
                #: record is the previous operation's fresh one; so is its key. ``previous_put``: the key
                #: alone is.
                "previous": Out(labels),
                "previous_own": Out(labels),
                "previous_put": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Cycle by cycle from ``start``."""
        m = Module()
        config = self._config
        at = [self.start]
        for n in range(1, 3 + config.label_count):
            at.append(delay(m, f"at_{n}", at[-1], 1))
        rings = self._look_up(m, at)
        self._find_records(m, at, rings)
        self._hide_filled(m, at, rings[config.items :])
        own, log_turn, previous_own, previous_put = self._find_item(m, at)
        m.d.comb += [
            self.own.eq(own),
            self.log_turn.eq(log_turn),
            self.previous.eq(self._compare_previous(m, at)),
            self.previous_own.eq(previous_own),
            self.previous_put.eq(previous_put),
        ]
        return m

    def _look_up(self, m: Module, at: list[Any]) -> list[Recent]:
        """Look up and enter the touched record, then the fresh ones; return the rings."""
        config, touch = self._config, self.item.touch
        labels, items = config.label_count, config.items
        # One multiplexer without a default: many registers take its output.
        word: Value = self.record
        for label in range(labels):
            word = Mux(at[label], touch.fresh[label], word)
        enters = [self.ahead & (self.index == index) for index in range(items)]
        enters += [at[label] & touch.last for label in range(labels)]
        fresh = Cat(at[1 + label] for label in range(labels)).any() & touch.last & touch.keep
        rings = []
        for kind, enter in enumerate(enters):
            ring = Recent(width=config.record_index_bits, turns=config.window, every=kind >= items)
            m.submodules[f"ring_{kind}"] = ring
            m.d.comb += [
                ring.ask.eq(self.ahead | Cat(at[:labels]).any()),
                ring.word.eq(word),
                ring.enter.eq(enter),
                ring.present.eq((at[0] & touch.record_valid) | fresh),
            ]
            rings.append(ring)
        return rings

    def _find_records(self, m: Module, at: list[Any], rings: list[Recent]) -> None:
        """Drive ``found`` and ``fresh``."""

        def keep(found: Any, when: Any, name: str) -> None:
            held = Signal(found_layout(self._config), name=name, reset_less=True)
            with m.If(when):
                m.d.sync += [
                    held.valid.eq(Cat(ring.found for ring in rings).any()),
                    held.place.turn.eq(any_of([ring.turn for ring in rings])),
                    held.place.kind.eq(encode(Cat(ring.found for ring in rings))),
                ]
            m.d.comb += found.eq(held)

        keep(self.found, at[2], "found_held")
        for label in range(self._config.label_count):
            keep(self.fresh[label], at[3 + label], f"fresh_{label}_held")

    def _hide_filled(self, m: Module, at: list[Any], rings: list[Recent]) -> None:
        """Drive ``unseen``."""
        config = self._config
        m.submodules.filled = filled = FilledSlots(
            slots=config.record_slots, turns=config.window, labels=config.label_count
        )
        m.d.comb += [
            filled.ask.eq(at[1]),
            filled.enter.eq(at[1] & self.item.touch.last),
            filled.written.eq(self.written),
            self.unseen.eq(filled.unseen),
        ]
        for label, ring in enumerate(rings):
            m.d.comb += [
                filled.equal[label].eq(ring.equal),
                filled.place[label].eq(ring.place),
                filled.appended[label].eq(self.appended[label]),
            ]

    def _compare_previous(self, m: Module, at: list[Any]) -> Signal:
        """Return which of the previous operation's fresh records the touched one is."""
        labels, touch = self._config.label_count, self.item.touch
        before_fresh = Signal.like(touch.fresh, name="before_fresh", reset_less=True)
        before_keep = Signal()
        previous = Signal(labels)
        for label in range(labels):
            with m.If(at[0]):
                same = touch.record == before_fresh[label]
                m.d.sync += previous[label].eq(same & before_keep & touch.record_valid)
        with m.If(at[3] & touch.last):
            m.d.sync += [before_fresh.eq(touch.fresh), before_keep.eq(touch.keep)]
        return previous

    def _find_item(self, m: Module, at: list[Any]) -> tuple[Value, ...]:
        """Return ``own``, ``log_turn``, ``previous_own``, ``previous_put``: from the operation that last kept
        the item.
        """
        config, touch = self._config, self.item.touch
        turns, labels, slots = config.window, config.label_count, config.record_slots
        turn = Signal(range(turns), name="kept_turn", reset_less=True)
        known = Signal(name="kept_known", reset_less=True)
        late = Signal(name="kept_late", reset_less=True)
        with m.If(at[0] & touch.first):
            wraps = self.item.turn < touch.age
            m.d.sync += [
                turn.eq(self.item.turn - touch.age + Mux(wraps, turns, 0)),
                known.eq(touch.age != 0),
                late.eq(touch.age == 1),
            ]
        # A cycle later its fresh records, and then its slots.
        own = Signal(slots, reset_less=True)
        previous_own = Signal(labels)
        previous_put = Signal()
        here, read = [], []
        for label in range(labels):
            record = self._log(
                m, f"fresh_{label}", turn, at[3] & touch.last, self.item.turn, touch.fresh[label]
            )
            same = Signal(name=f"here_{label}", reset_less=True)
            with m.If(at[2]):
                m.d.sync += same.eq((record == touch.record) & known & touch.record_valid & self.item.search)
            here.append(same)
            read.append(
                self._log(m, f"slots_{label}", turn, self.written, self.written_turn, self.appended[label])
            )
        with m.If(at[3]):
            m.d.sync += own.eq(select(Cat(one & ~late for one in here), read))
            m.d.sync += [
                previous_own.eq(Cat(one & late for one in here)),
                previous_put.eq(known & late),
            ]
        return own, turn, previous_own, previous_put

    def _log(self, m: Module, name: str, turn: Value, enable: Value, written: Value, word: Value) -> Value:
        """Keep a word of each operation in block RAM; return the word of ``turn``, a cycle later."""
        ram = uninitialised(width=len(word), depth=self._config.window, ram_style="block")
        m.submodules[name] = ram
        write, read = ports(ram)
        m.d.comb += [
            write.en.eq(enable),
            write.addr.eq(written),
            write.data.eq(word),
            read.addr.eq(turn),
            read.en.eq(1),
        ]
        return read.data
