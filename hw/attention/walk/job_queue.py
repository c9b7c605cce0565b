"""The jobs of a launch: the first from registers, the others from descriptors fetched ahead."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.attention.walk.descriptor import DESCRIPTOR_BYTES, USED_BYTES, descriptor_fields, job_fields
from hw.attention.walk.job import ADDRESS_BITS, COUNT_BITS, Job
from hw.lib.fifo import Fifo

#: Descriptors that may be asked for ahead of their use: jobs may be shorter than memory's latency.
JOBS_AHEAD = 4


class JobQueue(wiring.Component):
    """Gives the jobs of a launch one after another.

    Parameters
    ----------
    config
        Shape of the engine.
    data_width
        Bits of a word of descriptors: a power of two from 128 to 1024.

    Members
    -------
    start : In(1)
        One-cycle pulse; not while ``busy``.
    first : In(Job)
        The first job; constant from ``start`` until ``busy`` falls.
    address : In(64), count : In(32)
        Descriptors of the jobs that follow, and their number.
    fetch : Out(stream of 64 bits)
        Addresses from which `USED_BYTES` are to be read.
    words : In(stream of data_width bits)
        What was read there, in order.  Always ready for all that was asked for.
    o : Out(stream of Job)
    busy : Out(1)
        Jobs are left; from the cycle after ``start``.

    Behaviour
    ---------
    The first job is offered in the cycle of ``start``.  Another one is offered as soon as its descriptor has
    come, in the cycle after the one before was taken at the earliest.

    Why
    ---
    Words wait in the queue and are joined to a descriptor when they are needed: `JOBS_AHEAD` descriptors in
    a narrow RAM instead of as many wide registers.
    """

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        super().__init__(
            {
                "start": In(1),
                "first": In(Job(config)),
                "address": In(ADDRESS_BITS),
                "count": In(COUNT_BITS),
                "fetch": Out(stream.Signature(ADDRESS_BITS)),
                "words": In(stream.Signature(data_width)),
                "o": Out(stream.Signature(Job(config))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        words = 8 * USED_BYTES // self._data_width
        m.submodules.queue = queue = Fifo(self._data_width, depth=JOBS_AHEAD * words)
        m.d.comb += [
            queue.i.payload.eq(self.words.payload),
            queue.i.valid.eq(self.words.valid),
            self.words.ready.eq(queue.i.ready),
        ]

        # Words become a descriptor, shifted in from above.
        raw = Signal(8 * USED_BYTES, reset_less=True)
        complete = Signal()
        place = Signal(range(words))
        push, taken = Signal(), Signal()
        m.d.comb += [queue.o.ready.eq(~complete | taken), push.eq(queue.o.valid & queue.o.ready)]
        with m.If(taken):
            m.d.sync += complete.eq(0)
        with m.If(push):
            m.d.sync += raw.eq(Cat(raw, queue.o.payload)[self._data_width :])
            m.d.sync += place.eq(Mux(place == words - 1, 0, place + 1))
            with m.If(place == words - 1):
                m.d.sync += complete.eq(1)

        # Addresses, as long as the queue has room for what comes.
        unasked = Signal(COUNT_BITS)
        ahead = Signal(range(JOBS_AHEAD + 1))
        asked = self.fetch.valid & self.fetch.ready
        m.d.comb += self.fetch.valid.eq((unasked != 0) & (ahead != JOBS_AHEAD))
        with m.If(asked):
            m.d.sync += [
                unasked.eq(unasked - 1),
                self.fetch.payload.eq(self.fetch.payload + DESCRIPTOR_BYTES),
            ]
        joined = push & (place == words - 1)
        m.d.sync += ahead.eq(ahead + asked - joined)

        # Jobs.
        from_registers, left = Signal(), Signal(COUNT_BITS)
        described = Signal(Job(self._config))
        first = self.start | from_registers
        out = self.o.valid & self.o.ready
        m.d.comb += [
            *job_fields(self._config, described, descriptor_fields(raw)),
            self.o.payload.as_value().eq(Mux(first, self.first.as_value(), described.as_value())),
            self.o.valid.eq(first | complete),
            taken.eq(out & ~first),
            self.busy.eq(from_registers | (left != 0)),
        ]
        with m.If(self.start):
            m.d.sync += [
                from_registers.eq(~self.o.ready),
                left.eq(self.count),
                unasked.eq(self.count),
                self.fetch.payload.eq(self.address),
            ]
        with m.Elif(out):
            m.d.sync += [from_registers.eq(0), left.eq(left - ~first)]
        return m
