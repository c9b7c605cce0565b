"""The drain: results of the matrix array, with a residual added and a table applied, to the scratchpad.

::

    results -> FIFO -+-> lanes: bounds -> sum -> table -> FIFO -> scratchpad
    residual --------+
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.loads import copies
from hw.lib.place import Placer
from hw.network.matrix.config import RESULT_BITS
from hw.network.matrix.drain_command import DrainCommand
from hw.network.matrix.drain_lanes import DrainLanes
from hw.network.matrix.feed_command import MOST_STEPS
from hw.network.matrix.result_walk import ResultWalk
from hw.network.scratchpad.reader import GranuleReadPort
from hw.network.scratchpad.shape import GranuleShape
from hw.network.scratchpad.slice import QUEUE
from hw.network.scratchpad.writer import GranuleWrite, GranuleWritePort
from hw.network.tables.layouts import TableWrite

#: Results in the array and in the FIFO behind it: all of a block, so that no sweep waits for the drain.
RESULTS = MOST_STEPS
#: Words behind the lanes' inputs.
_WORDS = 32
#: Words that the writer has taken and not counted, at most: its register and its count.
_UNCOUNTED = 1 + QUEUE
#: Lanes of a `DrainLanes`.
_LANES = 8


class DrainWord(data.StructLayout):
    """A word for the scratchpad, and whether it is its command's last."""

    def __init__(self, shape: GranuleShape) -> None:
        super().__init__({"write": GranuleWrite(shape), "last": 1})


class Drain(wiring.Component):
    """Takes the results of one command after the other.

    ``columns``: results of a word, whole granules; at most a word of the scratchpad. ``results``: those that
    are announced and have not left.

    Behaviour
    ---------
    A word a cycle: a result, or half of one if its elements are int16.  ``taken`` announces a result before
    it arrives, and only with ``room``.  ``done`` pulses when all words of a command are in the scratchpad.
    The next command is taken when the last word of the current one has left the lanes.
    """

    def __init__(self, shape: GranuleShape, placer: Placer, *, columns: int, results: int = RESULTS) -> None:
        self._shape = shape
        self._placer = placer
        self._columns = columns
        self._results = results
        self._granules = columns * 8 // shape.granule_bits
        self._result = data.ArrayLayout(signed(RESULT_BITS), columns)
        super().__init__(
            {
                "command": In(stream.Signature(DrainCommand(shape))),
                "table": In(TableWrite()),  #: Only while ``command.ready``.
                "taken": In(1),  #: A result will come.
                "room": Out(1),  #: One more may be announced in this cycle.
                "valid": In(1),  #: ``i`` is a result.
                "i": In(self._result),
                "read": Out(GranuleReadPort(shape)),  #: Of the residual.
                "write": Out(GranuleWritePort(shape)),
                "done": Out(1),  #: One-cycle pulse.
                "waits": Out(1),  #: A result waits for its residual.
                "blocked": Out(1),  #: A word waits for the scratchpad.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Results and residual -> lanes -> words."""
        m = Module()
        now = Signal(DrainCommand(self._shape))
        busy = Signal()
        begin = Signal()
        accept = self.command.valid & self.command.ready
        m.d.comb += self.command.ready.eq(~busy)
        m.d.sync += begin.eq(accept)
        with m.If(accept):
            m.d.sync += [busy.eq(1), now.eq(self.command.payload)]

        m.submodules.results = results = Fifo(self._result, depth=self._results, ram_style="block")
        places = self._walks(m, now, begin)
        residual = self.read.response
        room = Signal(range(_WORDS + 1), init=_WORDS)  # words that still fit behind the lanes
        go = Signal()
        second = Signal()  # the next word is its result's second one
        ends = Signal()  # it is its result's last one
        m.d.comb += [
            results.i.valid.eq(self.valid),
            results.i.payload.eq(self.i),
            go.eq(results.o.valid & places.valid & (residual.valid | ~now.settings.sums) & (room != 0)),
            ends.eq(second | ~now.settings.wide),
            results.o.ready.eq(go & ends),
            places.ready.eq(go & ends),
            residual.ready.eq(go & now.settings.sums),
            self.waits.eq(results.o.valid & places.valid & now.settings.sums & ~residual.valid),
        ]
        # The settings stay until the last word has left the lanes.
        with m.If(delay(m, "last_go", go & ends & places.payload.last, DrainLanes.LATENCY - 1)):
            m.d.sync += busy.eq(0)
        announced = Signal(range(self._results + 1))
        following = announced + self.taken - (go & ends)
        m.d.sync += [announced.eq(following), self.room.eq(following != self._results)]

        granules: list[Value] = [residual.payload.data[n] for n in range(self._granules)]
        middle = self._granules // 2  # where a second pixel begins
        if middle > 1:
            granules[middle] = Mux(now.paired, granules[1], granules[middle])
        chosen = self._choose(m, now, results.o.payload, go, second)
        word = self._lanes(m, now, chosen, Cat(*granules))
        sent = self._send(m, now, go, second, places.payload, word)
        m.d.sync += room.eq(room - go + sent)
        return m

    def _choose(self, m: Module, now: Any, result: Any, go: Signal, second: Signal) -> list[Value]:
        """Alternate between the words of a result; return the elements of the lanes.

        The elements of an int16's word lie in every second lane.
        """
        lanes = range(0, self._columns, _LANES)
        wides, seconds = (
            copies(Signal(name=name, reset_less=True), len(lanes)) for name in ("wide", "second_of")
        )
        following = Mux(go, ~second & now.settings.wide, second)
        m.d.sync += [
            second.eq(following),
            *(each.eq(following) for each in seconds),
            *(each.eq(now.settings.wide) for each in wides),
        ]
        found: list[Value] = []
        for lane in range(self._columns):
            wide, other = wides[lane // _LANES], seconds[lane // _LANES]
            first, later = result[lane // 2], result[(self._columns + lane) // 2]
            narrow = result[lane]
            found.append(narrow if lane % 2 else Mux(wide, Mux(other, later, first), narrow))
        return found

    def _walks(self, m: Module, now: Any, begin: Signal) -> Any:
        """Walk through the residual where there is one; return the places of the results."""
        m.submodules.walk = walk = ResultWalk(self._shape, tile_granules=self._granules)
        m.submodules.residual_walk = other = ResultWalk(self._shape, tile_granules=self._granules)
        second = Signal()
        m.d.comb += [
            walk.start.eq(begin),
            walk.order.eq(now.order),
            walk.wide.eq(now.settings.wide),
            walk.base.eq(now.base),
            walk.pitch.eq(now.pitch),
            other.start.eq(begin & now.settings.sums),
            other.order.eq(now.order),
            other.wide.eq(now.settings.wide),
            other.base.eq(now.residual_base),
            other.pitch.eq(now.residual_pitch),
            self.read.request.valid.eq(other.o.valid),
            self.read.request.payload.address.eq(
                other.o.payload.address + Mux(second, now.residual_second, 0)
            ),
            self.read.request.payload.enable.eq(2**self._granules - 1),
            other.o.ready.eq(self.read.request.ready & (second | ~now.settings.wide)),
        ]
        with m.If(other.o.valid & self.read.request.ready):
            m.d.sync += second.eq(~second & now.settings.wide)
        return walk.o

    def _lanes(self, m: Module, now: Any, elements: list[Value], residual: Value) -> Value:
        """Place the lanes; return their word."""
        found = []
        for number in range(self._columns // _LANES):
            lanes = self._placer.place(
                m, f"lanes_{number}", "network_drain_lanes", lambda: DrainLanes(lanes=_LANES)
            )
            own = elements[number * _LANES :][:_LANES]
            m.d.comb += [
                lanes.settings.eq(now.settings),
                lanes.table.eq(self.table),
                Value.cast(lanes.i).eq(Cat(*own)),
                Value.cast(lanes.residual).eq(residual.word_select(number, 8 * _LANES)),
            ]
            found.append(Value.cast(lanes.o))
        return Cat(*found)

    def _send(self, m: Module, now: Any, go: Signal, second: Signal, place: Any, word: Value) -> Value:
        """Send the lanes' words to their places; return whether one is sent."""
        shape = self._shape
        m.submodules.words = words = Fifo(DrainWord(shape), depth=_WORDS)
        arrives = delay(m, "go", go, DrainLanes.LATENCY)
        enables = Mux(place.last, now.last_enable[second], now.enable[second])
        ends = second | ~now.settings.wide
        where: dict[str, Value] = {
            "address": place.address + Mux(second, now.second, 0),
            "enable": Mux(place.last_tile, enables, 2**self._granules - 1),
            "last": place.last & ends,
        }
        late = {name: delay(m, name, value, DrainLanes.LATENCY, reset=False) for name, value in where.items()}
        write = words.i.payload.write
        bits = shape.granule_bits
        granules = [word.word_select(n, bits) for n in range(self._granules)]
        middle = self._granules // 2
        if middle > 1:
            granules[1] = Mux(now.paired, granules[middle], granules[1])
        sent = words.o.valid & self.write.write.ready
        m.d.comb += [
            words.i.valid.eq(arrives),
            write.address.eq(late["address"]),
            write.enable.eq(late["enable"]),
            Value.cast(write.data).eq(Cat(*granules)),
            words.i.payload.last.eq(late["last"]),
            self.write.write.valid.eq(words.o.valid),
            self.write.write.payload.eq(words.o.payload.write),
            words.o.ready.eq(self.write.write.ready),
            self.blocked.eq(words.o.valid & ~self.write.write.ready),
        ]
        self._end(m, sent, words.o.payload.last)
        return sent

    def _end(self, m: Module, sent: Value, last: Value) -> None:
        """End a command when the writer is idle, or has counted its last word."""
        m.submodules.uncounted = uncounted = Fifo(1, depth=_UNCOUNTED)
        some = range(_UNCOUNTED + 1)
        ending = Signal(some)  # commands whose last word was sent
        ended = Signal(some)  # that have ended before their last word was counted
        counted = Signal()
        idles = Signal()
        m.d.comb += [
            uncounted.i.valid.eq(sent),
            uncounted.i.payload.eq(last),
            uncounted.o.ready.eq(self.write.written),
            counted.eq(self.write.written & uncounted.o.payload),
            idles.eq((ending != 0) & self.write.idle & ~(counted & (ended == 0))),
            self.done.eq(idles | (counted & (ended == 0))),
        ]
        # The writer is idle at the earliest a cycle after it took the word.
        m.d.sync += [
            ending.eq(ending + (sent & last) - self.done),
            ended.eq(ended + idles - (counted & (ended != 0))),
        ]
