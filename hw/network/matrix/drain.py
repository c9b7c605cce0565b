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
from hw.lib.place import Placer
from hw.network.matrix.drain_command import DrainCommand
from hw.network.matrix.drain_lanes import DrainLanes
from hw.network.matrix.result_walk import ResultWalk
from hw.network.scratchpad.reader import GranuleReadPort
from hw.network.scratchpad.shape import GranuleShape
from hw.network.scratchpad.writer import GranuleWrite, GranuleWritePort
from hw.network.tables.layouts import TableWrite

#: Results that the FIFO holds: those in the array, and some that wait for a residual.
RESULTS = 64
#: Words behind the lanes' inputs.
_WORDS = 32
#: Lanes of a `DrainLanes`.
_LANES = 8


class DrainWord(data.StructLayout):
    """A word for the scratchpad, and whether it is its command's last."""

    def __init__(self, shape: GranuleShape) -> None:
        super().__init__({"write": GranuleWrite(shape), "last": 1})


class Drain(wiring.Component):
    """Takes the results of one command after the other.

    ``columns``: results of a word, whole granules; at most a word of the scratchpad.

    Behaviour
    ---------
    A word a cycle.  ``taken`` announces a result before it arrives, and only with ``room``.  ``done`` pulses
    when all words of a command are in the scratchpad.
    """

    def __init__(self, shape: GranuleShape, placer: Placer, *, columns: int) -> None:
        self._shape = shape
        self._placer = placer
        self._columns = columns
        self._granules = columns * 8 // shape.granule_bits
        self._word = data.ArrayLayout(signed(8), columns)
        super().__init__(
            {
                "command": In(stream.Signature(DrainCommand(shape))),
                "table": In(TableWrite()),  #: Not while a command is in the drain.
                "taken": In(1),  #: A result will come.
                "room": Out(1),  #: One more may be announced in this cycle.
                "valid": In(1),  #: ``i`` is a result.
                "i": In(self._word),
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
        with m.If(self.done):
            m.d.sync += busy.eq(0)

        m.submodules.results = results = Fifo(self._word, depth=RESULTS)
        places = self._walks(m, now, begin)
        residual = self.read.response
        room = Signal(range(_WORDS + 1), init=_WORDS)  # words that still fit behind the lanes
        go = Signal()
        m.d.comb += [
            results.i.valid.eq(self.valid),
            results.i.payload.eq(self.i),
            go.eq(results.o.valid & places.valid & (residual.valid | ~now.settings.sums) & (room != 0)),
            results.o.ready.eq(go),
            places.ready.eq(go),
            residual.ready.eq(go & now.settings.sums),
            self.waits.eq(results.o.valid & now.settings.sums & ~residual.valid),
        ]
        announced = Signal(range(RESULTS + 1))
        following = announced + self.taken - go
        m.d.sync += [announced.eq(following), self.room.eq(following != RESULTS)]

        granules: list[Value] = [residual.payload.data[n] for n in range(self._granules)]
        second = self._granules // 2  # where a second pixel begins
        if second > 1:
            granules[second] = Mux(now.paired, granules[1], granules[second])
        word = self._lanes(m, now, Value.cast(results.o.payload), Cat(*granules))
        sent = self._send(m, now, go, places.payload, word)
        m.d.sync += room.eq(room - go + sent)
        return m

    def _walks(self, m: Module, now: Any, begin: Signal) -> Any:
        """Walk through the residual where there is one; return the places of the results."""
        m.submodules.walk = walk = ResultWalk(self._shape, tile_granules=self._granules)
        m.submodules.residual_walk = other = ResultWalk(self._shape, tile_granules=self._granules)
        m.d.comb += [
            walk.start.eq(begin),
            walk.order.eq(now.order),
            walk.base.eq(now.base),
            walk.pitch.eq(now.pitch),
            other.start.eq(begin & now.settings.sums),
            other.order.eq(now.order),
            other.base.eq(now.residual_base),
            other.pitch.eq(now.residual_pitch),
            self.read.request.valid.eq(other.o.valid),
            self.read.request.payload.address.eq(other.o.payload.address),
            self.read.request.payload.enable.eq(2**self._granules - 1),
            other.o.ready.eq(self.read.request.ready),
        ]
        return walk.o

    def _lanes(self, m: Module, now: Any, results: Value, residual: Value) -> Value:
        """Place the lanes; return their word."""
        found = []
        bits = 8 * _LANES
        for number in range(self._columns // _LANES):
            lanes = self._placer.place(
                m, f"lanes_{number}", "network_drain_lanes", lambda: DrainLanes(lanes=_LANES)
            )
            m.d.comb += [
                lanes.settings.eq(now.settings),
                lanes.table.eq(self.table),
                Value.cast(lanes.i).eq(results.word_select(number, bits)),
                Value.cast(lanes.residual).eq(residual.word_select(number, bits)),
            ]
            found.append(Value.cast(lanes.o))
        return Cat(*found)

    def _send(self, m: Module, now: Any, go: Signal, place: Any, word: Value) -> Value:
        """Send the lanes' words to their places, and end a command; return whether one is sent."""
        shape = self._shape
        m.submodules.words = words = Fifo(DrainWord(shape), depth=_WORDS)
        arrives = delay(m, "go", go, DrainLanes.LATENCY)
        where = delay(m, "place", place, DrainLanes.LATENCY, reset=False)
        write = words.i.payload.write
        enable = Mux(where.last, now.last_enable, Mux(where.last_tile, now.enable, 2**self._granules - 1))
        bits = shape.granule_bits
        granules = [word.word_select(n, bits) for n in range(self._granules)]
        second = self._granules // 2
        if second > 1:
            granules[1] = Mux(now.paired, granules[second], granules[1])
        sent = words.o.valid & self.write.write.ready
        ends = Signal()
        m.d.comb += [
            words.i.valid.eq(arrives),
            write.address.eq(where.address),
            write.enable.eq(enable),
            Value.cast(write.data).eq(Cat(*granules)),
            words.i.payload.last.eq(where.last),
            self.write.write.valid.eq(words.o.valid),
            self.write.write.payload.eq(words.o.payload.write),
            words.o.ready.eq(self.write.write.ready),
            self.blocked.eq(words.o.valid & ~self.write.write.ready),
            self.done.eq(ends & self.write.idle),
        ]
        # The writer is idle at the earliest a cycle after it took the word.
        m.d.sync += ends.eq((ends & ~self.done) | (sent & words.o.payload.last))
        return sent
