"""Offsets computed on chip: a 1 x 1 convolution of the map while it goes into the line buffer."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Const, Module, Mux, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import MAX_TAPS, MULTIPLIER_BITS, OFFSET_BITS, SHIFT_BITS, ConvConfig
from hw.conv.core.layouts import TapCommand, offset_entry
from hw.conv.core.packets import Parameters, Record, TapLoad
from hw.lib.arithmetic.dot_product import dot_latency, dot_products, factor, factor_bits
from hw.lib.arithmetic.requantize import REQUANTIZE_LATENCY, requantize
from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.memory import ports, uninitialised
from hw.lib.skid import Skid

#: Bits of a number's sum, signed: a DSP's multiplicand. The host checks that no map exceeds it.
SUM_BITS = 27
#: Cycles from an address to the weights.
_RAM = 2
#: Places for entries, queued for the store or in flight.
_ENTRIES = 32


class OffsetDot(wiring.Component):
    """Passes words of the map on, and computes the offsets of layers with ``job.dot``.

    Behaviour
    ---------
    A word takes ``job.passes`` cycles.  After the last word of a pixel each of them yields two numbers: dy
    and dx of a tap, or the one number of a square offset.  A word of any other layer takes a cycle.
    """

    #: Cycles from ``i`` to ``o``.
    LATENCY: ClassVar = Skid.LATENCY

    @staticmethod
    def latency(config: ConvConfig) -> int:
        """Return the cycles from a pixel's last word to its last offset."""
        return _RAM + 1 + dot_latency(config.lanes) + 1 + REQUANTIZE_LATENCY + Fifo.LATENCY

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        words = stream.Signature(config.word_bits)
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse: a layer begins.
                "job": In(TapCommand(config)),  #: Constant from ``start`` on.
                "half": In(1),  #: The layer's half of the weights.
                "open": In(1),  #: Words on ``i`` belong to that layer.
                "loaded": In(1),  #: Its weights are loaded.
                "load": In(TapLoad(config)),  #: Weights of layers to come.
                "i": In(words),
                "o": Out(words),
                "offsets": Out(stream.Signature(offset_entry(config))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count words and passes, multiply, add up, scale, join."""
        m = Module()
        config, job = self._config, self.job
        m.submodules.words = words = Skid(config.word_bits)
        m.submodules.entries = entries = Fifo(offset_entry(config), depth=_ENTRIES)
        connect(m, flipped(self.i), words.i)
        connect(m, entries.o, flipped(self.offsets))

        # A word leaves with its last pass.
        word = Signal.like(job.fill.words)
        step = Signal.like(job.passes)
        address = Signal(range(config.dot_words))
        go = Signal()
        last_pass = Signal()
        last_word = Signal()
        ready = Signal()
        in_flight = Signal(range(_ENTRIES + 1))
        offer = Signal()
        offered = Signal()
        # A word once offered stays valid, however many entries are in flight by then.
        m.d.sync += ready.eq(self.loaded & ~self.start & ((in_flight < _ENTRIES - 4) | offered))
        m.d.comb += [
            go.eq(words.o.valid & self.open & job.dot & ready & (self.o.ready | ~last_pass)),
            offer.eq(self.open & (~job.dot | (last_pass & ready))),
            offered.eq(self.o.valid & ~self.o.ready),
            self.o.valid.eq(words.o.valid & offer),
            self.o.payload.eq(words.o.payload),
            words.o.ready.eq(self.o.ready & offer),
        ]
        one_pass, one_word = job.passes == 1, job.fill.words == 1
        with m.If(go):
            m.d.sync += [
                step.eq(Mux(last_pass, 0, step + 1)),
                last_pass.eq(Mux(last_pass, one_pass, step == job.passes - 2)),
                address.eq(address + 1),
            ]
            with m.If(last_pass):
                m.d.sync += [
                    word.eq(Mux(last_word, 0, word + 1)),
                    last_word.eq(Mux(last_word, one_word, word == job.fill.words - 2)),
                ]
            with m.If(last_pass & last_word):
                m.d.sync += address.eq(0)
        with m.If(self.start):
            m.d.sync += [
                word.eq(0),
                step.eq(0),
                address.eq(0),
                last_pass.eq(one_pass),
                last_word.eq(one_word),
            ]
        pushed = entries.o.valid & entries.o.ready
        kept = Signal()  # two numbers are held for the second tap of their entry, and do not make an entry
        begins = go & last_word
        m.d.sync += in_flight.eq(in_flight + begins - pushed - kept)

        # Products.
        lanes = config.lanes
        weights = self._weights(m, address)
        x = delay(m, "x", words.o.payload, _RAM, reset=False)
        factors = []
        for lane in range(lanes):
            pair = [weights[16 * lane + 8 * n : 16 * lane + 8 * n + 8].as_signed() for n in range(2)]
            packed = Signal(signed(factor_bits(2)), name=f"factor_{lane}", reset_less=True)
            m.d.sync += packed.eq(factor(pair))
            factors.append(packed)
        x_late = delay(m, "x_late", x, 1, reset=False)
        dots = dot_products(
            m,
            factors,
            [x_late.word_select(lane, 8).as_signed() for lane in range(lanes)],
            vectors=2,
            bits=SUM_BITS,
        )

        # Sums of a pixel: one for each number, in LUTRAM.
        summed = _RAM + 1 + dot_latency(lanes)
        at = delay(m, "at", step, summed, reset=False)
        valid = delay(m, "summing", go, summed)
        first = delay(m, "first", word == 0, summed, reset=False)
        complete = delay(m, "complete", begins, summed + 1)
        numbers = self._numbers(m, dots, at, first=first, valid=valid)

        # Offsets of T taps.
        arrived = delay(m, "arrived", complete, REQUANTIZE_LATENCY)
        ends = delay(m, "ends", last_pass, summed + 1 + REQUANTIZE_LATENCY, reset=False)
        self._entries(m, entries.i, numbers, kept, arrived=arrived, ends=ends)
        return m

    def _numbers(self, m: Module, dots: list[Any], at: Any, *, first: Any, valid: Any) -> list[Any]:
        """Add the products of a pixel's words up, and scale the sums: two numbers a pass."""
        numbers = []
        for n, dot in enumerate(dots):
            ram = uninitialised(width=SUM_BITS, depth=64, ram_style="distributed")
            m.submodules[f"sums_{n}"] = ram
            write, read = ports(ram, domain="comb")
            total = Signal(signed(SUM_BITS), name=f"total_{n}")
            done = Signal(signed(SUM_BITS), name=f"done_{n}", reset_less=True)
            bias, multiplier, shift = self._parameters(m, n, at)
            m.d.comb += [
                read.addr.eq(at),
                total.eq(Mux(first, bias, read.data.as_signed()) + dot),
                write.addr.eq(at),
                write.data.eq(total),
                write.en.eq(valid),
            ]
            m.d.sync += done.eq(total)
            numbers.append(
                requantize(
                    m,
                    done,
                    delay(m, f"multiplier_{n}", multiplier, 1, reset=False),
                    delay(m, f"shift_{n}", shift, 2, reset=False),
                    signed(OFFSET_BITS),
                    names=(f"product_{n}", f"halves_{n}", f"number_{n}"),
                )
            )
        return numbers

    def _entries(
        self, m: Module, entries: Any, numbers: list[Any], kept: Signal, *, arrived: Any, ends: Any
    ) -> None:
        """Join the numbers of T taps to an entry; those of its first tap are ``kept`` for the second."""
        entry = entries.payload
        if self._config.taps == 1:
            m.d.comb += [entry[0].dy.eq(numbers[0]), entry[0].dx.eq(numbers[1]), entries.valid.eq(arrived)]
            return
        odd = Signal()
        held = Signal(data.ArrayLayout(signed(OFFSET_BITS), 2), reset_less=True)
        with m.If(arrived):
            m.d.sync += [odd.eq(~odd & ~ends), held[0].eq(numbers[0]), held[1].eq(numbers[1])]
        m.d.comb += [
            entries.valid.eq(arrived & (odd | ends)),
            entry[0].dy.eq(Mux(odd, held[0], numbers[0])),
            entry[0].dx.eq(Mux(odd, held[1], numbers[1])),
            entry[1].dy.eq(numbers[0]),
            entry[1].dx.eq(numbers[1]),
            kept.eq(arrived & ~(odd | ends)),
        ]

    def _weights(self, m: Module, address: Signal) -> Signal:
        """Return the weights of a word and two numbers, `_RAM` cycles after their address: int8 pairs."""
        config, load = self._config, self.load
        cells = config.lanes // config.cell_lanes
        ram = uninitialised(width=16 * config.lanes, depth=2 * config.dot_words, ram_style="block")
        m.submodules.weights = ram
        write, read = ports(ram, granularity=16 * config.cell_lanes)
        # A record has 8 lanes of one number, then 8 of the other; a RAM word has them in pairs.
        record = [load.record[8 * n : 8 * n + 8] for n in range(2 * config.cell_lanes)]
        pairs = Cat(Cat(record[n], record[config.cell_lanes + n]) for n in range(config.cell_lanes))
        bits = (config.dot_words - 1).bit_length()
        output = Signal(16 * config.lanes, reset_less=True)
        m.d.comb += [
            write.en.eq(Mux(load.valid & (load.kind == Record.DOT), Const(1, cells) << load.cell, 0)[:cells]),
            write.addr.eq(Cat(load.address[:bits], load.half)),
            write.data.eq(pairs.replicate(cells)),
            read.en.eq(1),
            read.addr.eq(Cat(address, self.half)),
        ]
        m.d.sync += output.eq(read.data)
        return output

    def _parameters(self, m: Module, number: int, at: Any) -> tuple[Any, Any, Any]:
        """Return bias, multiplier and shift of one of the two numbers of a pass, in the cycle of ``at``."""
        load = self.load
        layout = data.StructLayout(
            {"bias": signed(SUM_BITS), "multiplier": MULTIPLIER_BITS, "shift": SHIFT_BITS}
        )
        ram = uninitialised(width=layout.size, depth=128, ram_style="distributed")
        m.submodules[f"parameters_{number}"] = ram
        write, read = ports(ram, domain="comb")
        record = data.View(Parameters(), load.record[: Parameters().size])
        kept = Signal(layout, name=f"kept_{number}")
        found = Signal(layout, name=f"found_{number}")
        m.d.comb += [
            kept.bias.eq(record.bias),
            kept.multiplier.eq(record.multiplier),
            kept.shift.eq(record.shift),
            write.en.eq(load.valid & (load.kind == Record.DOT_PARAMETERS) & (load.lane == number)),
            write.addr.eq(Cat(load.address[:6], load.half)),
            write.data.eq(kept.as_value()),
            read.addr.eq(Cat(at[:6], self.half)),
            found.as_value().eq(read.data),
        ]
        return found.bias, found.multiplier, found.shift


assert MAX_TAPS < 64
