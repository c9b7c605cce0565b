"""A read port of the scratchpad: a word that begins at any granule, joined of all slices."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.lib.delay import payload_register
from hw.lib.fifo import Fifo
from hw.network.scratchpad.response import READS_AHEAD
from hw.network.scratchpad.rotate import rotated, rotation_copies, turned
from hw.network.scratchpad.shape import GranuleShape
from hw.network.scratchpad.slice import ScratchpadSlice, SliceReadPort


class GranuleRequest(data.StructLayout):
    """The granules of a word from granule ``address`` on; those without ``enable`` are not read."""

    def __init__(self, shape: GranuleShape) -> None:
        super().__init__({"address": shape.granule_address_bits, "enable": shape.granules})


class GranuleWord(data.StructLayout):
    """A word as read: ``data`` of a granule is undefined without ``enable``."""

    def __init__(self, shape: GranuleShape) -> None:
        granules = data.ArrayLayout(shape.granule_bits, shape.granules)
        super().__init__({"data": granules, "enable": shape.granules})


class GranuleReadPort(wiring.Signature):
    """A read port of the scratchpad, seen from its user."""

    def __init__(self, shape: GranuleShape) -> None:
        super().__init__(
            {
                "request": Out(stream.Signature(GranuleRequest(shape))),
                "response": In(stream.Signature(GranuleWord(shape))),  #: One for each request, in order.
            }
        )


class GranuleReader(wiring.Component):
    """Asks each slice for its granule of a word, and joins the responses.

    Behaviour
    ---------
    A word a cycle.  Granule ``g`` lies in word ``g // granules``, slice ``g % granules``.  A slice takes and
    answers requests on its own; each may be some words ahead of the others.

    Why
    ---
    The granules of a word from any granule on lie in different slices.  So a word never waits for itself, and
    only the rotation is paid for.
    """

    #: From a request to the slices' requests, and from their last response to the word.
    REQUEST_LATENCY = 1
    RESPONSE_LATENCY = 1
    #: From a request to its word, when no other port asks for its banks.
    LATENCY = (
        REQUEST_LATENCY
        + ScratchpadSlice.REQUEST_LATENCY
        + ScratchpadSlice.RESPONSE_LATENCY
        + RESPONSE_LATENCY
    )

    def __init__(self, shape: GranuleShape) -> None:
        self._shape = shape
        super().__init__(
            {
                "port": In(GranuleReadPort(shape)),
                "slices": Out(SliceReadPort(shape)).array(shape.granules),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Requests -> slices and a queue of rotations -> join."""
        m = Module()
        shape = self._shape
        tag = data.StructLayout({"offset": shape.offset_bits, "asked": shape.granules})
        m.submodules.tags = tags = Fifo(tag, depth=READS_AHEAD)
        self._ask(m, tags)

        current = Signal(tag)
        current_valid = Signal()
        rotations = rotation_copies(shape, "rotation")
        step = Signal()
        o = self.port.response
        complete = Cat(port.response.valid | ~current.asked[n] for n, port in enumerate(self.slices)).all()
        m.d.comb += [
            step.eq(current_valid & complete & (~o.valid | o.ready)),
            tags.o.ready.eq(~current_valid | step),
            *(port.response.ready.eq(step & current.asked[n]) for n, port in enumerate(self.slices)),
        ]
        with m.If(tags.o.ready):
            m.d.sync += [
                current_valid.eq(tags.o.valid),
                current.eq(tags.o.payload),
                *(rotation.eq(tags.o.payload.offset) for rotation in rotations),
            ]
        word = payload_register(m, o.payload)
        with m.If(~o.valid | o.ready):
            m.d.sync += o.valid.eq(step)
        with m.If(step):
            m.d.sync += [
                Value.cast(word.data).eq(
                    Cat(*rotated([port.response.payload for port in self.slices], rotations))
                ),
                word.enable.eq(Cat(turned(current.asked, current.offset))),
            ]
        return m

    def _ask(self, m: Module, tags: Fifo) -> None:
        """Ask the slices, all of them in one cycle."""
        shape = self._shape
        i = self.port.request
        asking = Signal()
        word = Signal(shape.address_bits, reset_less=True)
        following = Signal(shape.address_bits, reset_less=True)
        later = Signal(shape.granules, reset_less=True)  # slices asked for the following word
        offset = Signal(shape.offset_bits, reset_less=True)
        asked = Signal(shape.granules, reset_less=True)
        accepted = Signal()
        m.d.comb += [
            accepted.eq(tags.i.ready & Cat(port.request.ready for port in self.slices).all()),
            i.ready.eq(~asking | accepted),
            tags.i.valid.eq(asking & accepted),
            tags.i.payload.offset.eq(offset),
            tags.i.payload.asked.eq(asked),
        ]
        first = i.payload.address[: shape.offset_bits]
        with m.If(i.ready):
            m.d.sync += [
                asking.eq(i.valid),
                word.eq(i.payload.address[shape.offset_bits :]),
                following.eq(i.payload.address[shape.offset_bits :] + 1),
                later.eq(Cat(first > n for n in range(shape.granules))),
                offset.eq(first),
                asked.eq(Cat(turned(i.payload.enable, (-first)[: shape.offset_bits]))),
            ]
        for n, port in enumerate(self.slices):
            m.d.comb += [
                port.request.valid.eq(asking & accepted & asked[n]),
                port.request.payload.eq(Mux(later[n], following, word)),
            ]
