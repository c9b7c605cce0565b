"""The traffic engine: an operator that moves what a real one would, and whose results can be checked."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.operator_port import OperatorSignature
from hw.scheduler.core.walker import Walker
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
    One word in and one word out a cycle.  Output word ``j`` of ``O`` leaves when ``ceil((j + 1) * I / O)`` of
    the ``I`` input words have come; the inputs wait for it, so that its digest is of exactly these.  Done
    when the last word is written and ``compute_cycles`` are over.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self._config = config
        super().__init__(OperatorSignature(config))

    def elaborate(self, platform: Any) -> Module:
        """Walker -> read -> located word -> digest -> mixed word, at the other walker's place -> write."""
        m = Module()
        config = self._config
        command = self.command.payload
        begin, running = Signal(), Signal()
        left, some_left = Signal(config.size_bits), Signal()  # words still to be made
        cycles, computing = Signal(CYCLES_BITS), Signal()  # of the least, from this one on
        m.d.comb += [
            self.command.ready.eq(~running),
            begin.eq(self.command.valid & self.command.ready),
            self.done.eq(running & ~some_left & ~self.write.valid & ~computing),
        ]
        with m.If(begin):
            # `done` is up in the last one.
            m.d.sync += [
                running.eq(1),
                cycles.eq(command.compute_cycles),
                computing.eq(command.compute_cycles > 1),
            ]
        with m.Elif(computing):
            m.d.sync += [cycles.eq(cycles - 1), computing.eq(cycles != 2)]
        with m.If(self.done):
            m.d.sync += running.eq(0)

        m.submodules.sources = sources = Walker(config, Via)
        m.submodules.targets = targets = Walker(config, Via)
        self._feed(m, sources, self.inputs, begin, command.inputs)
        self._feed(m, targets, self.outputs, begin, command.outputs)
        source, target = sources.o.payload, targets.o.payload
        m.d.comb += [
            self.read.payload.address.eq(source.address),
            self.read.payload.acquire.eq(source.tag),
            self.read.payload.release.eq(source.tag),
            self.read.valid.eq(sources.o.valid),
            sources.o.ready.eq(self.read.ready),
        ]

        # A word is told its position one register before the digest.
        word = Signal(config.word_bits)
        arrived, take, give = Signal(), Signal(), Signal()
        position = Signal(LANE_BITS)
        m.d.comb += self.response.ready.eq(~arrived | take)
        with m.If(self.response.ready):
            m.d.sync += [arrived.eq(self.response.valid), word.eq(located(self.response.payload, position))]
        with m.If(begin):
            m.d.sync += position.eq(POSITION_STEP)
        with m.Elif(self.response.valid & self.response.ready):
            m.d.sync += position.eq(position + POSITION_STEP)

        # I words in are spread over O words out as a line is drawn: `lead` is in * O - (out + 1) * I, and a
        # word is owed while it is not negative.
        total_in, total_out = Signal(config.size_bits), Signal(config.size_bits)
        lead = Signal(signed(config.size_bits + 2))
        difference = Signal(signed(config.size_bits + 1))  # of O and I
        taken, given, both = (Signal.like(lead, name=name) for name in ("taken", "given", "both"))
        owed = lead >= 0
        free = ~self.write.valid | self.write.ready
        m.d.comb += [
            taken.eq(lead + total_out),
            given.eq(lead - total_in),
            both.eq(lead + difference),
            give.eq(owed & some_left & targets.o.valid & free),
            take.eq(arrived & (~owed | (give & (given < 0)))),
            targets.o.ready.eq(give),
            self.busy.eq(take | give | computing),
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

        # Digest, and what makes equal digests different words.
        digest = Signal(config.word_bits)
        head, key = Signal(LANE_BITS), Signal(LANE_BITS)
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
        return m

    @staticmethod
    def _feed(m: Module, walker: Walker, operands: Any, begin: Signal, count: Any) -> None:
        """Return a walker the operands of the step, and none of the next before its command."""
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
