"""Row settings of a query tile: the visible keys of each row, and the scale of its scores."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import POSITION_BITS, SLOPE_BITS, AttentionConfig
from hw.attention.core.settings import RowSettings
from hw.attention.walk.layouts import RowPass
from hw.lib.memory import ports, uninitialised

#: Bits of a slope in memory.
_SLOPE_WIDTH = 32


class RowWalker(wiring.Component):
    """Lists the rows of passes.

    ``data_width``: bits of a word of slopes.

    Behaviour
    ---------
    A row a cycle, across passes.  A pass with new slopes first loads them, one a cycle.
    """

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        members: dict[str, Any] = {
            "i": In(stream.Signature(RowPass(config))),
            #: Heads in order, positions in order within a head.
            "o": Out(stream.Signature(RowSettings(config))),
        }
        if config.alibi:
            #: For each pass with new slopes, words with the slopes of its heads, 32 bits each, packed from
            #: lane 0.
            members["words"] = In(stream.Signature(data_width))
        super().__init__(members)

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        config, o, current = self._config, self.o, self.i.payload
        head = Signal(range(config.rows))
        place = Signal(range(config.rows))
        following = Signal(signed(POSITION_BITS))
        position = Signal(signed(POSITION_BITS))
        opens = Signal(init=1)  # the row is a head's first
        advance = Signal()
        step = Signal()
        ends_head = place == (current.positions - 1)[: len(place)]
        ends_pass = ends_head & (head == (current.heads - 1)[: len(head)])
        m.d.comb += [
            advance.eq(~o.valid | o.ready),
            position.eq(Mux(opens, current.position, following)),
            self.i.ready.eq(step & ends_pass),
        ]
        arrived: Any = self.i.valid
        if config.alibi:
            arrived &= self._load_slopes(m, head, step)
        m.d.comb += step.eq(arrived & advance)
        with m.If(advance):
            m.d.sync += o.valid.eq(arrived)
        with m.If(step):
            m.d.sync += [
                following.eq(position + 1),
                opens.eq(ends_head),
                place.eq(Mux(ends_head, 0, place + 1)),
                head.eq(Mux(ends_pass, 0, head + ends_head)),
            ]

            after, oldest = position + 1, position - current.window + 1
            m.d.sync += [
                o.payload.end.eq(Mux(current.causal, Mux(after < 0, 0, after), current.keys)),
                o.payload.first.eq(Mux(current.windowed & (oldest > 0), oldest, 0)),
                o.payload.multiplier.eq(current.multiplier),
                o.payload.shift.eq(current.shift),
            ]
            if config.alibi:
                m.d.sync += o.payload.position.eq(position)
        return m

    def _load_slopes(self, m: Module, head: Signal, step: Signal) -> Any:
        """Store the slopes of a pass's heads and set the row's; return whether they have arrived."""
        config, current = self._config, self.i.payload
        m.submodules.slopes = slopes = uninitialised(
            width=SLOPE_BITS, depth=max(2, config.rows), ram_style="distributed"
        )
        write, read = ports(slopes, domain="comb")
        lanes = self._data_width // _SLOPE_WIDTH
        count = Signal(range(config.rows))
        lane = Signal(range(lanes))
        complete = Signal()
        wanted = self.i.valid & (current.slopes == 3) & ~complete
        push = Signal()
        last = count == (current.heads - 1)[: len(count)]
        ends_word = last | (lane == lanes - 1)
        m.d.comb += [
            push.eq(wanted & self.words.valid),
            self.words.ready.eq(wanted & ends_word),
            write.en.eq(push),
            write.addr.eq(count),
            write.data.eq(self.words.payload.word_select(lane, _SLOPE_WIDTH)),
            read.addr.eq(head),
        ]
        with m.If(push):
            m.d.sync += [count.eq(count + 1), lane.eq(Mux(ends_word, 0, lane + 1))]
            with m.If(last):
                m.d.sync += [count.eq(0), complete.eq(1)]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += complete.eq(0)
        with m.If(step):
            m.d.sync += self.o.payload.slope.eq(Mux(current.slopes[1], read.data, 0))
        return (current.slopes != 3) | complete
