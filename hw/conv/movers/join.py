"""Joins the slices of ports to words, and splits words into slices."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import WORDS_BITS, ConvConfig
from hw.conv.movers.layouts import TOTAL_BITS, map_rows
from hw.lib.rows.cutter import RowPart
from hw.lib.skid import Skid


class JoinCommand(data.StructLayout):
    """A map of ``total`` words. A part of a pixel has ``words`` and, at each port, ``units`` bytes."""

    def __init__(self, config: ConvConfig) -> None:
        units = map_rows(config)["units"].shape
        super().__init__(
            {"words": WORDS_BITS, "total": TOTAL_BITS, "units": data.ArrayLayout(units, config.ports)}
        )


class Join(wiring.Component):
    """Joins the slices of all ports to words.

    Behaviour
    ---------
    A word a cycle within a map.  Both sides are registered.
    """

    #: Cycles from the last slice of a word to the word.
    LATENCY: ClassVar = 2 * Skid.LATENCY

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        part = RowPart(config.word_bits // config.ports)
        super().__init__(
            {
                "command": In(stream.Signature(JoinCommand(config))),
                #: Slices: for each part of a pixel as many as its units of the port need.
                "i": In(stream.Signature(part)).array(config.ports),
                "o": Out(stream.Signature(config.word_bits)),  #: Lanes without a port are undefined.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Pass a word when all ports that have a slice of it have one."""
        m = Module()
        config = self._config
        m.submodules.skid = skid = Skid(config.word_bits)
        connect(m, skid.o, flipped(self.o))
        turn = WordTurn(m, config, self.command)
        there, slices = [], []
        go = Signal()
        for p in range(config.ports):
            m.submodules[f"port_{p}"] = port = Skid(self.i[p].payload.shape())
            connect(m, flipped(self.i[p]), port.i)
            there.append(port.o.valid | ~turn.has[p])
            slices.append(port.o.payload.elements)
            m.d.comb += port.o.ready.eq(go & turn.has[p])
        m.d.comb += [
            skid.i.valid.eq(turn.active & Cat(there).all()),
            skid.i.payload.eq(Cat(slices)),
            go.eq(skid.i.valid & skid.i.ready),
            turn.step.eq(go),
        ]
        return m


class WordTurn:
    """The ports that have a slice of the current word: shared by `Join` and the writer's split."""

    def __init__(self, m: Module, config: ConvConfig, command: Any) -> None:
        lanes = config.lanes // config.ports
        shift = lanes.bit_length() - 1
        last_word = Signal(WORDS_BITS)
        word = Signal(WORDS_BITS)
        left = Signal(TOTAL_BITS)
        #: ``active``: a map is active. ``step``, an input: the word is done.
        self.active = Signal()
        self.step = Signal()
        #: ``has``: for each port, whether it has a slice of this word. ``ends``: for each port, whether the
        #: slice is its last of the part.
        self.has = Signal(config.ports)
        self.ends = Signal(config.ports)
        slices = [Signal(WORDS_BITS + 1, name=f"slices_{p}") for p in range(config.ports)]
        taken = Signal()
        last = Signal()
        following = Signal(WORDS_BITS)
        m.d.comb += [
            last.eq(left == 0),
            command.ready.eq(~self.active | (self.step & last)),
            taken.eq(command.valid & command.ready),
            following.eq(Mux(word == last_word, 0, word + 1)),
        ]
        with m.If(self.step):
            m.d.sync += [word.eq(following), left.eq(left - 1)]
            for p, count in enumerate(slices):
                m.d.sync += [self.has[p].eq(following < count), self.ends[p].eq(following + 1 == count)]
        with m.If(command.ready):
            m.d.sync += self.active.eq(command.valid)
        with m.If(taken):
            m.d.sync += [
                word.eq(0),
                last_word.eq(command.payload.words - 1),
                left.eq(command.payload.total - 1),
            ]
            for p, count in enumerate(slices):
                units = command.payload.units[p]
                m.d.sync += [
                    count.eq((units + lanes - 1) >> shift),
                    self.has[p].eq(units != 0),
                    self.ends[p].eq(units <= lanes),
                ]
