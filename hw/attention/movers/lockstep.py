"""Lockstep of the readers of a job that decodes: one ``take`` for a part of each reader."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.attention.core.command import PART_LATENCY, PartSource
from hw.attention.movers.part_reader import PartReader
from hw.attention.walk.job_setup import KEPT_PARTS
from hw.lib.delay import delay


class Lockstep(wiring.Component):
    """Joins the readers of all ports of keys, or of values, into one source.

    ``config``: shape of the engine, which has ``decode``. ``part_latency``: cycles from ``o.take`` to
    ``o.parts``, at least `PART_LATENCY`.

    Behaviour
    ---------
    A part of every reader a cycle.  ``valid`` rises `latency` cycles after the last reader's ``arrived``.
    Kept parts are valid again 2 cycles after the last take of their pass.

    Why
    ---
    Readers lie far apart, and a direct `take` would depend on all of them.  So arrivals are counted, in
    pairs: a tree of counters forwards the minimum of its two halves, with a register a level.  The root
    counts rounds for which all readers have a part.  A counted part stays until it is taken, so the take may
    reach the readers late, within `PartReader.LATENCY`.
    """

    #: Cycles from a reader's ``arrived`` into the tree, and from a root's token to ``valid``.
    _ENDS: ClassVar = 2

    def __init__(self, config: AttentionConfig, *, part_latency: int = PART_LATENCY) -> None:
        self._config = config
        self._wait = part_latency - PART_LATENCY
        ports = config.decode_streams
        super().__init__(
            {
                "enable": In(1),  #: Arrivals are counted; low while the caches take the parts.
                #: Of each `PartReader`: that of port p of stream s is number ``s + S p``.
                "arrived": In(ports),
                #: ``take``, ``last``, ``keep``: to each of them.
                **{name: Out(ports) for name in ("take", "last", "keep")},
                "part": In(data.ArrayLayout(config.part_bits, ports)),
                "o": Out(PartSource(config)),
            }
        )

    @staticmethod
    def latency(config: AttentionConfig) -> int:
        """Return the cycles from ``arrived`` to ``valid``."""
        return Lockstep._ENDS + config.decode_stream_bits

    def elaborate(self, platform: Any) -> Module:
        """Arrivals -> a tree of counters -> rounds; and a register for the take of each reader."""
        m = Module()
        level = []
        for n, arrived in enumerate(self.arrived):
            counted = Signal(name=f"counted_{n}")
            m.d.sync += counted.eq(arrived & self.enable)
            level.append(counted)
        while len(level) > 1:
            # Neighbours are ports of the same number in neighbouring streams.
            level = [_both(m, f"{len(level)}_{n}", *level[n : n + 2]) for n in range(0, len(level), 2)]

        rounds = Signal(range(PartReader.PARTS + 1))
        token, take = level[0], self.o.take
        taken = Signal(range(KEPT_PARTS))  # of the pass
        again = Signal()
        more = Signal(range(KEPT_PARTS + 1), reset_less=True)
        m.d.sync += [again.eq(take & self.o.last & self.o.keep), more.eq(taken + 1)]
        with m.If(take):
            m.d.sync += taken.eq(Mux(self.o.last, 0, taken + 1))
        complete = (rounds + Mux(again, more, 0))[: len(rounds)]
        with m.If(token & ~take):
            m.d.sync += [rounds.eq(complete + 1), self.o.valid.eq(1)]
        with m.Elif(take & ~token):
            m.d.sync += [rounds.eq(complete - 1), self.o.valid.eq(again | (rounds != 1))]
        with m.Elif(again):
            m.d.sync += [rounds.eq(complete), self.o.valid.eq(1)]
        for name in ("take", "last", "keep"):
            later = delay(m, f"later_{name}", getattr(self.o, name), self._wait)
            for n in range(len(self.take)):
                # A register for each reader, to be placed beside it: tools must not merge them.
                own = Signal(name=f"{name}_{n}", attrs={"keep": 1})
                m.d.sync += own.eq(later)
                m.d.comb += getattr(self, name)[n].eq(own)
        m.d.comb += Cat(self.o.parts).eq(Cat(self.part))
        return m


def _both(m: Module, name: str, first: Signal, second: Signal) -> Signal:
    """Return a pulse for each pair of pulses of both sides, a cycle after the later one."""
    ahead = Signal(signed(PartReader.PARTS.bit_length() + 1), name=f"ahead_{name}")  # of the first side
    both = Signal(name=f"both_{name}")
    with m.If(first & ~second):
        m.d.sync += ahead.eq(ahead + 1)
    with m.If(second & ~first):
        m.d.sync += ahead.eq(ahead - 1)
    m.d.sync += both.eq((first & second) | (first & (ahead < 0)) | (second & (ahead > 0)))
    return both
