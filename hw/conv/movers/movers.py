"""The data movers of convolution: from descriptors to the core's streams, and its results to memory."""

from typing import Any, ClassVar

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.conv.config import ConvConfig
from hw.conv.core.layouts import GatherRequest, offset_entry
from hw.conv.movers.descriptor import DESCRIPTOR_BYTES, used_bytes
from hw.conv.movers.dispatch import Bases, Dispatch
from hw.conv.movers.layouts import ADDRESS_BITS
from hw.conv.movers.map_reader import MapReader
from hw.conv.movers.map_writer import MapWriter
from hw.conv.movers.side_port import SidePort
from hw.conv.movers.weight_reader import WeightReader
from hw.lib import axi
from hw.lib.descriptors.queue import COUNT_BITS, DescriptorQueue

#: Descriptors prefetched.
_JOBS_AHEAD = 2
#: Commands from the movers to the core, by the names of its members.
COMMANDS = ("tap", "offset", "block", "sweep", "drain", "bypass_block", "bypass_cut")


def weight_port(config: ConvConfig) -> int:
    """Return the number of the memory port of weights: after those of the maps."""
    return config.ports


def side_port(config: ConvConfig) -> int:
    """Return the number of the memory port of descriptors, offsets and the log."""
    return config.ports + 1


class PortBytes(data.StructLayout):
    """Bytes moved since reset, 48 bits each: ``gmemN_read_bytes`` of every port, ``gmemN_write_bytes`` of all
    but that of the weights.
    """

    def __init__(self, config: ConvConfig) -> None:
        ports = range(side_port(config) + 1)
        reads = {f"gmem{n}_read_bytes": 48 for n in ports}
        writes = {f"gmem{n}_write_bytes": 48 for n in ports if n != weight_port(config)}
        super().__init__(reads | writes)


class ConvMovers(wiring.Component):
    """Supplies the core with the jobs of a launch."""

    #: Cycles from the end of all movers to ``done``.
    DONE_LATENCY: ClassVar = 1

    def __init__(self, config: ConvConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        self._dispatch = Dispatch(config)
        words, beats, token = (stream.Signature(shape) for shape in (config.word_bits, data_width, 1))
        port = axi.Signature(data_width=data_width, addr_width=ADDRESS_BITS)
        given = self._dispatch.signature.members
        #: If the engine can gather.
        gather = {"requests": In(stream.Signature(GatherRequest())), "gathered": Out(words)}
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse; not before the last ``done``.
                #: ``jobs``, ``job_count``, ``log``, ``bases``: address and number of descriptors, address of
                #: the log, base addresses; constant from ``start`` to ``done``.
                "jobs": In(ADDRESS_BITS),
                "job_count": In(COUNT_BITS),
                "log": In(ADDRESS_BITS),
                "bases": In(Bases(config)),
                "done": Out(1),  #: One-cycle pulse: every result is in memory.
                #: To the core, see `hw.conv.core.core.ConvCore`.
                **{name: given[name] for name in (*COMMANDS, "source_turns", "sink_turns")},
                "o": Out(words),
                "bypass": Out(words),
                "offsets": Out(stream.Signature(offset_entry(config))),
                "tap_weights": Out(beats),
                "tile_weights": Out(beats),
                "row_token": In(token),
                "block_token": In(token),
                "bypass_token": In(token),
                "i": In(words),
                "moved": Out(PortBytes(config)),
                **(gather if config.gather_words else {}),
                #: P ports of maps, then `weight_port` and `side_port`.
                **{f"gmem{n}": Out(port) for n in range(side_port(config) + 1)},
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Connect descriptors, dispatch, readers and writer."""
        m = Module()
        config, width = self._config, self._data_width
        m.submodules.dispatch = dispatch = self._dispatch
        m.submodules.jobs = jobs = DescriptorQueue(
            pitch_bytes=DESCRIPTOR_BYTES, used_bytes=used_bytes(config), data_width=width, ahead=_JOBS_AHEAD
        )
        m.submodules.reader = reader = MapReader(config, data_width=width)
        m.submodules.writer = writer = MapWriter(config, data_width=width)
        m.submodules.weights = weights = WeightReader(config, data_width=width)
        m.submodules.side = side = SidePort(config, data_width=width)
        connect(m, jobs.fetch, side.fetch)
        connect(m, side.words, jobs.words)
        connect(m, jobs.o, dispatch.i)
        for name in COMMANDS:
            connect(m, getattr(dispatch, name), flipped(getattr(self, name)))
        for n in range(3):
            connect(m, dispatch.source_turns[n], flipped(self.source_turns[n]))
            connect(m, dispatch.sink_turns[n], flipped(self.sink_turns[n]))
        connect(m, dispatch.read, reader.i[0])
        connect(m, dispatch.bypass_read, reader.i[1])
        if config.gather_words:
            connect(m, dispatch.gather, reader.gather)
            connect(m, flipped(self.requests), reader.requests)
            connect(m, reader.gathered, flipped(self.gathered))
        connect(m, dispatch.write, writer.map)
        connect(m, dispatch.weight_read, weights.i)
        connect(m, dispatch.offset_read, side.offset_read)
        connect(m, reader.o[0], flipped(self.o))
        connect(m, reader.o[1], flipped(self.bypass))
        connect(m, flipped(self.i), writer.i)
        connect(m, side.offsets, flipped(self.offsets))
        connect(m, weights.taps, flipped(self.tap_weights))
        connect(m, weights.tiles, flipped(self.tile_weights))
        connect(m, flipped(self.bypass_token), reader.token[1])
        connect(m, flipped(self.block_token), reader.token[0])
        connect(m, flipped(self.row_token), reader.row_token)

        moved = self.moved
        for p in range(config.ports):
            axi.connect(m, read=reader.axi[p], write=writer.axi[p], port=getattr(self, f"gmem{p}"))
            m.d.sync += [
                moved[f"gmem{p}_read_bytes"].eq(reader.bytes_useful[p]),
                moved[f"gmem{p}_write_bytes"].eq(writer.bytes_useful[p]),
            ]
        weight, beside = weight_port(config), side_port(config)
        axi.connect(m, read=weights.axi, port=getattr(self, f"gmem{weight}"))
        axi.connect(m, read=side.read, write=side.write, port=getattr(self, f"gmem{beside}"))
        m.d.sync += [
            moved[f"gmem{weight}_read_bytes"].eq(weights.bytes_useful),
            moved[f"gmem{beside}_read_bytes"].eq(side.read_bytes),
            moved[f"gmem{beside}_write_bytes"].eq(side.write_bytes),
        ]

        # Done when no job is left or open, and the log is written.
        running = Signal()
        quiet = Signal()
        m.d.comb += [
            jobs.start.eq(self.start),
            jobs.address.eq(self.jobs),
            jobs.count.eq(self.job_count),
            dispatch.bases.eq(self.bases),
            dispatch.written.eq(writer.done),
            writer.total.eq(dispatch.total),
            side.start.eq(self.start),
            side.log.eq(self.log),
            side.written.eq(writer.done),
            quiet.eq(~jobs.left & ~dispatch.open & ~side.busy),
        ]
        m.d.sync += self.done.eq(running & quiet & ~self.start & ~self.done)
        with m.If(self.start):
            m.d.sync += running.eq(1)
        with m.Elif(running & quiet):
            m.d.sync += running.eq(0)
        return m
