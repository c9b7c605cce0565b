"""Where an operator meets the scheduler: what it is told, how it reaches its operands, how it says done."""

from __future__ import annotations

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.gate import ReadGate, WriteGate, fetch_layout, fill_layout
from hw.scheduler.core.layouts import command_layout, operand_layout
from hw.scheduler.core.ring import RingReader, RingWriter
from hw.scheduler.core.scratchpad import ScratchpadReadPort, write_layout


class OperatorSignature(wiring.Signature):
    """An operator, seen from the operator: the same for a traffic engine and for a compute engine.

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
                #: One at the start of each step the operator takes part in, when all its whole operands are
                #: in place. It may write its whole results from then on.
                "command": In(stream.Signature(command_layout(config))),
                #: ``inputs``, ``outputs``: its operands in order, ``command.inputs`` and ``command.outputs``
                #: of them a step; ``tag`` is the `Via`.  They may be offered before the command; words must
                #: not be touched before it.
                "inputs": In(operand),
                "outputs": In(operand),
                #: Of a ring, by the code of its `Via`, the first read of a word acquires it, and waits for
                #: it; the last read of the oldest word releases it: its place may be filled anew.
                "read": Out(stream.Signature(fetch_layout(config, 2))),
                "response": In(stream.Signature(config.word_bits)),  #: One for each read, in order.
                #: The tag of a place is its `Via`.  A write into a ring is its next word and waits for room.
                "write": Out(stream.Signature(fill_layout(config, 2))),
                #: One-cycle pulse: the last write's transfer was in an earlier cycle, and no read is under
                #: way.
                "done": Out(1),
                "busy": Out(1),  #: Work is done in this cycle; counts as busy.
            }
        )


class OperatorPort(wiring.Component):
    """Lets an operator's reads and writes through to the scratchpad when its rings allow."""

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        super().__init__(
            {
                #: ``i_read``, ``i_write``, ``i_done``, ``o_response``: to and from the operator's ``read``,
                #: ``write``, ``done`` and ``response``.
                "i_read": In(stream.Signature(fetch_layout(config, 2))),
                "i_write": In(stream.Signature(fill_layout(config, 2))),
                "i_done": In(1),
                "o_response": Out(stream.Signature(config.word_bits)),
                "done": Out(1),  #: One-cycle pulse: the operator is done, and its last word is granted.
                "read": Out(ScratchpadReadPort(config)),
                "write": Out(stream.Signature(write_layout(config))),  #: To the scratchpad.
                "inputs": Out(RingReader()).array(2),
                #: The rings of operands that come by way of memory, and of those shared with the neighbouring
                #: core.
                "outputs": Out(RingWriter(config.size_bits)).array(2),
                "moved": Out(1),  #: A word is granted, in either direction.
                "starved": Out(1),  #: A word waits for its ring.
                #: A word that its ring allows waits for a bank, or for room for the answer.
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """A gate each way; done waits for the last word."""
        m = Module()
        m.submodules.reads = reads = ReadGate(self._config, rings=2)
        m.submodules.writes = writes = WriteGate(self._config, rings=2)
        connect(m, reads.request, flipped(self.read.request))
        connect(m, writes.write, flipped(self.write))
        connect(m, flipped(self.read.response), flipped(self.o_response))
        for index in range(2):
            connect(m, reads.rings[index], flipped(self.inputs[index]))
            connect(m, writes.rings[index], flipped(self.outputs[index]))
        connect(m, flipped(self.i_read), reads.i)
        connect(m, flipped(self.i_write), writes.i)
        ended = Signal()
        m.d.comb += [
            self.done.eq((self.i_done | ended) & writes.empty),
            self.moved.eq(reads.granted | writes.granted),
            self.starved.eq(reads.starved | writes.starved),
            self.blocked.eq(
                (self.read.request.valid & ~reads.granted) | (self.write.valid & ~writes.granted)
            ),
        ]
        m.d.sync += ended.eq((self.i_done | ended) & ~self.done)
        return m
