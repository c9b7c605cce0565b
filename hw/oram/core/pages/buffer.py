"""Pages as the stage composed them, until their write is answered."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import delay
from hw.lib.fifo import SHALLOW_DEPTH, Fifo
from hw.lib.loads import LOADS, copies
from hw.lib.memory import RamStyle, ports, uninitialised
from hw.oram.config import VERSION_BITS, OramConfig
from hw.oram.core.layouts import BEAT_BITS, NEAREST, seal_layout, touch_layout

#: Deepest memory in block RAM: two levels of 512 words.
_BLOCK_DEPTH = 1024
#: Maximum number of pages between their admission and their verdict.
_JUDGED = 16


class PageBuffer(wiring.Component):
    """Replaces an opened page by the composed one of an earlier touch.

    Behaviour
    ---------
    Page n of all touched ones takes place n modulo ``scoreboard_pages``. A page is forwarded from the place
    of its touch. That place was written at least `LATENCY` cycles before, and is intact: at most
    ``scoreboard_pages`` pages are in flight, and each is read before it is written.

    A forwarded page has its version in the place of its tag.
    """

    #: Cycles from a composed beat to the first cycle in which it may be forwarded.
    LATENCY: ClassVar = 4

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        beats = stream.Signature(BEAT_BITS, always_ready=True)
        super().__init__(
            {
                #: ``place``, ``turn``, ``beat``: as in `hw.oram.core.touch.admit.Admit`.
                "place": In(range(config.scoreboard_pages)),
                "turn": In(stream.Signature(touch_layout(config), always_ready=True)),
                "beat": In(1),
                "opened": In(beats),  #: ``page_beat_cycles`` after ``beat``.
                "page": Out(beats),  #: In the same cycle: the opened beat, or the forwarded one.
                #: ``seal``, ``composed``: as ``seal`` and ``sealed`` of `hw.oram.core.stage.stage.Stage`.
                "seal": In(stream.Signature(seal_layout(), always_ready=True)),
                "composed": In(beats),
                #: ``verdict``: as in `hw.oram.core.pages.opener.PageOpener`. ``forged``: a page that is not
                #: forwarded is not genuine.
                "verdict": In(stream.Signature(1, always_ready=True)),
                "forged": Out(1),
            }
        )

    @classmethod
    def depth(cls, config: OramConfig) -> int:
        """Return the rows of its memory: a power of two for each page."""
        return cls._stride(config) * config.scoreboard_pages

    @classmethod
    def ram_style(cls, config: OramConfig) -> RamStyle:
        """Return the kind of its memory."""
        depth = cls.depth(config)
        if depth > _BLOCK_DEPTH:
            return "ultra"
        return "distributed" if depth <= SHALLOW_DEPTH else "block"

    @staticmethod
    def _stride(config: OramConfig) -> int:
        return 1 << (config.page_beats - 1).bit_length()

    def elaborate(self, platform: Any) -> Module:
        """Beats are written as they come, and read ahead of the opened ones."""
        m = Module()
        config = self._config
        beats, pace = config.page_beats, config.page_beat_cycles
        stride, depth = self._stride(config), self.depth(config)
        m.submodules.pages = pages = uninitialised(
            width=BEAT_BITS, depth=depth, ram_style=self.ram_style(config)
        )
        write, read = ports(pages)

        m.submodules.versions = versions = Fifo(VERSION_BITS, depth=NEAREST + 1)
        index = Signal(range(beats))
        number = Signal(range(config.scoreboard_pages))
        written = Signal(BEAT_BITS, reset_less=True)
        row = Signal(range(depth), reset_less=True)
        writes = Signal()
        first, last = index == 0, index == beats - 1
        m.d.comb += [
            versions.i.valid.eq(self.seal.valid),
            versions.i.payload.eq(self.seal.payload.version),
            versions.o.ready.eq(self.composed.valid & first),
            write.en.eq(writes),
            write.addr.eq(row),
            write.data.eq(written),
        ]
        m.d.sync += [
            writes.eq(self.composed.valid),
            row.eq(index + (number << stride.bit_length() - 1)),
            written.eq(self.composed.payload),
            written[:VERSION_BITS].eq(Mux(first, versions.o.payload, self.composed.payload[:VERSION_BITS])),
        ]
        with m.If(self.composed.valid):
            m.d.sync += index.eq(Mux(last, 0, index + 1))
            with m.If(last):
                m.d.sync += number.eq(number + 1)

        # The address of a beat precedes its ``page`` by two cycles.
        m.d.comb += [read.en.eq(1), read.addr.eq(self._read_row(m, stride))]
        held = Signal(BEAT_BITS, reset_less=True)
        m.d.sync += held.eq(read.data)
        forward = copies(Signal(name="forward"), BEAT_BITS // LOADS)
        begins = delay(m, "begins", self.turn.valid & self.turn.payload.page_valid, pace - 1)
        chosen = delay(m, "chosen", self.turn.payload.forward, pace - 1)
        with m.If(begins):
            m.d.sync += [one.eq(chosen) for one in forward]
        m.submodules.judged = judged = Fifo(1, depth=_JUDGED)
        m.d.comb += [
            self.page.valid.eq(self.opened.valid),
            judged.i.valid.eq(self.turn.valid & self.turn.payload.page_valid),
            judged.i.payload.eq(self.turn.payload.forward),
            judged.o.ready.eq(self.verdict.valid),
            self.forged.eq(self.verdict.valid & ~self.verdict.payload & ~judged.o.payload),
        ]
        for n, one in enumerate(forward):
            bits = slice(LOADS * n, LOADS * (n + 1))
            m.d.comb += self.page.payload[bits].eq(Mux(one, held[bits], self.opened.payload[bits]))
        return m

    def _read_row(self, m: Module, stride: int) -> Any:
        """Return the row to read: of the beat that follows, or some cycles after it is sent."""
        config = self._config
        beats, pace = config.page_beats, config.page_beat_cycles
        bits = stride.bit_length() - 1
        index = Signal(range(beats), name="read_index")
        before = Signal(range(config.scoreboard_pages), name="read_place", reset_less=True)
        place = Signal(range(config.scoreboard_pages), name="place_now")
        last = index == beats - 1
        paged = self.turn.valid & self.turn.payload.page_valid  # others may come between the beats of a page
        m.d.comb += place.eq(Mux(paged, self.turn.payload.place, before))
        m.d.sync += before.eq(place)
        with m.If(self.beat):
            m.d.sync += index.eq(Mux(last, 0, index + 1))
        row = Signal(range(stride * config.scoreboard_pages), name="read_row")
        if pace > 1:
            m.d.comb += row.eq(index + (place << bits))
            return delay(m, "read_row", row, pace - 2, reset=False)
        with m.If(self.beat & ~last):
            m.d.comb += row.eq((index + 1)[:bits] + (place << bits))
        with m.Else():
            m.d.comb += row.eq(self.place << bits)
        return row
