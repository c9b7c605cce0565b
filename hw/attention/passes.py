"""The walk over heads and query tiles."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.attention.config import AttentionConfig
from hw.attention.job import ADDRESS_BITS, COUNT_BITS, Job, Pass


class PassSequencer(wiring.Component):
    """Lists the passes of a job: heads in order, and query tiles in order within a head.

    Parameters
    ----------
    config
        Shape of the engine.

    Members
    -------
    start : In(1)
        One-cycle pulse; not while ``busy``.
    job : In(Job)
        Constant from ``start`` until ``busy`` falls.
    o : Out(stream of Pass)
    busy : Out(1)
        Passes are left; from the cycle after ``start``. Never rises for a job without queries, keys or heads.

    Behaviour
    ---------
    A pass a cycle.  Queries of consecutive passes follow each other in memory, also across heads, so that
    every address is the one before plus a constant.
    """

    def __init__(self, config: AttentionConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),
                "job": In(Job(config)),
                "o": Out(stream.Signature(Pass(config))),
                "busy": Out(1),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count down what is left of the head, of the group and of the job."""
        m = Module()
        config, job, current = self._config, self.job, self.o.payload
        queries_left = Signal(COUNT_BITS)  # of this head, this tile's included
        heads_left = Signal(COUNT_BITS)  # after this one
        group_left = Signal(COUNT_BITS)  # heads with the same keys, after this one
        slice_bytes = config.head_dim // config.ports_per_stream
        ends_head = queries_left <= config.rows
        ends_group = group_left == 0
        m.d.comb += [
            self.o.valid.eq(self.busy),
            current.rows.eq(Mux(ends_head, queries_left, config.rows)),
        ]
        with m.If(self.start):
            m.d.sync += [
                self.busy.eq((job.queries != 0) & (job.keys != 0) & (job.heads != 0)),
                queries_left.eq(job.queries),
                heads_left.eq(job.heads - 1),
                group_left.eq(job.kv_group - 1),
                current.query_offset.eq(0),
                current.slice_offset.eq(0),
            ]
        with m.Elif(self.o.ready):
            m.d.sync += [
                queries_left.eq(queries_left - config.rows),
                current.query_offset.eq(current.query_offset + current.rows * config.head_dim),
            ]
            with m.If(ends_head):
                m.d.sync += [
                    self.busy.eq(self.busy & (heads_left != 0)),
                    queries_left.eq(job.queries),
                    heads_left.eq(heads_left - 1),
                    group_left.eq(Mux(ends_group, job.kv_group - 1, group_left - 1)),
                ]
                with m.If(ends_group):
                    following = current.slice_offset + job.keys * slice_bytes
                    m.d.sync += current.slice_offset.eq(following[:ADDRESS_BITS])
        return m
