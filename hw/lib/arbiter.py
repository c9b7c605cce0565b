"""Round-robin arbiter: several streams into one."""

from typing import ClassVar

from amaranth.hdl import Cat, Module, Mux, Shape, ShapeLike, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.delay import payload_register


class Arbiter(wiring.Component):
    """Round-robin arbiter of streams.

    ``shape``: shape of the payload; with ``packets``, a `data.StructLayout` with a one-bit field ``last``.
    ``inputs``: number of input streams, at least 1. ``packets``: an input keeps its grant until its item with
    ``last``.

    Behaviour
    ---------
    ``o`` is registered: latency 1 cycle, one item a cycle.  A waiting input is served within ``inputs``
    grants (of items, or of packets); an idle input costs no cycle.  ``i[n].ready`` is up in the cycle of the
    transfer only, and depends on every ``valid`` and on ``o.ready``.

    Why
    ---
    The grant loads a register instead of driving ``o``: a later request cannot replace an offered item, which
    the stream rule forbids.

    Example
    -------
    >>> arbiter = Arbiter(8, inputs=3)
    >>> len(arbiter.i), arbiter.source.shape()
    (3, unsigned(2))
    """

    #: Cycles from an input to ``o``.
    LATENCY: ClassVar = 1

    def __init__(self, shape: ShapeLike, *, inputs: int, packets: bool = False) -> None:
        if not isinstance(inputs, int) or inputs < 1:
            raise InputError("inputs", inputs, "an integer of at least 1")
        if packets and not (isinstance(shape, data.StructLayout) and "last" in shape.members):
            raise InputError("shape", shape, "a StructLayout with a field `last` when packets are kept whole")
        self._shape = shape
        self.inputs = inputs
        self.packets = packets
        super().__init__(
            {
                "i": In(stream.Signature(shape)).array(inputs),
                "o": Out(stream.Signature(shape)),
                "source": Out(range(inputs)),  #: The input of the item on ``o``.
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        requests = Signal(self.inputs)
        #: Inputs behind the one served last, which have priority.
        behind = Signal(self.inputs)
        grant = Signal(self.inputs)
        free = Signal()
        m.d.comb += [
            requests.eq(Cat(port.valid for port in self.i)),
            free.eq(~self.o.valid | self.o.ready),
        ]
        first = requests & behind
        choice = Mux(first.any(), lowest(first), lowest(requests))
        m.d.comb += grant.eq(choice)

        payload = Signal(Shape.cast(self._shape).width)
        source = Signal(range(self.inputs))
        for index, port in enumerate(self.i):
            m.d.comb += port.ready.eq(free & grant[index])
            with m.If(grant[index]):
                m.d.comb += [payload.eq(Value.cast(port.payload)), source.eq(index)]

        if self.packets:
            locked = Signal()
            with m.If(locked):
                m.d.comb += grant.eq(requests & (1 << self.source))
            last = data.View(self._shape, payload)["last"]
            with m.If(free & grant.any()):
                m.d.sync += locked.eq(~last)

        held = payload_register(m, self.o.payload)
        with m.If(free):
            m.d.sync += self.o.valid.eq(grant.any())
            with m.If(grant.any()):
                m.d.sync += [
                    Value.cast(held).eq(payload),
                    self.source.eq(source),
                    # All bits above the granted one.
                    behind.eq(~(grant | (grant - 1))),
                ]
        return m


def lowest(bits: Value) -> Value:
    """Return the lowest set bit of ``bits``, one-hot; for few bits, so without a carry chain."""
    return Cat(bits[index] & ~bits[:index].any() for index in range(len(bits)))
