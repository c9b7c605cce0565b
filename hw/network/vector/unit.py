"""The vector unit: pools, sums, products, tables, softmax and LayerNorm, from scratchpad to scratchpad."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.place import Placer
from hw.network.commands import VectorKind
from hw.network.scratchpad.reader import GranuleReadPort
from hw.network.scratchpad.writer import GranuleWritePort
from hw.network.tables.layouts import TABLE_BYTES, GroupWrite, RowWrite
from hw.network.tables.table_copy import TableCopy
from hw.network.vector.config import GRANULE_LANES, VectorConfig
from hw.network.vector.factors import Factors
from hw.network.vector.lanes import (
    ADD_RESULT_AT,
    SCALED_RESULT_AT,
    WINDOW_RESULT_AT,
    LaneSettings,
    VectorGranule,
)
from hw.network.vector.layouts import (
    EXPONENTIAL_BITS,
    ChannelPort,
    ScaleRow,
    TapRow,
    VectorFields,
)
from hw.network.vector.normalizer import Normalizer
from hw.network.vector.softmax import Softmax
from hw.network.vector.walker import VectorWalker
from hw.network.vector.wide_lanes import NORM_RESULT_AT, SUM_RESULT_AT

#: Results that are under way or wait for the scratchpad: a level of LUTRAM.
RESULTS = 32


class VectorUnit(wiring.Component):
    """Executes commands one after the other.

    Behaviour
    ---------
    A step a cycle: a word in and a word out, or a word or two of a window.  ``done`` for a cycle when all
    writes of a command are granted.  Rows of tables are written before commands that use them come.

    ``busy``, ``waits_read``, ``waits_write``: for counters: a command runs; a step waits for its words; it
    waits for room for its result.
    """

    def __init__(self, config: VectorConfig, placer: Placer) -> None:
        self.config = config
        self._placer = placer
        exponentials = TABLE_BYTES * config.exponentials
        super().__init__(
            {
                "command": In(stream.Signature(VectorFields(config))),
                "done": Out(1),
                "taps": In(RowWrite(config.taps, TapRow(config))),
                "scales": In(RowWrite(config.scales, ScaleRow())),
                "tables": In(GroupWrite(config.tables)),
                "exponentials": In(RowWrite(exponentials, EXPONENTIAL_BITS)),
                "channels": In(ChannelPort(config)),
                "read": Out(GranuleReadPort(config.shape)).array(2),
                "write": Out(GranuleWritePort(config.shape)),
                "busy": Out(1),
                "waits_read": Out(1),
                "waits_write": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Walker -> scratchpad -> lanes or softmax -> results -> scratchpad."""
        m = Module()
        config, placer = self.config, self._placer
        walker = placer.place(m, "walker", "network_vector_walker", lambda: VectorWalker(config))
        softmax = placer.place(m, "softmax", "network_vector_softmax", lambda: Softmax(config))
        m.submodules.normalizer = normalizer = Normalizer(config, placer)
        m.submodules.copy = copy = TableCopy(tables=config.tables)
        m.submodules.factors = factors = Factors(config)
        for own, inner in (
            (self.taps, walker.taps),
            (self.scales, factors.rows),
            (self.tables, copy.rows),
            (self.exponentials, softmax.exponentials),
            (self.channels, normalizer.channels),
        ):
            connect(m, flipped(own), inner)
        now, begin, finish = self._control(m, walker)
        kinds = {kind: Signal(name=f"is_{kind.name.lower()}") for kind in VectorKind}
        m.d.sync += [each.eq(now.kind == kind) for kind, each in kinds.items()]
        late_begin = delay(m, "begin", begin, 1)
        m.d.comb += [
            copy.begin.eq(late_begin & kinds[VectorKind.TABLE]),
            copy.table.eq(now.table),
            softmax.begin.eq(late_begin),
            *(
                softmax.settings[name].eq(now[name])
                for name in ("channels", "steps", "zero", "low", "high", "exponential")
            ),
            factors.row.eq(now.scale),
            factors.counted.eq(now.counted),
        ]
        room = Signal(init=1)
        take = self._take(m, now, kinds, walker, softmax, copy.busy, room)
        step = walker.step.payload
        m.d.comb += [
            factors.step.eq(take),
            factors.first.eq(step.first),
            factors.last.eq(step.last),
            factors.inside.eq(step.inside),
        ]
        found = self._lanes(m, now, kinds, take, step, copy.write, factors)
        self._normalize(m, now, kinds, late_begin, take, step, normalizer)
        self._results(m, kinds, take, step, softmax, found, normalizer.result, walker.place, room)
        steps_left = walker.active | walker.place.valid | walker.step.valid | normalizer.busy
        m.d.comb += finish.eq(~steps_left & self.write.idle & ~begin & ~late_begin)
        return m

    def _control(self, m: Module, walker: Any) -> tuple[Any, Signal, Signal]:
        """Take a command when the last one is done; return it, its begin, and the signal of its end."""
        now = Signal(VectorFields(self.config), reset_less=True)
        begin = Signal()
        finish = Signal()
        with m.If(~self.busy):
            m.d.sync += [now.eq(self.command.payload), self.busy.eq(self.command.valid)]
        with m.Elif(finish):
            m.d.sync += self.busy.eq(0)
        m.d.sync += begin.eq(self.command.valid & ~self.busy)
        m.d.sync += self.done.eq(self.busy & finish)
        m.d.comb += [
            self.command.ready.eq(~self.busy),
            walker.begin.eq(begin),
            Value.cast(walker.command).eq(Value.cast(now)),
        ]
        for port, request in zip(self.read, walker.requests, strict=True):
            connect(m, request, flipped(port.request))
        return now, begin, finish

    def _take(
        self,
        m: Module,
        now: Any,
        kinds: dict[VectorKind, Signal],
        walker: Any,
        softmax: Any,
        copies: Signal,
        room: Signal,
    ) -> Signal:
        """Take a step when its words are there, and its result has room."""
        take = Signal()
        ready = Signal()
        arrived = Signal()
        is_softmax = kinds[VectorKind.SOFTMAX]
        words = [port.response for port in self.read]
        m.d.comb += [
            arrived.eq(walker.step.valid & words[0].valid & (words[1].valid | ~now.reads_second)),
            ready.eq(arrived & room & ~copies),
            softmax.i.valid.eq(ready & is_softmax),
            softmax.i.payload.ends_pass.eq(walker.step.payload.ends_pass),
            Value.cast(softmax.i.payload.bytes).eq(Value.cast(words[0].payload.data)),
            take.eq(ready & (softmax.i.ready | ~is_softmax)),
            walker.step.ready.eq(take),
            words[0].ready.eq(take),
            words[1].ready.eq(take & now.reads_second),
        ]
        m.d.sync += [
            self.waits_read.eq(walker.step.valid & ~arrived),
            self.waits_write.eq(arrived & ~room),
        ]
        return take

    def _lanes(
        self,
        m: Module,
        now: Any,
        kinds: dict[VectorKind, Signal],
        take: Signal,
        step: Any,
        table: Any,
        factors: Any,
    ) -> Value:
        """Place the lanes; return their results."""
        settings = Signal(LaneSettings())
        multiplies = kinds[VectorKind.MULTIPLY]
        scales = kinds[VectorKind.MEAN] | multiplies
        same = (
            "zero_first", "zero_second", "zero", "low", "high", "factor_first", "factor_second", "shift",
            "exceptions", "ties_odd",
        )  # fmt: skip
        m.d.comb += [
            settings.pick.second.eq(kinds[VectorKind.TABLE] | scales),
            settings.pick.last_two.eq(kinds[VectorKind.ADD] | scales),
            settings.multiplies.eq(multiplies),
            settings.adds_up.eq(kinds[VectorKind.MEAN]),
            settings.fill_first.eq(Mux(kinds[VectorKind.MAX], -128, now.zero_first)),
            settings.fill_second.eq(Mux(scales, now.zero_second, -128)),
            *(settings[name].eq(now[name]) for name in same),
        ]
        results = []
        names = ("joins", "keeps", "keeps_first", "keeps_second")
        for n in range(self.config.granules):
            granule = self._placer.place(m, f"granule_{n}", "network_vector_granule", VectorGranule)
            m.d.comb += [
                Value.cast(granule.settings).eq(Value.cast(settings)),
                granule.flags.valid.eq(take),
                granule.flags.first.eq(step.first & take),
                granule.flags.inside.eq(Mux(take, step.inside, 0)),  # adds nothing otherwise
                *(granule.flags[name].eq(step[name]) for name in names),
                *(
                    Value.cast(operand).eq(port.response.payload.data[n])
                    for operand, port in zip((granule.first, granule.second), self.read, strict=True)
                ),
                granule.load.eq(factors.load),
                granule.multiplier.eq(factors.multiplier),
                granule.exponent.eq(factors.exponent),
                Value.cast(granule.table).eq(Value.cast(table)),
            ]
            results.append(Value.cast(granule.result))
        return Cat(*results)

    def _normalize(
        self,
        m: Module,
        now: Any,
        kinds: dict[VectorKind, Signal],
        begin: Value,
        take: Signal,
        step: Any,
        normalizer: Any,
    ) -> None:
        """Give the lanes of int16 each step."""
        words = [port.response.payload for port in self.read]
        m.d.comb += [
            normalizer.begin.eq(begin),
            Value.cast(normalizer.command).eq(Value.cast(now)),
            normalizer.kind.statistics.eq(kinds[VectorKind.STATS]),
            normalizer.kind.norm.eq(kinds[VectorKind.NORM]),
            normalizer.kind.sums.eq(kinds[VectorKind.ADD16] | kinds[VectorKind.MEAN16]),
            normalizer.kind.adds_up.eq(kinds[VectorKind.MEAN16]),
            normalizer.take.eq(take),
            normalizer.first.eq(step.first),
            normalizer.last.eq(step.last),
            normalizer.ends_pass.eq(step.ends_pass),
            *(
                normalizer.words[side][n].eq(word.data[n])
                for side, word in enumerate(words)
                for n in range(self.config.granules)
            ),
            *(normalizer.enables[side].eq(word.enable) for side, word in enumerate(words)),
        ]

    def _results(
        self,
        m: Module,
        kinds: dict[VectorKind, Signal],
        take: Signal,
        step: Any,
        softmax: Any,
        found: Value,
        wide: Value,
        place: Any,
        room: Signal,
    ) -> None:
        """Queue results when they leave the lanes, and write them at their places."""
        uses = Signal()
        written = Signal()
        is_softmax = kinds[VectorKind.SOFTMAX]
        m.d.comb += uses.eq(take & step.last & step.result)
        credits = Signal(range(RESULTS + 1), init=RESULTS)
        with m.If(uses & ~written):
            m.d.sync += [credits.eq(credits - 1), room.eq(credits != 1)]
        with m.If(written & ~uses):
            m.d.sync += [credits.eq(credits + 1), room.eq(1)]

        # A result enters the line so far from its end as its kind takes.
        stages = {
            WINDOW_RESULT_AT: kinds[VectorKind.MAX] | kinds[VectorKind.TABLE],
            ADD_RESULT_AT: kinds[VectorKind.ADD],
            SCALED_RESULT_AT: kinds[VectorKind.MEAN] | kinds[VectorKind.MULTIPLY],
            SUM_RESULT_AT: kinds[VectorKind.ADD16] | kinds[VectorKind.MEAN16],
            NORM_RESULT_AT: kinds[VectorKind.NORM],
        }
        assert len(stages) == 5
        is_wide = Signal()
        m.d.sync += is_wide.eq(stages[SUM_RESULT_AT] | stages[NORM_RESULT_AT])
        on_way: Value = Const(0, 1)
        for stage in reversed(range(1, max(stages) + 1)):
            entering = uses & stages[stage] if stage in stages else Const(0, 1)
            on_way = delay(m, f"result_in_{stage}", on_way | entering, 1)
        arrives = on_way | softmax.o_valid
        width = 8 * self.config.lanes
        m.submodules.results = results = Fifo(width, depth=RESULTS)
        m.d.comb += [
            results.i.valid.eq(arrives),
            results.i.payload.eq(Mux(is_softmax, Value.cast(softmax.o), Mux(is_wide, wide, found))),
            self.write.write.valid.eq(results.o.valid),
            self.write.write.payload.address.eq(place.payload.address),
            self.write.write.payload.enable.eq(place.payload.enable),
            *(
                self.write.write.payload.data[n].eq(results.o.payload.word_select(n, 8 * GRANULE_LANES))
                for n in range(self.config.granules)
            ),
            written.eq(self.write.write.valid & self.write.write.ready),
            results.o.ready.eq(self.write.write.ready),
            place.ready.eq(written),
        ]
