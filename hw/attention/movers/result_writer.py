"""Writer of results to memory."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.walk.job import ADDRESS_BITS, UNIT_SHIFT
from hw.attention.walk.layouts import WritePass, written_rows
from hw.lib import axi
from hw.lib.dma.write import WriteDMA
from hw.lib.fifo import Fifo
from hw.lib.rows.packer import RowPacker
from hw.lib.skid import Skid

#: Commands that may be queued ahead of the results.
_COMMANDS = 64


class ResultWriter(wiring.Component):
    """Writes the results of passes through one port.

    Behaviour
    ---------
    A command a cycle; a beat a cycle, see `RowPacker`, and a cycle before it.
    """

    #: Cycles from a burst's last beat to its address, and from the last response to ``busy`` low.
    LATENCY: ClassVar = Skid.LATENCY + RowPacker.LATENCY + WriteDMA.ADDRESS_LATENCY
    DONE_LATENCY: ClassVar = WriteDMA.DONE_LATENCY + 1

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        super().__init__(
            {
                "i": In(stream.Signature(WritePass(config))),
                #: Base address of the port's results; constant while it is busy.
                "base": In(ADDRESS_BITS),
                #: The port's slices of the results, see `hw.attention.core.result.output`.
                "beats": In(stream.Signature(config.result_slice(data_width))),
                "axi": Out(axi.WriteSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
                #: A result of a pass taken from ``i`` is not in memory yet.
                "busy": Out(1),
                "bytes_useful": Out(48),  #: Bytes written since reset.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Commands for the pieces of a pass; beats -> registers -> packer -> DMA."""
        m = Module()
        config = self._config
        # Registers: the base is far away, and the next stage adds to addresses, too.
        m.submodules.placed = placed = Skid(WritePass(config))
        m.submodules.given = given = Skid(config.result_slice(self._data_width))
        connect(m, flipped(self.i), placed.i)
        m.d.comb += placed.i.payload.o.address.eq(self.i.payload.o.address + self.base)
        connect(m, flipped(self.beats), given.i)
        current = placed.o.payload
        m.submodules.dma = dma = WriteDMA(
            data_width=self._data_width, addr_width=ADDRESS_BITS, commands=_COMMANDS
        )
        m.submodules.packer = packer = RowPacker(
            written_rows(config),
            data_width=self._data_width,
            beat_width=config.result_slice(self._data_width),
        )
        m.submodules.rows = rows = Fifo(written_rows(config), depth=_COMMANDS)
        connect(m, dma.axi, flipped(self.axi))
        connect(m, rows.o, packer.rows)
        connect(m, given.o, packer.i)
        piece = Signal(range(config.rows + 1))
        distance = Signal(ADDRESS_BITS)
        go = Signal()
        ends = Signal()
        m.d.comb += [
            dma.i.payload.data.eq(packer.o.payload),
            dma.i.valid.eq(packer.o.valid),
            packer.o.ready.eq(dma.i.ready),
            dma.command.payload.address.eq(current.o.address + distance),
            dma.command.payload.length.eq(current.o.units << UNIT_SHIFT),
            dma.command.valid.eq(placed.o.valid & rows.i.ready),
            rows.i.payload.rows.eq(current.o.rows),
            rows.i.payload.units.eq(current.units),
            rows.i.valid.eq(go),
            go.eq(dma.command.valid & dma.command.ready),
            ends.eq(piece == current.o.count - 1),
            placed.o.ready.eq(go & ends),
            self.bytes_useful.eq(dma.bytes_useful),
        ]
        with m.If(go):
            m.d.sync += [
                piece.eq(Mux(ends, 0, piece + 1)),
                distance.eq(Mux(ends, 0, distance + current.o.stride)),
            ]
        unwritten = Signal(16)  # far more than all queues hold
        written = dma.done.valid & dma.done.ready
        m.d.sync += unwritten.eq(unwritten + go - written)
        m.d.comb += [dma.done.ready.eq(1), self.busy.eq(placed.o.valid | (unwritten != 0))]
        return m
