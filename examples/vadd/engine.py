"""The engine `vadd`: c = a + b over 32-bit words in memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.board import Board
from hw.board.resources import Resources
from hw.engine import Engine
from hw.errors import InputError
from hw.lib import axi
from hw.lib.arguments import Argument, ArgumentTable, Kind
from hw.lib.counters import Counters, counter_names
from hw.lib.dma_read import ReadDMA
from hw.lib.dma_write import WriteDMA
from hw.lib.kernel import BodySignature
from hw.lib.place import Placer
from hw.prediction import Prediction


@dataclass(frozen=True, kw_only=True)
class VaddConfig:
    """Size of the queues between the memory and the adders.

    Parameters
    ----------
    fifo_beats
        Beats each DMA may hold: at least 16.
    """

    fifo_beats: int = 32

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
    """Give the arguments: c shares its port with a."""
    causes = ("memory",)
    return ArgumentTable(
        (
            Argument(name="a", kind=Kind.POINTER, port="gmem0", doc="First summand, int32"),
            Argument(name="b", kind=Kind.POINTER, port="gmem1", doc="Second summand, int32"),
            Argument(name="c", kind=Kind.POINTER, port="gmem0", doc="Sum, int32; wraps [mod 2^32]"),
            Argument(name="words", kind=Kind.SCALAR, doc="Length of a, b and c in 32-bit words"),
            *(Argument(name=name, kind=Kind.COUNTER, doc="Clock cycles") for name in counter_names(causes)),
            *(
                Argument(name=name, kind=Kind.COUNTER, doc="Useful bytes moved since the start")
                for name in ("gmem0_read_bytes", "gmem0_write_bytes", "gmem1_read_bytes")
            ),
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
        self._config = config
        self._placer = placer
        self._width = board.memory.port_data_width
        super().__init__(BodySignature(vadd_table(), data_width=self._width))

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        sizes = {"data_width": self._width, "fifo_beats": self._config.fifo_beats}
        m.submodules.read_a = read_a = ReadDMA(**sizes)
        m.submodules.read_b = read_b = ReadDMA(**sizes)
        m.submodules.write_c = write_c = WriteDMA(**sizes)
        m.submodules.counters = counters = Counters(("memory",))
        axi.connect(m, read=read_a.axi, write=write_c.axi, port=self.gmem0)
        axi.connect(m, read=read_b.axi, port=self.gmem1)

        # One command each; a call of no words has none.
        running, fresh = Signal(), Signal(3)
        movers: list[Any] = [read_a, read_b, write_c]
        for index, (dma, address) in enumerate(
            zip(movers, (self.args.a, self.args.b, self.args.c), strict=True)
        ):
            m.d.comb += [
                dma.command.valid.eq(fresh[index]),
                dma.command.payload.address.eq(address),
                dma.command.payload.length.eq(self.args.words << 2),
            ]
            with m.If(dma.command.ready):
                m.d.sync += fresh[index].eq(0)
        nothing = Signal()
        m.d.sync += nothing.eq(0)
        with m.If(self.start):
            m.d.sync += [running.eq(1), nothing.eq(self.args.words == 0)]
            with m.If(self.args.words != 0):
                m.d.sync += fresh.eq(0b111)

        # A sum leaves when both summands are there.
        moved = Signal()
        lanes = data.ArrayLayout(signed(32), self._width // 32)
        a = data.View(lanes, read_a.o.payload.data)
        b = data.View(lanes, read_b.o.payload.data)
        sums = []
        for lane in range(self._width // 32):
            adder = self._placer.place(m, f"adder_{lane}", "vadd_adder", Adder)
            m.d.comb += [adder.i_a.eq(a[lane]), adder.i_b.eq(b[lane])]
            sums.append(adder.o)
        both = read_a.o.valid & read_b.o.valid
        m.d.comb += [
            write_c.i.valid.eq(both),
            write_c.i.payload.data.eq(Cat(sums)),
            moved.eq(both & write_c.i.ready),
            read_a.o.ready.eq(moved),
            read_b.o.ready.eq(moved),
            write_c.done.ready.eq(1),
            self.done.eq(running & (write_c.done.valid | nothing)),
        ]
        with m.If(self.done):
            m.d.sync += running.eq(0)

        m.d.comb += [
            counters.start.eq(self.start),
            counters.done.eq(self.done),
            counters.busy.eq(moved),
            counters.stall.memory.eq(running),
        ]
        for name in counters.names:
            m.d.comb += self.counters[name].eq(counters.counters[name])
        for name, dma in (
            ("gmem0_read_bytes", read_a),
            ("gmem0_write_bytes", write_c),
            ("gmem1_read_bytes", read_b),
        ):
            before = Signal.like(dma.bytes_useful)
            with m.If(self.start):
                m.d.sync += before.eq(dma.bytes_useful)
            m.d.comb += self.counters[name].eq((dma.bytes_useful - before)[: len(before)])
        return m


class VaddEngine(Engine[VaddConfig, VaddWorkload]):
    """What the rest of the project asks of ``vadd``; see `hw.engine.Engine`."""

    name = "vadd"
    summary = "Sum of two vectors of 32-bit words"
    config_type = VaddConfig
    workload_type = VaddWorkload

    def default_config(self, board: Board) -> VaddConfig:
        """Give the same for every board."""
        return VaddConfig()

    def arguments(self, config: VaddConfig, board: Board) -> ArgumentTable:
        """Give the table, which depends on nothing."""
        return vadd_table()

    def body(self, config: VaddConfig, board: Board, placer: Placer) -> VaddBody:
        """Make the gates."""
        return VaddBody(config, board, placer)

    def resources(self, config: VaddConfig, board: Board) -> Resources:
        """Allow more than three DMAs of the widest port take."""
        return Resources(lut=20_000, ff=30_000, dsp=0, bram36=48, uram=0)

    def placement(self, config: VaddConfig, board: Board) -> dict[str, int]:
        """Put the ports as far from each other as there are channels."""
        return {"gmem0": 0, "gmem1": board.memory.channels - 1}

    def predict(self, workload: VaddWorkload, config: VaddConfig, board: Board) -> Prediction:
        """Predict the memory's latency, then a beat a cycle, or what one channel gives for a and c.

        What a channel loses by turning from reads to writes is not in it: 1.8 times as much for long vectors.
        """
        size, lanes = 4 * workload.words, board.memory.port_data_width // 32
        channel = board.channel_bytes_per_cycle
        beats = -(-workload.words // lanes)
        latency = board.idle_read_cycles + board.idle_write_cycles
        return Prediction(
            cycles={
                "cycles_busy": beats,
                "cycles_stall_memory": latency + max(0, math.ceil(2 * size / channel) - beats),
                "cycles_idle": 0,
            },
            read_bytes={"a": size, "b": size},
            write_bytes={"c": size},
            useful_macs=workload.words,
            mac_slots_per_cycle=lanes,
            compulsory_bytes=3 * size,
            memory_bytes_per_cycle=min(2, board.memory.channels) * channel,
        )
