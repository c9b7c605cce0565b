"""A write port of the scratchpad: granules from any one on, shared out to the slices."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.fifo import Fifo
from hw.network.scratchpad.rotate import rotated, rotation_copies, turned
from hw.network.scratchpad.shape import GranuleShape
from hw.network.scratchpad.slice import QUEUE, SliceWritePort

#: Most writes taken and not counted: a slice has room for as many, so its ``ready`` is always up.
_UNCOUNTED = QUEUE


class GranuleWrite(data.StructLayout):
    """The granules to write from granule ``address`` on; those without ``enable`` are not written."""

    def __init__(self, shape: GranuleShape) -> None:
        granules = data.ArrayLayout(shape.granule_bits, shape.granules)
        super().__init__({"address": shape.granule_address_bits, "enable": shape.granules, "data": granules})


class GranuleWritePort(wiring.Signature):
    """A write port of the scratchpad, seen from its user."""

    def __init__(self, shape: GranuleShape) -> None:
        super().__init__(
            {
                "write": Out(stream.Signature(GranuleWrite(shape))),
                #: Every write taken before this cycle is granted: reads taken from now on see it.
                "idle": In(1),
                #: One more write is granted, in order: reads taken from now on see it.
                "written": In(1),
            }
        )


class GranuleWriter(wiring.Component):
    """Sends each slice its granule of a word.

    Behaviour
    ---------
    A word a cycle, with at most `QUEUE` words waiting for a slice.  Slices write on their own: the granules
    of a word may be written in different cycles.
    """

    def __init__(self, shape: GranuleShape) -> None:
        self._shape = shape
        super().__init__(
            {
                "port": In(GranuleWritePort(shape)),
                "slices": Out(SliceWritePort(shape)).array(shape.granules),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Register -> rotation -> queues of the slices."""
        m = Module()
        shape = self._shape
        i = self.port.write
        sending = Signal()
        word = Signal(shape.address_bits, reset_less=True)
        following = Signal(shape.address_bits, reset_less=True)
        later = Signal(shape.granules, reset_less=True)  # slices that write the following word
        sent = Signal(shape.granules, reset_less=True)  # slices that write at all
        granules = [
            Signal(shape.granule_bits, name=f"granule_{n}", reset_less=True) for n in range(shape.granules)
        ]
        rotations = rotation_copies(shape, "rotation")
        accepted = Signal()
        m.submodules.counted = counted = Fifo(shape.granules, depth=_UNCOUNTED)
        m.d.comb += [
            accepted.eq(counted.i.ready),
            i.ready.eq(~sending | accepted),
            self.port.idle.eq(~sending & Cat(port.idle for port in self.slices).all()),
        ]
        m.d.comb += [counted.i.valid.eq(sending & accepted), counted.i.payload.eq(sent)]
        self._count(m, counted.o)
        first = i.payload.address[: shape.offset_bits]
        # Granule n of the word lies in slice first + n: slice j writes granule j - first.
        back = (-first)[: shape.offset_bits]
        with m.If(i.ready):
            m.d.sync += [
                sending.eq(i.valid),
                word.eq(i.payload.address[shape.offset_bits :]),
                following.eq(i.payload.address[shape.offset_bits :] + 1),
                later.eq(Cat(first > n for n in range(shape.granules))),
                sent.eq(Cat(turned(i.payload.enable, back))),
                *(rotation.eq(back) for rotation in rotations),
                *(granule.eq(i.payload.data[n]) for n, granule in enumerate(granules)),
            ]
        for n, (port, datum) in enumerate(zip(self.slices, rotated(granules, rotations), strict=True)):
            m.d.comb += [
                port.write.valid.eq(sending & accepted & sent[n]),
                port.write.payload.address.eq(Mux(later[n], following, word)),
                port.write.payload.data.eq(datum),
            ]
        return m

    def _count(self, m: Module, writes: Any) -> None:
        """Count the oldest write when each of its slices has granted one more."""
        m.d.comb += writes.ready.eq(self.port.written)
        some = []
        for n, port in enumerate(self.slices):
            grants = Signal(range(_UNCOUNTED + 1), name=f"grants_{n}")  # not yet counted
            any_grant = Signal(name=f"any_grant_{n}")
            used = self.port.written & writes.payload[n]
            with m.If(port.granted & ~used):
                m.d.sync += [grants.eq(grants + 1), any_grant.eq(1)]
            with m.If(used & ~port.granted):
                m.d.sync += [grants.eq(grants - 1), any_grant.eq(grants != 1)]
            some.append(any_grant | ~writes.payload[n])
        m.d.comb += self.port.written.eq(writes.valid & Cat(some).all())
