"""Writes maps through all ports."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import SIDE_BITS, ConvConfig
from hw.conv.movers.join import JoinCommand, WordTurn
from hw.conv.movers.layouts import ADDRESS_BITS, MapWrite, PortWrite, map_rows
from hw.lib import axi
from hw.lib.dma.write import WriteDMA
from hw.lib.fifo import Fifo
from hw.lib.rows.packer import RowPacker
from hw.lib.skid import Skid
from hw.lib.width import Beat, WidthConverter

#: Maps in the queue.
_MAPS = 2
#: Rows of a map whose bytes may be outstanding at a port.
_ROWS = 16
#: Slices queued at each port.
SLICES = 4


class PortMap(data.StructLayout):
    """A map at one port: ``port`` as of `MapWrite`, ``rows`` of the map and ``parts`` of each."""

    def __init__(self, config: ConvConfig) -> None:
        super().__init__({"port": PortWrite(config), "rows": SIDE_BITS, "parts": 2 * SIDE_BITS})


class PortWriter(wiring.Component):
    """Writes one port's bytes of maps."""

    #: Cycles from the slices of a beat to the DMA.
    LATENCY: ClassVar = WidthConverter.LATENCY + RowPacker.LATENCY + 2 * Skid.LATENCY

    def __init__(self, config: ConvConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        self._dma = WriteDMA(data_width=data_width, addr_width=ADDRESS_BITS, commands=_ROWS)
        slice_bits = config.word_bits // config.ports
        self._lane = min(slice_bits, data_width)
        super().__init__(
            {
                "map": In(stream.Signature(PortMap(config))),
                #: Slices of L / P lanes; ``keep`` marks the valid pieces of the port's width, ``last`` the
                #: last slice of a part of a pixel.
                "i": In(stream.Signature(Beat(lane_width=self._lane, lanes=slice_bits // self._lane))),
                "axi": Out(axi.WriteSignature(data_width=data_width, addr_width=ADDRESS_BITS)),
                "done": Out(stream.Signature(1)),  #: One for each map, after all its responses.
                "bytes_useful": Out(48),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Convert, pack, write; a command of the DMA for each row."""
        m = Module()
        config, width = self._config, self._data_width
        m.submodules.dma = dma = self._dma
        m.submodules.converter = converter = WidthConverter(
            lane_width=self._lane, i_lanes=self.i.payload.shape().lanes, o_lanes=width // self._lane
        )
        m.submodules.beats = beats = Skid(width)
        m.submodules.packer = packer = RowPacker(map_rows(config), data_width=width)
        m.submodules.words = words = Skid(width)
        m.submodules.rows = rows = Fifo(map_rows(config), depth=_ROWS)
        m.submodules.lasts = lasts = Fifo(1, depth=2 * _ROWS)
        connect(m, flipped(self.i), converter.i)
        connect(m, dma.axi, flipped(self.axi))
        connect(m, rows.o, packer.rows)
        connect(m, beats.o, packer.i)
        connect(m, packer.o, words.i)
        m.d.comb += [
            beats.i.valid.eq(converter.o.valid),
            beats.i.payload.eq(converter.o.payload.data),
            converter.o.ready.eq(beats.i.ready),
            dma.i.valid.eq(words.o.valid),
            dma.i.payload.data.eq(words.o.payload),
            words.o.ready.eq(dma.i.ready),
            self.bytes_useful.eq(dma.bytes_useful),
        ]

        job = Signal(PortMap(config), reset_less=True)
        active = Signal()
        left = Signal.like(job.rows)
        go = Signal()
        m.submodules.commands = commands = Skid(dma.command.payload.shape())
        connect(m, commands.o, dma.command)
        m.d.comb += [
            self.map.ready.eq(~active),
            go.eq(active & commands.i.ready & rows.i.ready & lasts.i.ready),
            commands.i.valid.eq(go),
            commands.i.payload.address.eq(job.port.address),
            commands.i.payload.length.eq(job.port.bytes),
            rows.i.valid.eq(go),
            rows.i.payload.rows.eq(job.parts),
            rows.i.payload.units.eq(job.port.units),
            lasts.i.valid.eq(go),
            lasts.i.payload.eq(left == 0),
        ]
        with m.If(go):
            m.d.sync += [
                left.eq(left - 1),
                job.port.address.eq(job.port.address + job.port.pitch),
                active.eq(left != 0),
            ]
        with m.If(~active & self.map.valid):
            m.d.sync += [job.eq(self.map.payload), left.eq(self.map.payload.rows - 1), active.eq(1)]

        # A row is done; with the last one, the map.
        last = lasts.o.payload
        answered = dma.done.valid & lasts.o.valid
        m.d.comb += [
            self.done.valid.eq(answered & last),
            dma.done.ready.eq(lasts.o.valid & (~last | self.done.ready)),
            lasts.o.ready.eq(dma.done.valid & (~last | self.done.ready)),
        ]
        return m


class MapWriter(wiring.Component):
    """Writes words of maps to memory.

    Behaviour
    ---------
    A word a cycle, unless ports or memory limit it.
    """

    #: Cycles from a word to its slices at the ports.
    LATENCY: ClassVar = Skid.LATENCY + Fifo.LATENCY

    def __init__(self, config: ConvConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        super().__init__(
            {
                "map": In(stream.Signature(MapWrite(config))),
                "total": In(32),  #: Words of the map on ``map``.
                "i": In(stream.Signature(config.word_bits)),
                "axi": Out(axi.WriteSignature(data_width=data_width, addr_width=ADDRESS_BITS)).array(
                    config.ports
                ),
                "done": Out(1),  #: One-cycle pulse for each map, in order, after all its responses.
                "bytes_useful": Out(48).array(config.ports),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Split words into slices; a map is done when all ports that have bytes of it are done."""
        m = Module()
        config = self._config
        slice_bits = config.word_bits // config.ports
        lanes = config.lanes // config.ports
        m.submodules.words = words = Skid(config.word_bits)
        m.submodules.turns = turns = Fifo(JoinCommand(config), depth=_MAPS)
        m.submodules.waiting = waiting = Fifo(config.ports, depth=2 * _MAPS + 2)  # ports that each map has
        connect(m, flipped(self.i), words.i)
        turn = WordTurn(m, config, turns.o)
        ready = []
        given = []
        done = []
        accept = Signal()
        used = Signal(config.ports)
        m.d.comb += [
            turns.i.payload.words.eq(self.map.payload.words),
            turns.i.payload.total.eq(self.total),
            turns.i.valid.eq(accept),
            waiting.i.valid.eq(accept),
            waiting.i.payload.eq(used),
        ]
        for p in range(config.ports):
            port = self.map.payload.ports[p]
            m.submodules[f"port_{p}"] = writer = PortWriter(config, data_width=self._data_width)
            m.submodules[f"maps_{p}"] = maps = Fifo(PortMap(config), depth=_MAPS)
            m.submodules[f"slices_{p}"] = slices = Fifo(writer.i.payload.shape(), depth=SLICES)
            connect(m, maps.o, writer.map)
            connect(m, slices.o, writer.i)
            connect(m, writer.axi, flipped(self.axi[p]))
            beat = slices.i.payload
            pieces = beat.shape().lanes
            # Of a part's last slice only the pieces that have units leave.
            tail = Signal(range(lanes + 1), name=f"tail_{p}")
            piece_bytes = slice_bits // 8 // pieces
            with m.If(turns.o.valid & turns.o.ready):
                units = turns.o.payload.units[p]
                m.d.sync += tail.eq(
                    Mux(units[: lanes.bit_length() - 1] == 0, lanes, units[: lanes.bit_length() - 1])
                )
            keep = Cat(Mux(turn.ends[p], tail > n * piece_bytes, 1) for n in range(pieces))
            m.d.comb += [
                used[p].eq(port.units != 0),
                maps.i.valid.eq(accept & used[p]),
                maps.i.payload.port.eq(port),
                maps.i.payload.rows.eq(self.map.payload.rows),
                maps.i.payload.parts.eq(self.map.payload.parts),
                turns.i.payload.units[p].eq(port.units),
                beat.data.eq(words.o.payload.word_select(p, slice_bits)),
                beat.last.eq(turn.ends[p]),
                beat.keep.eq(keep),
                slices.i.valid.eq(turn.step & turn.has[p]),
                writer.done.ready.eq(self.done & waiting.o.payload[p]),
                self.bytes_useful[p].eq(writer.bytes_useful),
            ]
            ready.append(slices.i.ready | ~turn.has[p])
            given.append(maps.i.ready | ~used[p])
            done.append(writer.done.valid | ~waiting.o.payload[p])
        m.d.comb += [
            self.map.ready.eq(turns.i.ready & waiting.i.ready & Cat(given).all()),
            accept.eq(self.map.valid & self.map.ready),
            turn.step.eq(turn.active & words.o.valid & Cat(ready).all()),
            words.o.ready.eq(turn.step),
            self.done.eq(waiting.o.valid & Cat(done).all()),
            waiting.o.ready.eq(self.done),
        ]
        return m
