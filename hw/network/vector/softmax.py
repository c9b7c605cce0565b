"""Softmax of the rows of words: maximum, sum of exponentials, results, in three passes."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.arithmetic.adder_tree import adder_tree, tree_levels
from hw.lib.arithmetic.dsp import long_product, long_product_latency
from hw.lib.delay import delay
from hw.lib.memory import ports, uninitialised
from hw.network.tables.layouts import TABLE_BYTES, RowWrite
from hw.network.vector.config import VectorConfig
from hw.network.vector.layouts import CHANNEL_BITS, EXPONENTIAL_BITS, STEPS_BITS
from hw.network.vector.reciprocal import FACTOR_BITS, PLACES, QUOTIENT_CYCLES, SUM_BITS, Quotient

#: Slices of a result's product, and bits that it drops.
_SLICES = FACTOR_BITS // 17
_DROPPED = 17 * (_SLICES - 1)
#: Stages: cycles from the channels of a cycle to their exponentials, and to their results.
_TERM_AT = 4
RESULT_AT = _TERM_AT + long_product_latency(_SLICES) + 3
#: Cycles from the last channels of a pass until all of it has reached the maximum or the sum.
DRAIN_CYCLES = 10
#: Cycles of a word: its channels go an eighth a cycle.
WORD_CYCLES = 8


class SoftmaxSettings(data.StructLayout):
    """What stays for a command."""

    def __init__(self, config: VectorConfig) -> None:
        super().__init__(
            {
                "channels": CHANNEL_BITS,
                "steps": STEPS_BITS,
                "zero": signed(8),
                "low": signed(8),
                "high": signed(8),
                "exponential": range(config.exponentials),
            }
        )


class SoftmaxWord(data.StructLayout):
    """A word of a row."""

    def __init__(self, config: VectorConfig) -> None:
        super().__init__({"bytes": data.ArrayLayout(signed(8), config.lanes), "ends_pass": 1})


class Softmax(wiring.Component):
    """Softmax of rows.

    Behaviour
    ---------
    The words of a row come three times.  A word takes `WORD_CYCLES` cycles; between passes the unit drains,
    and divides.  Channels beyond the row's have the result ``zero``, within the bounds.

    Results leave without handshake, a word for each one of the last pass, in order.
    """

    def __init__(self, config: VectorConfig) -> None:
        self._config = config
        super().__init__(
            {
                "begin": In(1),  #: A row begins with the next word.
                "settings": In(SoftmaxSettings(config)),  #: Stay from ``begin`` to the last result.
                "exponentials": In(RowWrite(TABLE_BYTES * config.exponentials, EXPONENTIAL_BITS)),
                "i": In(stream.Signature(SoftmaxWord(config))),
                "o_valid": Out(1),
                "o": Out(data.ArrayLayout(signed(8), config.lanes)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Word -> channels of a cycle -> difference to the maximum -> exponential -> sum or result."""
        m = Module()
        passes = Signal(2)
        m.submodules.quotient = quotient = Quotient()
        step, ended, divides = self._run(m, passes)
        channels, exist = self._channels(m, step, ended)
        top = self._maximum(m, step & (passes == 0), ended & (passes == 2), channels)
        terms = self._terms(m, channels, exist, top)

        lanes = self._config.softmax_lanes
        partial = adder_tree(m, "terms", terms, EXPONENTIAL_BITS + lanes.bit_length()).as_unsigned()
        arrives = delay(m, "partial", step & (passes == 1), _TERM_AT + tree_levels(lanes))
        total = Signal(SUM_BITS, reset_less=True)
        with m.If(passes == 0):
            m.d.sync += total.eq(0)
        with m.Elif(arrives):
            m.d.sync += total.eq(total + partial)
        m.d.comb += [
            quotient.start.eq(divides),
            quotient.steps.eq(self.settings.steps),
            quotient.total.eq(total),
        ]
        self._results(m, platform, step & (passes == 2), terms, quotient.factor)
        return m

    def _run(self, m: Module, passes: Signal) -> tuple[Signal, Signal, Signal]:
        """Take words; return whether channels move on, the end of a pass, and of the sum."""
        part = Signal(range(WORD_CYCLES))
        busy = Signal()
        last_word = Signal()
        waits = Signal()  # until a pass has drained
        ready = Signal(init=1)
        left = Signal(range(QUOTIENT_CYCLES + DRAIN_CYCLES + 1))
        ended = Signal()
        divides = Signal()
        last_part = part == WORD_CYCLES - 1
        m.d.comb += [
            self.i.ready.eq(ready),
            ended.eq(waits & (left == 0)),
            divides.eq(waits & (passes == 1) & (left == QUOTIENT_CYCLES)),
        ]
        with m.If(busy):
            m.d.sync += part.eq(part + 1)
            with m.If(last_part):
                m.d.sync += [
                    busy.eq(0),
                    waits.eq(last_word),
                    left.eq(Mux(passes == 1, QUOTIENT_CYCLES + DRAIN_CYCLES, DRAIN_CYCLES)),
                ]
        with m.If(waits):
            m.d.sync += left.eq(left - 1)
        with m.If(ended):
            m.d.sync += [waits.eq(0), passes.eq(Mux(passes == 2, 0, passes + 1))]
        with m.If(self.i.valid & ready):
            m.d.sync += [busy.eq(1), last_word.eq(self.i.payload.ends_pass), ready.eq(0)]
        with m.Elif(ended | (busy & (part == WORD_CYCLES - 2) & ~last_word)):
            m.d.sync += ready.eq(1)
        with m.If(self.begin):
            m.d.sync += passes.eq(0)
        return busy, ended, divides

    def _channels(self, m: Module, step: Signal, ended: Signal) -> tuple[list[Signal], list[Signal]]:
        """Return the channels of a cycle, and whether the row has them, a stage later."""
        lanes = self._config.softmax_lanes
        word = Signal(8 * self._config.lanes, reset_less=True)
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += word.eq(Value.cast(self.i.payload.bytes))
        with m.Elif(step):
            m.d.sync += word.eq(word >> 8 * lanes)
        left = Signal(CHANNEL_BITS, reset_less=True)
        with m.If(self.begin | ended):
            m.d.sync += left.eq(self.settings.channels)
        with m.Elif(step):
            m.d.sync += left.eq(Mux(left > lanes, left - lanes, 0))
        channels, exist = [], []
        for n in range(lanes):
            exists = Signal(name=f"exists_{n}", reset_less=True)
            channel = Signal(signed(8), name=f"channel_{n}", reset_less=True)
            m.d.sync += [
                exists.eq(left > n),
                channel.eq(Mux(left > n, word.word_select(n, 8).as_signed(), -128)),
            ]
            channels.append(channel)
            exist.append(exists)
        return channels, exist

    def _maximum(self, m: Module, step: Value, ends_row: Value, channels: list[Signal]) -> Signal:
        """Return the greatest channel of the row so far."""
        values, stage = channels, 1
        while len(values) > 1:
            pairs = list(zip(values[::2], values[1::2], strict=True))
            values = [Signal(signed(8), name=f"most_{stage}_{n}", reset_less=True) for n in range(len(pairs))]
            m.d.sync += [most.eq(Mux(a > b, a, b)) for most, (a, b) in zip(values, pairs, strict=True)]
            stage += 1
        top = Signal(signed(8), init=-128)
        arrives = delay(m, "most", step, stage)
        with m.If(self.begin | ends_row):
            m.d.sync += top.eq(-128)
        with m.Elif(arrives & (values[0] > top)):
            m.d.sync += top.eq(values[0])
        return top

    def _terms(self, m: Module, channels: list[Signal], exist: list[Signal], top: Signal) -> list[Signal]:
        """Return the exponentials of the channels' differences to the maximum, 0 without a channel."""
        terms = []
        table = Cat(self.settings.exponential)
        for n, (channel, exists) in enumerate(zip(channels, exist, strict=True)):
            ram = uninitialised(
                width=EXPONENTIAL_BITS, depth=TABLE_BYTES * self._config.exponentials, ram_style="block"
            )
            m.submodules[f"exponentials_{n}"] = ram
            write, read = ports(ram)
            difference = Signal(8, name=f"difference_{n}", reset_less=True)
            term = Signal(EXPONENTIAL_BITS, name=f"term_{n}", reset_less=True)
            m.d.comb += [
                write.en.eq(self.exponentials.enable),
                write.addr.eq(self.exponentials.row),
                write.data.eq(self.exponentials.data),
                read.en.eq(1),
                read.addr.eq(Cat(difference, table)),
            ]
            m.d.sync += [
                difference.eq(top - channel),
                term.eq(Mux(delay(m, f"exists_{n}", exists, 2, reset=False), read.data, 0)),
            ]
            terms.append(term)
        return terms

    def _results(self, m: Module, platform: Any, step: Value, terms: list[Signal], factor: Value) -> None:
        """Scale and round the exponentials, add the zero point, clamp, and join the results to words."""
        settings = self.settings
        results = []
        for n, term in enumerate(terms):
            product = long_product(m, platform, f"product_{n}", value=term, factor=factor)
            # Half a result is added behind the point; 255 and more leave int8 with any zero point.
            rounded = (product + (1 << PLACES - _DROPPED - 1)) >> PLACES - _DROPPED
            whole = Signal(8, name=f"whole_{n}", reset_less=True)
            shifted = Signal(signed(10), name=f"shifted_{n}", reset_less=True)
            result = Signal(signed(8), name=f"result_{n}", reset_less=True)
            m.d.sync += [
                whole.eq(Mux(rounded[8:].any(), 255, rounded[:8])),
                shifted.eq(whole + settings.zero),
                result.eq(
                    Mux(
                        shifted < settings.low,
                        settings.low,
                        Mux(shifted > settings.high, settings.high, shifted[:8].as_signed()),
                    )
                ),
            ]
            results.append(result)
        word = Signal(8 * self._config.lanes, name="joined", reset_less=True)
        count = Signal(range(WORD_CYCLES))
        arrives = delay(m, "arrives", step, RESULT_AT)
        with m.If(arrives):
            m.d.sync += [word.eq(Cat(word[8 * len(results) :], *results)), count.eq(count + 1)]
        m.d.sync += self.o_valid.eq(arrives & (count == WORD_CYCLES - 1))
        m.d.comb += Value.cast(self.o).eq(word)
