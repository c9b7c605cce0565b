"""A shallow FIFO with registers behind its LUT RAM."""

from __future__ import annotations

from typing import Any, ClassVar

from amaranth.hdl import Module, ShapeLike
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.fifo import Fifo
from hw.lib.skid import Skid


class RegisteredFifo(wiring.Component):
    """First in, first out, for readers that begin long paths.

    Parameters
    ----------
    shape
        Shape of the payload.
    depth
        Items that it holds for certain; `EXTRA` more fit into the registers.

    Members
    -------
    i : In(stream.Signature(shape))
    o : Out(stream.Signature(shape))

    Behaviour
    ---------
    An item a cycle; ``o.payload`` comes straight out of flip-flops, where `hw.lib.fifo.Fifo` alone reads it
    through LUT RAM.
    """

    #: Cycles from ``i`` to ``o``, and items behind the LUT RAM.
    LATENCY: ClassVar = Fifo.LATENCY + Skid.LATENCY
    EXTRA: ClassVar = Skid.CAPACITY

    def __init__(self, shape: ShapeLike, *, depth: int) -> None:
        self._shape = shape
        self._depth = depth
        super().__init__({"i": In(stream.Signature(shape)), "o": Out(stream.Signature(shape))})

    def elaborate(self, platform: Any) -> Module:
        """Place one behind the other."""
        m = Module()
        m.submodules.fifo = fifo = Fifo(self._shape, depth=self._depth, ram_style="distributed")
        m.submodules.output = output = Skid(self._shape)
        connect(m, flipped(self.i), fifo.i)
        connect(m, fifo.o, output.i)
        connect(m, output.o, flipped(self.o))
        return m
