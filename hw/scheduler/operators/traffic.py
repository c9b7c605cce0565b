"""The traffic engine: an operator with the traffic of a real one and checkable results."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value, signed
from amaranth.lib import wiring

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.address_generator import AddressGenerator
from hw.scheduler.core.operator_port import OperatorSignature
from hw.scheduler.operators.digest import (
    LANE_BITS,
    OUTPUT_STEP,
    POSITION_STEP,
    first_digest,
    located,
    next_digest,
    output_word,
)
from hw.scheduler.program.program import COUNT_BITS, CYCLES_BITS, OPERATOR_BITS, Via


class TrafficEngine(wiring.Component):
    """Reads its inputs word by word, writes outputs that depend on every bit of them (`digest`).

    See `hw.scheduler.core.operator_port.OperatorSignature`.

    Behaviour
    ---------
    One word in and one word out a cycle.  The digest of output word ``j`` of ``O`` covers exactly the first
    ``ceil((j + 1) * I / O)`` of the ``I`` input words.  Done when the last word is written and
    ``compute_cycles`` have passed.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        super().__init__(OperatorSignature(config))

    def elaborate(self, platform: Any) -> Module:
        """Source places -> read -> located word -> digest -> output word -> write, at the target places."""
        m = Module()
        command = self.command.payload
        arrived = Signal()
        take = Signal()
        give = Signal()
        # words still to be made
        left = Signal(self._config.size_bits)
        some_left = Signal()
        begin, computing = self._run(m, some_left)

        m.submodules.sources = sources = AddressGenerator(self._config, Via)
        m.submodules.targets = targets = AddressGenerator(self._config, Via)
        self._feed(m, sources, self.inputs, begin, command.inputs)
        self._feed(m, targets, self.outputs, begin, command.outputs)
        source = sources.o.payload
        m.d.comb += [
            self.read.payload.address.eq(source.address),
            self.read.payload.acquire.eq(source.tag),
            self.read.payload.release.eq(source.tag),
            self.read.valid.eq(sources.o.valid),
            sources.o.ready.eq(self.read.ready),
        ]
        word = self._locate(m, begin, arrived, take)
        free = ~self.write.valid | self.write.ready
        owed, given = self._spread(m, begin, take, give, left, some_left)
        m.d.comb += [
            give.eq(owed & some_left & targets.o.valid & free),
            take.eq(arrived & (~owed | (give & (given < 0)))),
            targets.o.ready.eq(give),
            self.busy.eq(take | give | computing),
        ]
        self._digest(m, begin, take, give, free, word, targets.o.payload)
        return m

    def _run(self, m: Module, some_left: Signal) -> tuple[Signal, Signal]:
        """Accept a command, count its least cycles, signal done; return ``begin`` and ``computing``."""
        command = self.command.payload
        begin = Signal()
        running = Signal()
        # least cycles left, this one included
        cycles = Signal(CYCLES_BITS)
        computing = Signal()
        m.d.comb += [
            self.command.ready.eq(~running),
            begin.eq(self.command.valid & self.command.ready),
            self.done.eq(running & ~some_left & ~self.write.valid & ~computing),
        ]
        with m.If(begin):
            # `done` is high in the last of them.
            m.d.sync += [
                running.eq(1),
                cycles.eq(command.compute_cycles),
                computing.eq(command.compute_cycles > 1),
            ]
        with m.Elif(computing):
            m.d.sync += [cycles.eq(cycles - 1), computing.eq(cycles != 2)]
        with m.If(self.done):
            m.d.sync += running.eq(0)
        return begin, computing

    def _locate(self, m: Module, begin: Signal, arrived: Signal, take: Signal) -> Signal:
        """Add its position to each word read, one register before the digest; return the register."""
        word = Signal(self._config.word_bits)
        position = Signal(LANE_BITS)
        m.d.comb += self.response.ready.eq(~arrived | take)
        with m.If(self.response.ready):
            m.d.sync += [arrived.eq(self.response.valid), word.eq(located(self.response.payload, position))]
        with m.If(begin):
            m.d.sync += position.eq(POSITION_STEP)
        with m.Elif(self.response.valid & self.response.ready):
            m.d.sync += position.eq(position + POSITION_STEP)
        return word

    def _spread(
        self, m: Module, begin: Signal, take: Signal, give: Signal, left: Signal, some_left: Signal
    ) -> tuple[Value, Signal]:
        """Spread I words in over O words out, as Bresenham draws a line.

        ``lead`` is ``in * O - (out + 1) * I``; an output word is due while it is not negative.  Return
        whether one is due, and the lead after it.
        """
        command, bits = self.command.payload, self._config.size_bits
        total_in = Signal(bits)
        total_out = Signal(bits)
        lead = Signal(signed(bits + 2))
        difference = Signal(signed(bits + 1))  # of O and I
        taken, given, both = (Signal.like(lead, name=name) for name in ("taken", "given", "both"))
        m.d.comb += [
            taken.eq(lead + total_out),
            given.eq(lead - total_in),
            both.eq(lead + difference),
        ]
        with m.If(begin):
            m.d.sync += [
                total_in.eq(command.input_words),
                total_out.eq(command.output_words),
                difference.eq(command.output_words - command.input_words),
                left.eq(command.output_words),
                some_left.eq(1),
                lead.eq(-command.input_words),
            ]
        with m.Else():
            m.d.sync += lead.eq(Mux(take, Mux(give, both, taken), Mux(give, given, lead)))
            with m.If(give):
                m.d.sync += [left.eq(left - 1), some_left.eq(left != 1)]
        return lead >= 0, given

    def _digest(
        self, m: Module, begin: Signal, take: Signal, give: Signal, free: Value, word: Signal, target: Any
    ) -> None:
        """Fold each word taken into the digest, and write an output word in each cycle with ``give``."""
        command, config = self.command.payload, self._config
        digest = Signal(config.word_bits)
        # Keys make output words of equal digests differ.
        head = Signal(LANE_BITS)
        key = Signal(LANE_BITS)
        first_head = command.operator << LANE_BITS - OPERATOR_BITS
        with m.If(begin):
            m.d.sync += [
                digest.eq(first_digest(command.operator, config.word_bits // LANE_BITS)),
                head.eq(first_head),
                key.eq(first_head + OUTPUT_STEP),
            ]
        with m.If(take):
            m.d.sync += digest.eq(next_digest(digest, word))
        with m.If(give):
            m.d.sync += key.eq(key + OUTPUT_STEP)
            with m.If(target.last):
                m.d.sync += [head.eq(head + 1), key.eq(head + (OUTPUT_STEP + 1))]
        with m.If(free):
            m.d.sync += [
                self.write.valid.eq(give),
                self.write.payload.place.eq(target),
                self.write.payload.data.eq(output_word(digest, key)),
            ]

    @staticmethod
    def _feed(m: Module, walker: AddressGenerator, operands: Any, begin: Signal, count: Any) -> None:
        """Feed an address generator the operands of this step only, until the next command."""
        left = Signal(COUNT_BITS)
        m.d.comb += [
            walker.i.payload.eq(operands.payload),
            walker.i.valid.eq(operands.valid & (left != 0)),
            operands.ready.eq(walker.i.ready & (left != 0)),
        ]
        with m.If(begin):
            m.d.sync += left.eq(count)
        with m.Elif(operands.valid & operands.ready):
            m.d.sync += left.eq(left - 1)
