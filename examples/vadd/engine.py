"""The engine `vadd`: c = a + b over 32-bit words in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.board import Board
from hw.board.resources import Resources
from hw.engine import Engine
from hw.errors import InputError
from hw.lib import axi
from hw.lib.arguments import STATUS, ArgumentTable, counters, pointer, scalar
from hw.lib.counters import count_cycles, counter_names
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from hw.lib.kernel import BodySignature
from hw.lib.place import Placer
from hw.prediction import Prediction

BYTES = ("gmem0_read_bytes", "gmem1_read_bytes", "gmem2_write_bytes")


@dataclass(frozen=True, kw_only=True)
class VaddConfig:
    """Size of the queues between memory and adders."""

    fifo_beats: int = 128  #: Beats each DMA may hold, at least 16.

    def __post_init__(self) -> None:
        if not isinstance(self.fifo_beats, int) or self.fifo_beats < 16:
            raise InputError("fifo_beats", self.fifo_beats, "a whole number of at least 16")


@dataclass(frozen=True, kw_only=True)
class VaddWorkload:
    """One call: vectors of ``words`` 32-bit words each, at least 1."""

    words: int

    def __post_init__(self) -> None:
        if self.words < 1:
            raise InputError("words", self.words, "at least 1")


def vadd_table() -> ArgumentTable:
    """Return the arguments: every vector has a port of its own."""
    return ArgumentTable(
        (
            pointer("a", "gmem0", "First summand, int32"),
            pointer("b", "gmem1", "Second summand, int32"),
            pointer("c", "gmem2", "Sum, int32; wraps [mod 2^32]"),
            scalar("words", "Length of a, b and c in 32-bit words"),
            *counters(dict.fromkeys(counter_names(["memory"]), "Clock cycles")),
            *counters(dict.fromkeys(BYTES, "Useful bytes since the start")),
            STATUS,
        )
    )


class Adder(wiring.Component):
    """One lane: the cell that is placed many times."""

    def __init__(self) -> None:
        super().__init__({"i_a": In(signed(32)), "i_b": In(signed(32)), "o": Out(signed(32))})

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        m.d.comb += self.o.eq(self.i_a + self.i_b)
        return m


class VaddBody(wiring.Component):
    """Two read DMAs, a row of adders, a write DMA."""

    def __init__(self, config: VaddConfig, board: Board, placer: Placer) -> None:
        self._placer = placer
        self._width, self._beats = board.memory.port_data_width, config.fifo_beats
        super().__init__(BodySignature(vadd_table(), data_width=self._width))

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        m.submodules.read_a = a = ReadDMA(data_width=self._width, fifo_beats=self._beats)
        m.submodules.read_b = b = ReadDMA(data_width=self._width, fifo_beats=self._beats)
        m.submodules.write_c = c = WriteDMA(data_width=self._width, fifo_beats=self._beats)
        axi.connect(m, read=a.axi, port=self.gmem0)
        axi.connect(m, read=b.axi, port=self.gmem1)
        axi.connect(m, write=c.axi, port=self.gmem2)

        # One command for each DMA; a call of no words has none and is done at once.
        running = Signal()
        nothing = Signal()
        m.d.sync += nothing.eq(self.start & (self.args.words == 0))
        with m.If(self.start | self.done):
            m.d.sync += running.eq(self.start)
        dmas: dict[str, Any] = {"a": a, "b": b, "c": c}
        for (name, dma), counter in zip(dmas.items(), BYTES, strict=True):
            fresh = Signal()
            before = Signal.like(dma.bytes_useful)
            m.d.comb += [
                dma.command.valid.eq(fresh),
                dma.command.payload.address.eq(self.args[name]),
                dma.command.payload.length.eq(self.args.words << 2),
                self.counters[counter].eq((dma.bytes_useful - before)[: len(before)]),
            ]
            with m.If(self.start):
                m.d.sync += [fresh.eq(self.args.words != 0), before.eq(dma.bytes_useful)]
            with m.Elif(dma.command.ready):
                m.d.sync += fresh.eq(0)

        # A word of sums leaves when both summands are there.
        moved = Signal()
        sums = []
        for lane in range(0, self._width, 32):
            adder = self._placer.place(m, f"adder_{lane // 32}", "vadd_adder", Adder)
            m.d.comb += adder.i_a.eq(a.o.payload.data[lane : lane + 32])
            m.d.comb += adder.i_b.eq(b.o.payload.data[lane : lane + 32])
            sums.append(adder.o)
        m.d.comb += [
            c.i.valid.eq(a.o.valid & b.o.valid),
            c.i.payload.data.eq(Cat(sums)),
            moved.eq(c.i.valid & c.i.ready),
            a.o.ready.eq(moved),
            b.o.ready.eq(moved),
            c.done.ready.eq(1),
            self.done.eq(running & (c.done.valid | nothing)),
        ]
        count_cycles(m, self, busy=moved, stall={"memory": running})
        return m


class VaddEngine(Engine[VaddConfig, VaddWorkload]):
    """The engine ``vadd`` for the rest of the project; see `hw.engine.Engine`."""

    name = "vadd"
    summary = "Sum of two vectors of 32-bit words"
    config_type = VaddConfig
    workload_type = VaddWorkload

    def default_config(self, board: Board) -> VaddConfig:
        """Return the same for every board."""
        return VaddConfig()

    def arguments(self, config: VaddConfig, board: Board) -> ArgumentTable:
        """Return the table, which depends on nothing."""
        return vadd_table()

    def body(self, config: VaddConfig, board: Board, placer: Placer) -> VaddBody:
        """Make the gates."""
        return VaddBody(config, board, placer)

    def resources(self, config: VaddConfig, board: Board) -> Resources:
        """Allow more than three DMAs of the widest port take."""
        return Resources(lut=20_000, ff=30_000, dsp=0, bram36=48, uram=0)

    def placement(self, config: VaddConfig, board: Board) -> dict[str, int]:
        """Assign each port a channel of its own where there are as many."""
        return {f"gmem{n}": n % board.memory.channels for n in range(3)}

    def predict(self, workload: VaddWorkload, config: VaddConfig, board: Board) -> Prediction:
        """Predict the latency, the first burst that c waits for, then the pace of the ports.

        Refreshes of the memory are left out: long vectors take 5 % more.
        """
        size, lanes = 4 * workload.words, board.memory.port_data_width // 32
        channels = min(3, board.memory.channels)
        channel = board.channel_bytes_per_cycle
        beats = -(-workload.words // lanes)
        fill = board.idle_read_cycles + ReadDMA.ADDRESS_LATENCY + ReadDMA.DATA_LATENCY
        drain = board.idle_write_cycles + WriteDMA.ADDRESS_LATENCY + WriteDMA.DONE_LATENCY
        pace = max(beats, math.ceil(-(-3 // channels) * size / channel))
        latency = fill + min(beats, axi.MAX_BURST_BEATS) - 1 + drain
        return Prediction(
            cycles={
                "cycles_busy": beats,
                "cycles_stall_memory": latency + pace - beats,
                "cycles_idle": 0,
            },
            read_bytes={"a": size, "b": size},
            write_bytes={"c": size},
            useful_macs=workload.words,
            mac_slots_per_cycle=lanes,
            compulsory_bytes=3 * size,
            memory_bytes_per_cycle=channels * channel,
        )
