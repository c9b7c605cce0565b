"""The traffic engine: an operator that moves what a real one would, and whose results can be checked."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import wiring

from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.layouts import Path
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
from hw.scheduler.program.program import COUNT_BITS, CYCLES_BITS, OPERATOR_BITS


class TrafficEngine(wiring.Component):
    """Reads its inputs word by word, writes outputs that depend on every bit of them (`digest`).

    Parameters
    ----------
    config
        Widths.

    Members
    -------
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
        left = Signal(config.size_bits)  # words still to be made
        cycles = Signal(CYCLES_BITS)  # left of the least
        m.d.comb += [
            self.command.ready.eq(~running),
            begin.eq(self.command.valid & self.command.ready),
            self.done.eq(running & (left == 0) & ~self.write.valid & (cycles == 0)),
        ]
        with m.If(begin):
            # One less: `done` is up in the last cycle.
            m.d.sync += [running.eq(1), cycles.eq(command.compute_cycles - (command.compute_cycles != 0))]
        with m.Elif(cycles != 0):
            m.d.sync += cycles.eq(cycles - 1)
        with m.If(self.done):
            m.d.sync += running.eq(0)

        m.submodules.sources = sources = Walker(config, Path)
        m.submodules.targets = targets = Walker(config, Path)
        self._feed(m, sources, self.inputs, begin, command.inputs)
        self._feed(m, targets, self.outputs, begin, command.outputs)
        source, target = sources.o.payload, targets.o.payload
        through = source.tag != Path.WHOLE
        m.d.comb += [
            self.read.payload.address.eq(source.address),
            self.read.payload.path.eq(source.tag),
            self.read.payload.acquire.eq(through),
            self.read.payload.release.eq(through),
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
        owed = lead >= 0
        free = ~self.write.valid | self.write.ready
        m.d.comb += [
            give.eq(owed & (left != 0) & targets.o.valid & free),
            take.eq(arrived & (~owed | (give & (lead < total_in)))),
            targets.o.ready.eq(give),
            self.busy.eq(take | give | (cycles != 0)),
        ]
        with m.If(begin):
            m.d.sync += [
                total_in.eq(command.input_words),
                total_out.eq(command.output_words),
                left.eq(command.output_words),
                lead.eq(-command.input_words),
            ]
        with m.Else():
            m.d.sync += [
                lead.eq(lead + Mux(take, total_out, 0) - Mux(give, total_in, 0)),
                left.eq(left - give),
            ]

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
                self.write.payload.address.eq(target.address),
                self.write.payload.path.eq(target.tag),
                self.write.payload.ring.eq(target.ring),
                self.write.payload.data.eq(output_word(digest, key)),
            ]
        return m

    @staticmethod
    def _feed(m: Module, walker: Walker, operands: Any, begin: Signal, count: Any) -> None:
        """Give a walker the operands of the step, and none of the next before its command."""
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
