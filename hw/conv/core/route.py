"""Routing between streams: each end switches after the words of a job, in the order of jobs."""

from typing import Any, ClassVar

from amaranth.hdl import Array, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import ConvConfig
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid

#: Bits of a number of words or of pixels of a whole map.
TOTAL_BITS = 32
#: Jobs queued at an end.
_JOBS = 4


class Turn(data.StructLayout):
    """``words`` of a job, at least 1, that come from or go to stream ``other``."""

    def __init__(self) -> None:
        super().__init__({"other": 1, "words": TOTAL_BITS})


class StreamRouter(wiring.Component):
    """Connects sources with sinks, each of which serves its jobs in order.

    ``ways``: (source, sink) of every path: each end has one or two.

    Behaviour
    ---------
    A word a cycle on every path.  Both ends are registered.

    Why
    ---
    A source may start a job whose words go elsewhere while the sink still serves an earlier job from another
    source.  Each end knows only its own order, and a word passes when both select the same path.
    """

    #: Cycles from ``i`` to ``o``.
    LATENCY: ClassVar = 2 * Skid.LATENCY

    def __init__(self, config: ConvConfig, *, ways: list[tuple[int, int]], sources: int, sinks: int) -> None:
        self._config = config
        self._ways = ways
        self._sizes = (sources, sinks)
        turn, word = stream.Signature(Turn()), stream.Signature(config.word_bits)
        super().__init__(
            {
                #: For each source, the destination of its jobs' words: which of its paths, in the order of
                #: ``ways``.
                "source_turns": In(turn).array(sources),
                "sink_turns": In(turn).array(sinks),  #: For each sink, the origin of its jobs' words.
                "i": In(word).array(sources),
                "o": Out(word).array(sinks),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect every path; a word passes when both ends select it."""
        m = Module()
        ends: list[list[Any]] = []
        for kind, count, turns in (
            ("source", self._sizes[0], self.source_turns),
            ("sink", self._sizes[1], self.sink_turns),
        ):
            side = []
            for n in range(count):
                m.submodules[f"{kind}_{n}"] = end = RouteEnd()
                connect(m, flipped(turns[n]), end.i)
                side.append(end)
            ends.append(side)
        sources, sinks = ends
        inputs, outputs = [], []
        for n in range(self._sizes[0]):
            m.submodules[f"i_{n}"] = skid = Skid(self._config.word_bits)
            connect(m, flipped(self.i[n]), skid.i)
            inputs.append(skid.o)
        for n in range(self._sizes[1]):
            m.submodules[f"o_{n}"] = skid = Skid(self._config.word_bits)
            connect(m, skid.o, flipped(self.o[n]))
            outputs.append(skid.i)

        passing: list[list[Any]] = [[] for _ in outputs]
        steps: list[list[Any]] = [[] for _ in inputs]
        for source, sink in self._ways:
            out = [other for other in self._ways if other[0] == source].index((source, sink))
            into = [other for other in self._ways if other[1] == sink].index((source, sink))
            open_way = Signal(name=f"way_{source}_{sink}")
            step = Signal(name=f"step_{source}_{sink}")
            m.d.comb += [
                open_way.eq(
                    sources[source].active
                    & sinks[sink].active
                    & (sources[source].other == out)
                    & (sinks[sink].other == into)
                ),
                step.eq(open_way & inputs[source].valid & outputs[sink].ready),
            ]
            passing[sink].append((open_way & inputs[source].valid, inputs[source].payload))
            steps[source].append(step)
            with m.If(step):
                m.d.comb += [sources[source].step.eq(1), sinks[sink].step.eq(1), inputs[source].ready.eq(1)]
        for n, ways in enumerate(passing):
            valid: Any = 0
            for offered, _ in ways:
                valid = valid | offered
            m.d.comb += [
                outputs[n].valid.eq(valid),
                outputs[n].payload.eq(Array(payload for _, payload in ways)[sinks[n].other]),
            ]
        return m


class RouteEnd(wiring.Component):
    """Counts the words of a job at one end."""

    def __init__(self) -> None:
        super().__init__(
            {
                "i": In(stream.Signature(Turn())),
                "active": Out(1),  #: A job is active.
                "other": Out(1),  #: Its path.
                "step": In(1),  #: A word passes.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count words; the last word is known before it arrives."""
        m = Module()
        m.submodules.turns = turns = Fifo(Turn(), depth=_JOBS)
        connect(m, flipped(self.i), turns.i)
        left = Signal(TOTAL_BITS)
        last = Signal()
        ends = self.step & last
        m.d.comb += turns.o.ready.eq(~self.active | ends)
        with m.If(self.step):
            m.d.sync += [left.eq(left - 1), last.eq(left == 1)]
        with m.If(turns.o.ready):
            m.d.sync += [self.active.eq(turns.o.valid), self.other.eq(turns.o.payload.other)]
            m.d.sync += [left.eq(turns.o.payload.words - 1), last.eq(turns.o.payload.words == 1)]
        return m
