"""Writes responses into a ring in host memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib import axi
from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.core.layouts import ADDRESS_BITS, BEAT_BITS
from hw.oram.movers.blocks.writer import BlockWriter
from hw.oram.movers.ring.command_reader import SLOT_BITS


class ResponseWriter(wiring.Component):
    """Writes responses in order, each into the slot of its sequence number.

    Parameters
    ----------
    config
        Shape of the map.

    Members
    -------
    base : In(64)
        Address of the ring's first slot, a multiple of a beat.
    mask : In(32)
        Slots of the ring, a power of two, less 1.
    clear : In(1)
        Pulse: the next response's sequence number is 0.
    announce : In(1)
        Pulse: one more response will come; at the latest 8 cycles before its last beat.
    beat : In(stream of BEAT_BITS, always ready)
        The responses.
    halt : In(1)
        No further response is begun.
    written : Out(1)
        Pulse: a response is written.
    axi : Out(axi.WriteSignature)
    error : Out(1)

    Behaviour
    ---------
    As of `BlockWriter`.  The host empties slots before they come around: the ring has at least as many as
    commands are given and not answered.
    """

    def __init__(self, config: OramConfig) -> None:
        blocks = config.response_records
        self.writer = BlockWriter(
            index_bits=SLOT_BITS, beats=config.command_bytes // BEAT_BYTES, blocks=blocks, outstanding=blocks
        )
        super().__init__(
            {
                "base": In(ADDRESS_BITS),
                "mask": In(SLOT_BITS),
                "clear": In(1),
                "announce": In(1),
                "beat": In(stream.Signature(BEAT_BITS, always_ready=True)),
                "halt": In(1),
                "written": Out(1),
                "axi": Out(axi.WriteSignature(data_width=BEAT_BITS, addr_width=ADDRESS_BITS)),
                "error": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count slots."""
        m = Module()
        m.submodules.writer = writer = self.writer
        connect(m, flipped(self.beat), writer.beat)
        connect(m, writer.axi, flipped(self.axi))
        slot = Signal(SLOT_BITS)
        with m.If(self.announce):
            m.d.sync += slot.eq(slot + 1)
        with m.If(self.clear):
            m.d.sync += slot.eq(0)
        m.d.comb += [
            writer.base.eq(self.base),
            writer.i.valid.eq(self.announce),
            writer.i.payload.eq(slot & self.mask),
            writer.halt.eq(self.halt),
            self.written.eq(writer.written),
            self.error.eq(writer.error),
        ]
        return m
