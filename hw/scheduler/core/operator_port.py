"""Where an operator meets the scheduler: what it is told, how it reaches its operands, how it says done."""

from __future__ import annotations

from amaranth.hdl import Module
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import Path, command_layout, operand_layout
from hw.scheduler.core.ring import RingReader, RingWriter
from hw.scheduler.core.scratchpad import ReadPort, write_layout


def read_layout(config: SchedulerConfig) -> data.StructLayout:
    """Give an operator's request for a word.

    Members
    -------
    address
        In the scratchpad.
    path
        How the operand comes (`Path`).
    acquire
        Of a ring: the first read of its next word.  The request waits until that word is there.
    release
        Of a ring: the last read of its oldest word, whose place may be filled anew.
    """
    return data.StructLayout({"address": config.address_bits, "path": Path, "acquire": 1, "release": 1})


def result_layout(config: SchedulerConfig) -> data.StructLayout:
    """Give an operator's write of a word: ``address``, ``data``, ``path`` and, of a ring, its size.

    A write into a ring is the next word of it, and waits until there is room.
    """
    return data.StructLayout(
        {
            "address": config.address_bits,
            "data": config.word_bits,
            "path": Path,
            "ring": config.size_bits,
        }
    )


class OperatorSignature(wiring.Signature):
    """An operator, seen from the operator: the same for a traffic engine and for a compute engine.

    Members
    -------
    command : In(stream of command_layout)
        One at the start of each step the operator takes part in, when all its whole operands are in place.
        It may write its whole results from then on.
    inputs, outputs : In(stream of operand_layout)
        Its operands in order, ``command.inputs`` and ``command.outputs`` of them a step; ``tag`` is the
        `Path`.  They may be offered before the command; words must not be touched before it.
    read : Out(stream of read_layout)
    response : In(stream of a word)
        One for each read, in order.
    write : Out(stream of result_layout)
    done : Out(1)
        One-cycle pulse: the last write's transfer was in an earlier cycle, and no read is under way.
    busy : Out(1)
        Work is done in this cycle; counts as busy.

    Behaviour
    ---------
    Whole operands may be read in any order and any number of times.  The words of a ring are acquired in
    order and released in order; between the two they can be read again at their address.  Operands that come
    by way of memory must be consumed in the order in which they are listed, and made in that order.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        operand = stream.Signature(operand_layout(config))
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(config))),
                "inputs": In(operand),
                "outputs": In(operand),
                "read": Out(stream.Signature(read_layout(config))),
                "response": In(stream.Signature(config.word_bits)),
                "write": Out(stream.Signature(result_layout(config))),
                "done": Out(1),
                "busy": Out(1),
            }
        )


class OperatorPort(wiring.Component):
    """Lets an operator's reads and writes through to the scratchpad when its rings allow.

    Parameters
    ----------
    config
        Widths.

    Members
    -------
    i_read, i_write, o_response
        To and from the operator's ``read``, ``write`` and ``response``.
    read : Out(ReadPort)
    write : Out(stream of write_layout)
        To the scratchpad.
    memory_in, fifo_in : Out(RingReader)
        Rings that the read engine and the core before fill.
    memory_out, fifo_out : Out(RingWriter)
        Rings that the write engine and the next core empty.
    moved : Out(1)
        A word is granted, in either direction.
    starved : Out(1)
        A request waits for its ring.
    blocked : Out(1)
        A request that its ring allows waits for a bank, or for room for the answer.

    Behaviour
    ---------
    Combinational: the handshakes are the scratchpad's.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        super().__init__(
            {
                "i_read": In(stream.Signature(read_layout(config))),
                "i_write": In(stream.Signature(result_layout(config))),
                "o_response": Out(stream.Signature(config.word_bits)),
                "read": Out(ReadPort(config)),
                "write": Out(stream.Signature(write_layout(config))),
                "memory_in": Out(RingReader()),
                "fifo_in": Out(RingReader()),
                "memory_out": Out(RingWriter(config.size_bits)),
                "fifo_out": Out(RingWriter(config.size_bits)),
                "moved": Out(1),
                "starved": Out(1),
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        want, result = self.i_read.payload, self.i_write.payload
        readable = ~want.acquire
        writable = result.path == Path.WHOLE
        read, written = self.read.request.valid & self.read.request.ready, self.write.valid & self.write.ready
        for path, source, target in (
            (Path.MEMORY, self.memory_in, self.memory_out),
            (Path.FIFO, self.fifo_in, self.fifo_out),
        ):
            mine, yours = want.path == path, result.path == path
            readable |= mine & source.available
            writable |= yours & (target.level < result.ring)
            m.d.comb += [
                source.acquired.eq(read & mine & want.acquire),
                source.released.eq(read & mine & want.release),
                target.written.eq(written & yours),
            ]
        m.d.comb += [
            self.read.request.payload.eq(want.address),
            self.read.request.valid.eq(self.i_read.valid & readable),
            self.i_read.ready.eq(read),
            self.write.payload.address.eq(result.address),
            self.write.payload.data.eq(result.data),
            self.write.valid.eq(self.i_write.valid & writable),
            self.i_write.ready.eq(written),
            self.moved.eq(read | written),
            self.starved.eq((self.i_read.valid & ~readable) | (self.i_write.valid & ~writable)),
            self.blocked.eq(
                (self.read.request.valid & ~self.read.request.ready) | (self.write.valid & ~self.write.ready)
            ),
        ]
        connect(m, flipped(self.read.response), flipped(self.o_response))
        return m
