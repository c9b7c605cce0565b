"""The smallest real kernel: bytes from one memory port, exclusive-ored with a mask, to another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from amaranth.back import verilog
from amaranth.hdl import Module, Signal
from amaranth.lib import wiring

from hw.board import Board
from hw.lib import axi
from hw.lib.arguments import Argument, ArgumentKind, ArgumentTable
from hw.lib.counters import COUNTER_WIDTH, Counters, counter_names
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA
from hw.lib.kernel import BodySignature, Kernel

NAME = "loomwork_mask"
#: Logged in a simulation: a word is offered at the port of the sink, and taken.
SIGNALS = {"offered": "m_axi_gmem1_WVALID", "taken": "m_axi_gmem1_WREADY"}


def mask_table(source_port: str = "gmem0") -> ArgumentTable:
    """Return the arguments: how many bytes, the mask, whether to hang instead, from where, to where."""
    call = (
        Argument(name="bytes", kind=ArgumentKind.SCALAR, doc="Bytes to move."),
        Argument(name="mask", kind=ArgumentKind.SCALAR, doc="Exclusive-ored with every 32-bit word."),
        Argument(name="hang", kind=ArgumentKind.SCALAR, doc="1: never finish."),
        Argument(name="source", kind=ArgumentKind.POINTER, doc="Read.", port=source_port),
        Argument(name="sink", kind=ArgumentKind.POINTER, doc="Written.", port="gmem1"),
    )
    names = (*counter_names(["memory"]), f"{source_port}_read_bytes", "gmem1_write_bytes")
    counters = (Argument(name=name, kind=ArgumentKind.COUNTER, doc="Count.") for name in names)
    return ArgumentTable((*call, *counters))


class Mask(wiring.Component):
    """The body; see `hw.lib.kernel.BodySignature`."""

    def __init__(self, table: ArgumentTable, data_width: int) -> None:
        self._data_width = data_width
        self._source_port = table.ports[0]
        super().__init__(BodySignature(table, data_width=data_width))

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.read = read = ReadDMA(data_width=self._data_width, fifo_beats=64)
        m.submodules.write = write = WriteDMA(data_width=self._data_width, fifo_beats=64)
        m.submodules.count = count = Counters(["memory"])
        axi.connect(m, read=read.axi, port=getattr(self, self._source_port))
        axi.connect(m, write=write.axi, port=self.gmem1)
        hang = Signal()
        for command, address in ((read.command, self.args.source), (write.command, self.args.sink)):
            m.d.comb += command.payload.address.eq(address)
            m.d.comb += command.payload.length.eq(self.args.bytes)
            with m.If(self.start):
                m.d.sync += command.valid.eq(1)
            with m.Elif(command.ready):
                m.d.sync += command.valid.eq(0)
        with m.If(self.start):
            m.d.sync += hang.eq(self.args.hang[0])
        moved = read.o.valid & write.i.ready
        m.d.comb += [
            write.i.payload.data.eq(read.o.payload.data ^ self.args.mask.replicate(self._data_width // 32)),
            write.i.valid.eq(read.o.valid),
            read.o.ready.eq(write.i.ready),
            write.done.ready.eq(1),
            self.done.eq(write.done.valid & ~hang),
            count.start.eq(self.start),
            count.done.eq(self.done),
            count.busy.eq(moved),
            count.stall.memory.eq(~moved),
        ]
        values = {name: count.counters[name] for name in count.names}
        for name, total in (
            (f"{self._source_port}_read_bytes", read.bytes_useful),
            ("gmem1_write_bytes", write.bytes_useful),
        ):
            values[name] = Signal(COUNTER_WIDTH)
            at_start = Signal.like(total)
            with m.If(self.start):
                m.d.sync += at_start.eq(total)
            m.d.comb += values[name].eq((total - at_start)[: len(total)])
        m.d.comb += [self.counters[name].eq(value) for name, value in values.items()]
        return m


@dataclass(frozen=True, kw_only=True)
class MaskKernel:
    """The part of a `hw.design.Design` that `sim.run.launch.simulate` reads."""

    top_name: str
    verilog: str
    table: ArgumentTable
    board: Board | None = None
    ports: tuple[SimpleNamespace, ...] = ()
    constant_ports: tuple[str, ...] = ()
    signals: Mapping[str, str] = field(default_factory=dict)

    def on(self, board: Board, placement: dict[str, int]) -> MaskKernel:
        """Connect its ports to channels of a board."""
        ports = tuple(SimpleNamespace(name=name, channel=channel) for name, channel in placement.items())
        return replace(self, board=board, ports=ports)


def mask_kernel(table: ArgumentTable, data_width: int) -> MaskKernel:
    """Generate the kernel."""
    kernel = Kernel(NAME, table, Mask(table, data_width))
    text = verilog.convert(kernel, name=NAME, emit_src=False, strip_internal_attrs=True)
    return MaskKernel(top_name=NAME, verilog=text, table=table, signals=SIGNALS)
