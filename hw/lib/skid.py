"""The two-entry skid buffer: no combinational path through a stream."""

from typing import ClassVar

from amaranth.hdl import Module, Shape, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.loads import LOADS, copies


class Skid(wiring.Component):
    """A register stage with both directions registered.

    Behaviour
    ---------
    Latency 1 cycle, one item a cycle, capacity 2.  ``o.valid``, ``o.payload`` and ``i.ready`` are flip-flops.

    Why
    ---
    With one entry, full rate needs ``o.ready`` on ``i.ready`` in the same cycle.  The spare entry takes the
    item that arrives in the first cycle of a stall.

    Example
    -------
    >>> skid = Skid(range(10))
    >>> skid.o.payload.shape()
    unsigned(4)
    """

    #: Cycles from ``i`` to ``o``, and items held.
    LATENCY: ClassVar = 1
    CAPACITY: ClassVar = 2

    def __init__(self, shape: ShapeLike) -> None:
        self._shape = shape
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        width = Shape.cast(self._shape).width
        payload = Value.cast(self.i.payload)
        # Data behind `valid` needs no reset, whose net would reach every bit.
        held, spare = (Signal(width, name=name, reset_less=True) for name in ("held", "spare"))
        frees = copies(Signal(init=1, name="spare_free"), max(1, -(-width // LOADS)))
        spare_free = frees[0]
        m.d.comb += [self.i.ready.eq(spare_free), Value.cast(self.o.payload).eq(held)]

        with m.If(~self.o.valid | self.o.ready):
            m.d.sync += [
                self.o.valid.eq(self.i.valid | ~spare_free),
                held.eq(payload),
                *(free.eq(1) for free in frees),
            ]
            for n, free in enumerate(frees):
                with m.If(~free):
                    m.d.sync += held.word_select(n, LOADS).eq(spare.word_select(n, LOADS))
        with m.Elif(self.i.valid & spare_free):
            m.d.sync += [free.eq(0) for free in frees]
        for n, free in enumerate(frees):
            with m.If(free):
                m.d.sync += spare.word_select(n, LOADS).eq(payload.word_select(n, LOADS))
        return m
