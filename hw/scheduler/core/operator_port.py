"""The interface between an operator and the scheduler: commands, reads and writes of operands, done."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.gate import ReadGate, WriteGate, fetch_layout, fill_layout
from hw.scheduler.core.layouts import command_layout, operand_layout
from hw.scheduler.core.ring import RingReader, RingWriter
from hw.scheduler.core.scratchpad import ScratchpadReadPort, write_layout


class OperatorSignature(wiring.Signature):
    """The port, seen from the operator: the same for a traffic engine and for a compute engine.

    Behaviour
    ---------
    Whole operands may be read in any order and any number of times.  The words of a ring are acquired in
    order and released in order; between the two they can be read again at their address.  Operands that
    stream from memory must be consumed in the listed order; results that stream to memory must be produced in
    it.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        operand = stream.Signature(operand_layout(config))
        super().__init__(
            {
                #: One for each step in which the operator is active, when all its whole operands are in the
                #: scratchpad.  From then on it may write its whole results.
                "command": In(stream.Signature(command_layout(config))),
                #: ``inputs``, ``outputs``: its operands in order, ``command.inputs`` and ``command.outputs``
                #: of them a step; ``tag`` is the `Via`.  They may arrive before the command, but their words
                #: must not be accessed before it.
                "inputs": In(operand),
                "outputs": In(operand),
                #: For a ring (the bit of its `Via`), the first read of a word acquires it, and waits until it
                #: is written.  The last read of the oldest word releases it, so it may be overwritten.
                "read": Out(stream.Signature(fetch_layout(config, 2))),
                "response": In(stream.Signature(config.word_bits)),  #: One for each read, in order.
                #: The tag of a place is its `Via`.  A write into a ring is its next word, and waits for room.
                "write": Out(stream.Signature(fill_layout(config, 2))),
                #: One-cycle pulse, after the last write was accepted and the last response received.
                "done": Out(1),
                "busy": Out(1),  #: The operator works in this cycle; it counts as busy.
            }
        )


class OperatorPort(wiring.Component):
    """Connects an operator to the scratchpad and to its rings."""

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
                #: ``inputs``, ``outputs``: the ring of operands streamed from or to memory, and the ring
                #: shared with the neighbouring core.
                "inputs": Out(RingReader()).array(2),
                "outputs": Out(RingWriter(config.size_bits)).array(2),
                "moved": Out(1),  #: A word is granted, in either direction.
                "starved": Out(1),  #: A word waits for its ring.
                #: A word that passed its ring waits for its bank, or for room in the response FIFO.
                "blocked": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """One gate a direction; done waits for the grant of the last word."""
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
