"""The front of both transfer engines: each transfer is issued when its counts are reached."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Member, Out, connect, flipped

from hw.network.config import NetworkConfig
from hw.network.kernel.count_gate import CountGate
from hw.network.kernel.gather_issue import GatherIssue
from hw.network.kernel.sequencing import issue_config
from hw.network.program.records import transfer_bits
from hw.scheduler.core.layouts import MEMORY_ADDRESS_BITS
from hw.scheduler.core.transfer_engine import TransferIssue


def start_members(config: NetworkConfig, layout: data.StructLayout) -> dict[str, Member]:
    """Return the ports of an engine that `gated_issue` uses; ``layout``: of a transfer."""
    return {
        "start": In(1),  #: Resets ``completed``.
        "i": In(stream.Signature(layout)),  #: The transfers, in order.
        "base": In(MEMORY_ADDRESS_BITS),
        "counts": In(layout["needs"].shape),  #: Commands finished, and transfers of the other direction.
        "completed": Out(transfer_bits(config)),  #: Transfers, since ``start``.
    }


def gated_issue(
    m: Module, config: NetworkConfig, engine: Any, *, gather: GatherIssue | None = None
) -> TransferIssue:
    """Add the gate and the issue of an engine with the ports of `start_members`.

    ``gather``: cuts transfers into parts between the two.
    """
    layout = engine.i.payload.shape()
    needs, item = layout["needs"].shape, layout["item"].shape
    assert isinstance(needs, data.StructLayout)
    assert isinstance(item, data.StructLayout)
    m.submodules.gate = gate = CountGate(needs, item)
    m.submodules.issue = issue = TransferIssue(issue_config(config))
    connect(m, flipped(engine.i), gate.i)
    parts = gate.o
    if gather is not None:
        connect(m, gate.o, gather.i)
        parts = gather.o
    m.d.comb += [
        gate.counts.eq(engine.counts),
        issue.i.valid.eq(parts.valid),
        parts.ready.eq(issue.i.ready),
        *(issue.i.payload[name].eq(parts.payload[name]) for name in ("dram", "address", "words")),
        issue.base.eq(engine.base),
        # The gate has opened: step 0 has begun, and is computed.
        issue.begun.eq(1),
        issue.computed.eq(1),
    ]
    return issue
