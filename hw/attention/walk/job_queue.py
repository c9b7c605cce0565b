"""The jobs of a launch: the first from registers, the others from prefetched descriptors."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.attention.config import AttentionConfig
from hw.attention.walk.descriptor import DESCRIPTOR_BYTES, USED_BYTES, descriptor_fields, job_fields
from hw.attention.walk.job import ADDRESS_BITS, COUNT_BITS, Job
from hw.lib.descriptors.queue import DescriptorQueue

#: Descriptors that are prefetched: jobs may be shorter than memory's latency.
JOBS_AHEAD = 4


class JobQueue(wiring.Component):
    """Lists the jobs of a launch.

    ``data_width``: bits of a word of descriptors: a power of two from 128 to 1024.

    Behaviour
    ---------
    The first job is offered in the cycle of ``start``.  Each further one is offered when its descriptor has
    arrived, at the earliest in the cycle after the one before was taken.
    """

    def __init__(self, config: AttentionConfig, *, data_width: int) -> None:
        self._config = config
        self._data_width = data_width
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse; not while ``busy``.
                "first": In(Job(config)),  #: The first job; constant from ``start`` until ``busy`` falls.
                #: ``address``, ``count``: of the descriptors of the further jobs.
                "address": In(ADDRESS_BITS),
                "count": In(COUNT_BITS),
                #: Addresses of `USED_BYTES` each that are to be read.
                "fetch": Out(stream.Signature(ADDRESS_BITS)),
                #: The data of these reads, in order.  Always ready for all requested words.
                "words": In(stream.Signature(data_width)),
                "o": Out(stream.Signature(Job(config))),
                "busy": Out(1),  #: Jobs are pending; from the cycle after ``start``.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        m.submodules.queue = queue = DescriptorQueue(
            pitch_bytes=DESCRIPTOR_BYTES,
            used_bytes=USED_BYTES,
            data_width=self._data_width,
            ahead=JOBS_AHEAD,
        )
        connect(m, flipped(self.fetch), queue.fetch)
        connect(m, flipped(self.words), queue.words)
        from_registers = Signal()
        described = Signal(Job(self._config))
        first = self.start | from_registers
        m.d.comb += [
            queue.start.eq(self.start),
            queue.address.eq(self.address),
            queue.count.eq(self.count),
            *job_fields(self._config, described, descriptor_fields(queue.o.payload)),
            self.o.payload.as_value().eq(Mux(first, self.first.as_value(), described.as_value())),
            self.o.valid.eq(first | queue.o.valid),
            queue.o.ready.eq(self.o.ready & ~first),
            self.busy.eq(from_registers | queue.left),
        ]
        with m.If(first):
            m.d.sync += from_registers.eq(~self.o.ready)
        return m
