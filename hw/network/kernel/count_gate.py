"""A gate for rows of a program's tables: each waits until counts have reached its own."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out


class CountGate(wiring.Component):
    """Holds a row until each count is at least the row's need of it.

    ``needs``: layout of the counts. ``item``: layout of a row's other fields.

    Behaviour
    ---------
    Counts only grow while rows are there.  A row is offered a cycle after it came, if its counts were reached
    then, and else a cycle after they are.  A row a cycle passes.
    """

    #: From a row to its offer, and from a count to it.
    LATENCY = 1

    def __init__(self, needs: data.StructLayout, item: data.StructLayout) -> None:
        self._needs, self._item = needs, item
        super().__init__(
            {
                "i": In(stream.Signature(data.StructLayout({"needs": needs, "item": item}))),
                "counts": In(needs),
                "o": Out(stream.Signature(item)),
                "waits": Out(1),  #: A row is held.
                #: Of each count, in the order of the layout: the held row's need is reached.
                "reached": Out(data.StructLayout(dict.fromkeys(needs.members, 1))),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        row = Signal(self._item, reset_less=True)
        needs = Signal(self._needs, reset_less=True)
        moves = Signal()
        m.d.comb += [
            Value.cast(self.o.payload).eq(Value.cast(row)),
            self.o.valid.eq(self.waits & Value.cast(self.reached).all()),
            moves.eq(~self.waits | (self.o.valid & self.o.ready)),
            self.i.ready.eq(moves),
        ]
        for name in self._needs.members:
            arriving = self._reach(self.counts[name], self.i.payload.needs[name])
            held = self._reach(self.counts[name], needs[name])
            m.d.sync += self.reached[name].eq(Mux(moves, arriving, self.reached[name] | held))
        with m.If(moves):
            m.d.sync += [
                self.waits.eq(self.i.valid),
                Value.cast(row).eq(Value.cast(self.i.payload.item)),
                Value.cast(needs).eq(Value.cast(self.i.payload.needs)),
            ]
        return m

    @staticmethod
    def _reach(counts: Any, needs: Any) -> Value:
        """Tell whether a count, or each of several, has reached its need."""
        if isinstance(counts, data.View):
            return Cat(count >= need for count, need in zip(counts, needs, strict=True)).all()
        return Value.cast(counts >= needs)
