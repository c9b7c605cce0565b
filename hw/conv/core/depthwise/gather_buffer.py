"""Neighbours from memory, for samples outside the line buffer."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import WORDS_BITS, ConvConfig
from hw.conv.core.depthwise.gather_scan import WAITING_STEPS, GatherScan, MissedStep, place_bits
from hw.conv.core.layouts import GatherRequest
from hw.lib.fifo import Fifo
from hw.lib.memory import BankedMemory

#: Requests whose words may be outstanding, and requests that may be queued.
_OUTSTANDING, _REQUESTS = 64, 4
#: Steps that still arrive after ``full``: those in flight through the scan, and those before it is seen.
_LATE = GatherScan.LATENCY + 6


class _Note(data.StructLayout):
    """The words expected of a request: words 0 ... ``last`` of a pixel, or of ``two``, to ``place`` and the
    following places, for column ``right`` of ``row`` of tap ``tap``.  Or no words, and a pixel ``ends``.
    """

    def __init__(self, config: ConvConfig) -> None:
        super().__init__(
            {
                "tap": range(max(2, config.taps)),
                "row": 1,
                "right": 1,
                "two": 1,
                "place": range(config.gather_words),
                "last": WORDS_BITS,
                "ends": 1,
            }
        )


class GatherBuffer(wiring.Component):
    """Requests the neighbours of missed steps, and holds them until they have been read.

    Behaviour
    ---------
    Words are requested when their places are free, so that they are always taken.  A request a cycle, a word
    a cycle; a step takes a cycle more than it has requests.  A pixel without a miss takes a cycle.
    """

    LATENCY = 2
    #: Cycles from a pixel's last step to ``complete`` without any fetch.
    COMPLETE_LATENCY = 4

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                #: ``missed``, ``step``: see `GatherScan`.
                "missed": In(1),
                "step": In(MissedStep(config)),
                "full": Out(1),  #: The scan must take no more entries.
                "requests": Out(stream.Signature(GatherRequest())),
                "i": In(stream.Signature(config.word_bits)),  #: Words of these requests, in order.
                "complete": Out(1),  #: One-cycle pulse: all neighbours of another pixel have arrived.
                "released": In(place_bits(config)),  #: Places before this one are no longer read.
                "place": In(range(config.gather_words)),  #: Place to read.
                #: The four neighbours, upper left first, upper right second, `LATENCY` cycles later.
                "o": Out(config.word_bits).array(config.taps, 4),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Turn steps into requests and notes; write words by the notes into the banks."""
        m = Module()
        m.submodules.notes = notes = Fifo(_Note(self._config), depth=_OUTSTANDING)
        self._ask(m, notes.i)
        self._receive(m, notes.o)
        return m

    def _ask(self, m: Module, notes: Any) -> None:
        """Split one step after the other into requests: a row of a tap at a time, the pixel's end last."""
        config = self._config
        m.submodules.steps = steps = Fifo(MissedStep(config), depth=WAITING_STEPS)
        m.submodules.requests = requests = Fifo(GatherRequest(), depth=_REQUESTS)
        connect(m, requests.o, flipped(self.requests))
        m.d.sync += self.full.eq(steps.level > WAITING_STEPS - _LATE)
        m.d.comb += [steps.i.valid.eq(self.missed), steps.i.payload.eq(self.step)]

        held = Signal(MissedStep(config))
        rows = 2 * config.taps
        left = Signal(rows + 1)  # requests left: rows of taps, and the end
        first = Signal.like(left)
        room = Signal()
        ask = Signal()
        take = Signal()
        # Distance of the step's last place from the oldest one in use, less one; its top bits are 0 if it is
        # free.
        ahead = Signal(place_bits(config))
        m.d.comb += [
            ahead.eq(held.place + held.words + ~self.released),
            first.eq(left & -left),
            ask.eq((left != 0) & (room | first[rows]) & notes.ready & requests.i.ready),
            take.eq((left == 0) | (ask & (left == first))),
            steps.o.ready.eq(take),
        ]
        m.d.sync += room.eq((ahead < config.gather_words) & ~take)
        with m.If(take):
            head = steps.o.payload
            needed = Cat(*(tap.rows for tap in head.taps), head.ends)
            m.d.sync += [held.eq(head), left.eq(Mux(steps.o.valid, needed, 0))]
        with m.Elif(ask):
            m.d.sync += left.eq(left & ~first)

        request, note = requests.i.payload, notes.payload
        m.d.comb += [
            notes.valid.eq(ask),
            note.place.eq(held.place),
            note.last.eq(held.words - 1),
            note.ends.eq(first[rows]),
            request.ends.eq(first[rows]),
            requests.i.valid.eq(ask & (~first[rows] | held.last)),
        ]
        for n in range(rows):
            tap = held.taps[n >> 1]
            with m.If(first[n]):
                m.d.comb += [
                    note.tap.eq(n >> 1),
                    note.row.eq(n & 1),
                    note.right.eq(~tap.columns[0]),
                    note.two.eq(tap.columns.all()),
                    request.row.eq(tap.row + (n & 1)),
                    request.column.eq(tap.column + ~tap.columns[0]),
                    request.two.eq(tap.columns.all()),
                ]

    def _receive(self, m: Module, notes: Any) -> None:
        """Write words by the oldest note; then that pixel is complete, or the next note applies."""
        config = self._config
        note = notes.payload
        word = Signal(WORDS_BITS)
        second = Signal()
        taken = Signal()
        last = Signal()
        m.d.comb += [
            self.i.ready.eq(notes.valid & ~note.ends),
            taken.eq(self.i.valid & self.i.ready),
            last.eq(word == note.last),
            notes.ready.eq(note.ends | (taken & last & (second | ~note.two))),
        ]
        m.d.sync += self.complete.eq(notes.valid & note.ends)
        with m.If(taken):
            m.d.sync += word.eq(Mux(last, 0, word + 1))
            with m.If(last):
                m.d.sync += second.eq(note.two & ~second)

        m.submodules.banks = banks = BankedMemory(
            banks=4 * config.taps,
            depth=config.gather_words,
            lanes=1,
            lane_width=config.word_bits,
            ram_style="block",
            read_latency=self.LATENCY,
        )
        place = Signal(range(config.gather_words), reset_less=True)
        data_in = Signal(config.word_bits, reset_less=True)
        m.d.sync += [place.eq(note.place + word), data_in.eq(self.i.payload)]
        for n in range(4 * config.taps):
            enable = Signal(name=f"enable_{n}")
            m.d.sync += enable.eq(taken & (Cat(note.right | second, note.row, note.tap) == n))
            m.d.comb += [
                banks.write[n].en.eq(enable),
                banks.write[n].addr.eq(place),
                banks.write[n].data.eq(data_in),
                banks.read[n].en.eq(1),
                banks.read[n].addr.eq(self.place),
                self.o[n // 4][n % 4].eq(banks.read[n].data),
            ]
