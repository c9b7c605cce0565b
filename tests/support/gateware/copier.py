"""Both DMAs behind one full AXI port: bytes read come back as bytes written."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from hw.lib import axi
from hw.lib.dma.burst import command_layout
from hw.lib.dma.read import ReadDMA
from hw.lib.dma.write import WriteDMA

#: Prefix of the AXI port's signals.
PREFIX = "m_axi"


class Copier(wiring.Component):
    """Copies byte ranges of one length from the read command's address to the write command's.

    The port has the constants that a kernel's shell adds (``awsize``, ``awburst``, ...).
    """

    def __init__(self, *, data_width: int, addr_width: int, fifo_beats: int) -> None:
        self._sizes = {"data_width": data_width, "addr_width": addr_width, "fifo_beats": fifo_beats}
        self._axi = axi.Signature(data_width=data_width, addr_width=addr_width)
        members = {f"{PREFIX}_{name}": member for name, member in self._axi.members.items()}
        for channel in ("aw", "ar"):
            members |= {f"{PREFIX}_{channel}size": Out(3), f"{PREFIX}_{channel}burst": Out(2)}
        command = In(stream.Signature(command_layout(addr_width)))
        super().__init__(
            members
            | {"source": command, "sink": command, "done": Out(stream.Signature(1))}
            | {"busy": Out(1), "error": Out(1)}
        )

    def elaborate(self, platform: Any) -> Module:
        m = Module()
        m.submodules.read = read = ReadDMA(**self._sizes)
        m.submodules.write = write = WriteDMA(**self._sizes)
        connect(m, flipped(self.source), read.command)
        connect(m, flipped(self.sink), write.command)
        connect(m, write.done, flipped(self.done))
        port = SimpleNamespace(
            signature=self._axi,
            **{name: getattr(self, f"{PREFIX}_{name}") for name in self._axi.members},
        )
        axi.connect(m, read=read.axi, write=write.axi, port=port)
        m.d.comb += [
            write.i.payload.data.eq(read.o.payload.data),
            write.i.valid.eq(read.o.valid),
            read.o.ready.eq(write.i.ready),
            self.busy.eq(read.busy | write.busy),
            self.error.eq(read.error | write.error),
        ]
        for channel in ("aw", "ar"):
            m.d.comb += [
                getattr(self, f"{PREFIX}_{channel}size").eq(exact_log2(self._axi.beat_bytes)),
                getattr(self, f"{PREFIX}_{channel}burst").eq(1),
            ]
        return m
