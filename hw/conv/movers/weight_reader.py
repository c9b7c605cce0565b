"""Reads the stream of weights ahead of use, and routes its packets to the units."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import ConvConfig
from hw.conv.core.packets import RECORD_BITS, PacketHeader, Record, TileHeader
from hw.conv.movers.layouts import ADDRESS_BITS, WeightRead
from hw.lib import axi
from hw.lib.dma.read import ReadDMA
from hw.lib.skid import Skid


class WeightReader(wiring.Component):
    """Reads weights in memory for the loaders of both units.

    ``data_width``: bits of a beat of the memory port, and of a beat of weights.

    Behaviour
    ---------
    A beat a cycle.  Packets wait for earlier ones, of either unit: both units execute jobs in the order of
    the stream, and neither waits for the other's weights.
    """

    def __init__(self, config: ConvConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        beat = stream.Signature(data_width)
        super().__init__(
            {
                "i": In(stream.Signature(WeightRead())),
                #: ``taps``, ``tiles``: packets for the depthwise and for the pointwise unit.
                "taps": Out(beat),
                "tiles": Out(beat),
                "axi": Out(axi.ReadSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
                "bytes_useful": Out(48),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Issue commands, then route packets by their headers."""
        m = Module()
        config, width = self._config, self._data_width
        m.submodules.dma = dma = ReadDMA(data_width=width, addr_width=ADDRESS_BITS)
        m.submodules.jobs = jobs = Skid(WeightRead())
        m.submodules.commands = commands = Skid(dma.command.payload.shape())
        connect(m, flipped(self.i), jobs.i)
        connect(m, commands.o, dma.command)
        connect(m, dma.axi, flipped(self.axi))
        m.d.comb += self.bytes_useful.eq(dma.bytes_useful)

        # A job: its weights of taps, then its tiles once for each block.
        job = jobs.o.payload
        repeated = Signal.like(job.repeats)
        first_done = Signal()
        asks_first = Signal()
        go = Signal()
        ends = Signal()
        # Whether it has weights of taps is known a cycle late.
        has_first = Signal()
        seen = Signal()
        m.d.sync += [has_first.eq(job.bytes != 0), seen.eq(jobs.o.valid & ~ends)]
        m.d.comb += [
            asks_first.eq(~first_done & has_first),
            commands.i.payload.address.eq(Mux(asks_first, job.address, job.tiles)),
            commands.i.payload.length.eq(Mux(asks_first, job.bytes, job.tile_bytes)),
            commands.i.valid.eq(seen & (asks_first | (repeated != job.repeats))),
            go.eq(commands.i.valid & commands.i.ready),
            ends.eq(seen & ~asks_first & (repeated == job.repeats)),
            jobs.o.ready.eq(ends),
        ]
        with m.If(go & asks_first):
            m.d.sync += first_done.eq(1)
        with m.Elif(go):
            m.d.sync += repeated.eq(repeated + 1)
        with m.If(ends):
            m.d.sync += [first_done.eq(0), repeated.eq(0)]

        # Packets.  The number of beats after a header is computed before the header leaves.
        m.submodules.skid = skid = Skid(width)
        m.d.comb += [
            skid.i.valid.eq(dma.o.valid),
            skid.i.payload.eq(dma.o.payload.data),
            dma.o.ready.eq(skid.i.ready),
        ]
        beat = skid.o
        tile = data.View(TileHeader(), beat.payload[: TileHeader().size])
        packet = data.View(PacketHeader(), beat.payload[: PacketHeader().size])
        per_beat = width // RECORD_BITS
        tile_beats = -(-config.tile_bits // width)
        parameter_beats = -(-config.outputs // per_beat)
        left = Signal(packet.records.shape())  # beats of the packet after this one
        is_tile = Signal()
        known = Signal()
        target = Mux(is_tile, self.tiles.ready, self.taps.ready)
        passed = Signal()
        m.d.comb += [
            self.tiles.valid.eq(beat.valid & known & is_tile),
            self.taps.valid.eq(beat.valid & known & ~is_tile),
            self.tiles.payload.eq(beat.payload),
            self.taps.payload.eq(beat.payload),
            beat.ready.eq(known & target),
            passed.eq(beat.valid & beat.ready),
        ]
        with m.If(beat.valid & ~known):
            m.d.sync += [
                known.eq(1),
                is_tile.eq(packet.kind == Record.TILE),
                left.eq(
                    Mux(
                        packet.kind == Record.TILE,
                        tile_beats + Mux(tile.parameters, parameter_beats, 0),
                        (packet.records + per_beat - 1) >> (per_beat.bit_length() - 1),
                    )
                ),
            ]
        with m.If(passed):
            m.d.sync += [left.eq(left - 1), known.eq(left != 0)]
        return m
