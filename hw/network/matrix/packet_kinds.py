"""The kinds of packets of each command, ahead of the array."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.network.matrix.feed_command import TABLE_ENTRIES
from hw.network.matrix.layouts import Packet

#: Bits of a count of column tiles over all blocks.
GROUPS_BITS = 24


class PacketRun(data.StructLayout):
    """The packets of a command: ``groups`` times ``k_tiles``, of which the first of each has parameters."""

    def __init__(self) -> None:
        super().__init__({"groups": GROUPS_BITS, "k_tiles": range(TABLE_ENTRIES + 1)})


class PacketKinds(wiring.Component):
    """Says of each packet whether it has parameters.

    Behaviour
    ---------
    A packet a cycle, and a cycle between commands.
    """

    def __init__(self) -> None:
        super().__init__({"i": In(stream.Signature(PacketRun())), "o": Out(stream.Signature(Packet()))})

    def elaborate(self, platform: Any) -> Module:
        """Two nested counters."""
        m = Module()
        now = Signal(PacketRun())
        active = Signal()
        first = Signal()
        last = Signal()
        last_group = Signal()
        left = Signal.like(now.k_tiles)
        groups_left = Signal.like(now.groups)
        m.d.comb += [
            self.i.ready.eq(~active),
            self.o.valid.eq(active),
            self.o.payload.parameters.eq(first),
        ]

        def begin(tiles: Any) -> list[Any]:
            return [first.eq(1), left.eq(tiles - 1), last.eq(tiles == 1)]

        with m.If(active & self.o.ready):
            m.d.sync += [first.eq(0), left.eq(left - 1), last.eq(left == 1)]
            with m.If(last):
                m.d.sync += [
                    *begin(now.k_tiles),
                    groups_left.eq(groups_left - 1),
                    last_group.eq(groups_left == 1),
                ]
                with m.If(last_group):
                    m.d.sync += active.eq(0)
        with m.If(self.i.valid & self.i.ready):
            given = self.i.payload
            m.d.sync += [
                now.eq(given),
                active.eq(1),
                *begin(given.k_tiles),
                groups_left.eq(given.groups - 1),
                last_group.eq(given.groups == 1),
            ]
        return m
