"""The data movers of attention: from a job to the core's commands and streams, and its results to memory."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Signal, signed
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.command import Command
from hw.attention.config import AttentionConfig
from hw.attention.drain import OutputBeat
from hw.attention.job import ADDRESS_BITS, Job
from hw.attention.passes import PassSequencer
from hw.attention.reader import ItemReader
from hw.lib import axi
from hw.lib.burst import command_layout
from hw.lib.dma_write import WriteDMA
from hw.lib.fifo import Fifo
from hw.lib.skid import Skid

#: Passes whose commands may wait for a DMA or the core.  A reader runs ahead by the beats its buffer holds,
#: which is many passes of few keys; nothing else may hold it back.
PASSES_AHEAD = 8


def port_count(config: AttentionConfig) -> int:
    """Count the memory ports: queries and results share one, each slice of keys and values has its own."""
    return 1 + 2 * config.ports_per_stream


class Moved(data.StructLayout):
    """Bytes moved since reset, 48 bits each: ``gmemN_read_bytes`` of every port, ``gmem0_write_bytes``."""

    def __init__(self, config: AttentionConfig) -> None:
        reads = {f"gmem{n}_read_bytes": 48 for n in range(port_count(config))}
        super().__init__({"gmem0_write_bytes": 48, **reads})


class AttentionMovers(wiring.Component):
    """Feeds an `hw.attention.core.AttentionCore` from memory.

    Parameters
    ----------
    config
        Shape of the engine.
    data_width
        Bits of a beat of every memory port, and of a beat of results.

    Members
    -------
    start : In(1)
        One-cycle pulse; not before the last ``done``.
    job : In(Job)
        Constant from ``start`` to ``done``.
    done : Out(1)
        One-cycle pulse: every result is in memory.
    o_command, o_query, o_key, o_value, i
        To and from the core's ``i_command``, ``i_query``, ``i_key``, ``i_value`` and ``o``.
    moved : Out(Moved)
    gmem0, ... : Out(axi.Signature)
        Port 0 reads queries and writes results, 1 to P read slices of keys, P + 1 to 2 P of values.

    Behaviour
    ---------
    All commands are given as early as the DMAs take them, so that memory latency is paid once, at the start.
    """

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        elements = data.ArrayLayout(signed(8), config.head_dim)
        port = axi.Signature(data_width=data_width, addr_width=ADDRESS_BITS)
        super().__init__(
            {
                "start": In(1),
                "job": In(Job(config)),
                "done": Out(1),
                "o_command": Out(stream.Signature(Command(config))),
                "o_query": Out(stream.Signature(elements)),
                "o_key": Out(stream.Signature(elements)),
                "o_value": Out(stream.Signature(elements)),
                "i": In(stream.Signature(OutputBeat(data_width))),
                "moved": Out(Moved(config)),
                **{f"gmem{n}": Out(port) for n in range(port_count(config))},
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Sequencer -> command queues -> DMAs -> streams."""
        m = Module()
        config, job = self._config, self.job
        slices = config.ports_per_stream
        slice_bytes = config.head_dim // slices
        m.submodules.sequencer = sequencer = PassSequencer(config)
        m.d.comb += [sequencer.start.eq(self.start), sequencer.job.eq(job)]
        current = sequencer.o.payload

        m.submodules.q = q = ItemReader(item_bytes=config.head_dim, data_width=self._data_width)
        m.submodules.o = o = WriteDMA(data_width=self._data_width, addr_width=ADDRESS_BITS)
        k, v = (
            [ItemReader(item_bytes=slice_bytes, data_width=self._data_width) for _ in range(slices)]
            for _ in range(2)
        )
        for n in range(slices):
            m.submodules[f"k{n}"] = k[n]
            m.submodules[f"v{n}"] = v[n]
            axi.connect(m, read=k[n].axi, port=getattr(self, f"gmem{1 + n}"))
            axi.connect(m, read=v[n].axi, port=getattr(self, f"gmem{1 + slices + n}"))
        axi.connect(m, read=q.axi, write=o.axi, port=self.gmem0)

        # Every pass goes to all queues at once.
        queues = [self._command_queue(m)]
        row_bytes = current.rows * config.head_dim
        head_bytes = job.keys * slice_bytes
        moves: list[tuple[str, Any, Any, Any]] = [
            ("q", q, job.q + current.query_offset, row_bytes),
            ("o", o, job.o + (current.query_offset << 1), row_bytes << 1),
        ]
        for n in range(slices):
            moves += [
                (f"k{n}", k[n], job.k[n] + current.slice_offset, head_bytes),
                (f"v{n}", v[n], job.v[n] + current.slice_offset, head_bytes),
            ]
        for name, mover, address, length in moves:
            m.submodules[f"{name}_commands"] = queue = Fifo(command_layout(ADDRESS_BITS), depth=PASSES_AHEAD)
            m.d.comb += [queue.i.payload.address.eq(address), queue.i.payload.length.eq(length)]
            connect(m, queue.o, mover.command)
            queues.append(queue)
        accept = sequencer.o.valid & sequencer.o.ready
        m.d.comb += [
            sequencer.o.ready.eq(Cat(*(queue.i.ready for queue in queues)).all()),
            *(queue.i.valid.eq(accept) for queue in queues),
        ]

        m.d.comb += [
            self.o_query.payload.eq(q.o.payload),
            self.o_query.valid.eq(q.o.valid),
            q.o.ready.eq(self.o_query.ready),
            o.i.payload.data.eq(self.i.payload.data),
            o.i.valid.eq(self.i.valid),
            self.i.ready.eq(o.i.ready),
        ]
        self._join(m, "keys", k, self.o_key)
        self._join(m, "values", v, self.o_value)
        self._finish(m, sequencer, accept, o)
        m.d.sync += [
            self.moved.gmem0_write_bytes.eq(o.bytes_useful),
            *(
                self.moved[f"gmem{n}_read_bytes"].eq(reader.bytes_useful)
                for n, reader in enumerate((q, *k, *v))
            ),
        ]
        return m

    def _command_queue(self, m: Module) -> Fifo:
        """Make the queue of the core's commands: the number of rows is all that changes within a job."""
        m.submodules.core_commands = queue = Fifo(range(self._config.rows + 1), depth=PASSES_AHEAD)
        command, job = self.o_command, self.job
        m.d.comb += [
            queue.i.payload.eq(m.submodules.sequencer.o.payload.rows),
            command.valid.eq(queue.o.valid),
            queue.o.ready.eq(command.ready),
            command.payload.rows.eq(queue.o.payload),
            command.payload.keys.eq(job.keys),
            command.payload.score_multiplier.eq(job.score_multiplier),
            command.payload.score_shift.eq(job.score_shift),
            command.payload.output_fraction.eq(job.output_fraction),
        ]
        return queue

    def _join(self, m: Module, name: str, readers: list[ItemReader], target: Any) -> None:
        """Make whole rows of the slices, and keep the core's ready off the DMAs' paths."""
        m.submodules[name] = skid = Skid(target.payload.shape())
        all_valid = Cat(*(reader.o.valid for reader in readers)).all()
        m.d.comb += [
            skid.i.payload.as_value().eq(Cat(*(reader.o.payload for reader in readers))),
            skid.i.valid.eq(all_valid),
            *(reader.o.ready.eq(all_valid & skid.i.ready) for reader in readers),
        ]
        connect(m, skid.o, flipped(target))

    def _finish(self, m: Module, sequencer: PassSequencer, accept: Any, writer: WriteDMA) -> None:
        """Count passes whose results are not in memory yet."""
        running = Signal()
        unwritten = Signal(16)  # far more passes than all queues hold
        written = writer.done.valid & writer.done.ready
        m.d.comb += [
            writer.done.ready.eq(1),
            self.done.eq(running & ~sequencer.busy & (unwritten == 0)),
        ]
        m.d.sync += unwritten.eq(unwritten + accept - written)
        with m.If(self.start):
            m.d.sync += running.eq(1)
        with m.Elif(self.done):
            m.d.sync += running.eq(0)
