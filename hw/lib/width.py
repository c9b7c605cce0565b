"""Width conversion of a stream by a whole ratio."""

from typing import ClassVar

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.delay import payload_register
from hw.lib.loads import LOADS, copies


class Beat(data.StructLayout):
    """A beat of several lanes.

    >>> Beat(lane_width=8, lanes=4).size
    37
    """

    def __init__(self, *, lane_width: int, lanes: int) -> None:
        self.lane_width = lane_width
        self.lanes = lanes
        super().__init__(
            {
                "data": lanes * lane_width,  #: Lane 0, the first in order, in the low bits.
                "keep": lanes,  #: One bit for each lane in use.
                "last": 1,  #: The beat ends a packet.
            }
        )


class WidthConverter(wiring.Component):
    """Splits each beat into narrower ones, or joins several into a wider one, in order of lanes.

    ``lane_width``: bits of a lane, which is never split. ``i_lanes``, ``o_lanes``: lanes of a beat on either
    side; one is a multiple of the other.

    Behaviour
    ---------
    ``o`` is registered; latency 1 cycle from the input beat that completes an output beat.  The narrow side
    transfers a beat every cycle, across packets too.  ``i.ready`` depends on ``o.ready`` in the same cycle; a
    `hw.lib.skid.Skid` on either side cuts that path.

    * Joining: a beat is sent when it is full or its last piece had ``last``.  Lanes without data have
      ``keep`` 0 and undefined bits.
    * Splitting: of a beat with ``last``, pieces behind the last kept lane are dropped, and the final piece
      has ``last``.  A beat with ``last`` and without a kept lane becomes one piece without a kept lane.  All
      pieces of a beat without ``last`` are sent.

    Example
    -------
    >>> narrow = WidthConverter(lane_width=8, i_lanes=64, o_lanes=16)
    >>> narrow.ratio, len(narrow.o.p.data)
    (4, 128)
    """

    #: Cycles from the input beat that completes an output beat to the output beat.
    LATENCY: ClassVar = 1

    def __init__(self, *, lane_width: int, i_lanes: int, o_lanes: int) -> None:
        for name, value in (("lane_width", lane_width), ("i_lanes", i_lanes), ("o_lanes", o_lanes)):
            if not isinstance(value, int) or value < 1:
                raise InputError(name, value, "an integer of at least 1")
        if max(i_lanes, o_lanes) % min(i_lanes, o_lanes):
            raise InputError("o_lanes", o_lanes, f"a multiple or a divisor of i_lanes, which is {i_lanes}")
        self.lane_width = lane_width
        self.i_lanes = i_lanes
        self.o_lanes = o_lanes
        self.ratio = max(i_lanes, o_lanes) // min(i_lanes, o_lanes)
        super().__init__(
            {
                "i": In(stream.Signature(Beat(lane_width=lane_width, lanes=i_lanes))),
                "o": Out(stream.Signature(Beat(lane_width=lane_width, lanes=o_lanes))),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        return self._join() if self.o_lanes >= self.i_lanes else self._split()

    def _join(self) -> Module:
        """Gather pieces in the output register, which is free in the cycle of its transfer."""
        m = Module()
        i, o = self.i, self.o
        place = Signal(range(self.ratio))
        push = Signal()
        held = payload_register(m, o.p)
        m.d.comb += [i.ready.eq(~o.valid | o.ready), push.eq(i.valid & i.ready)]
        with m.If(o.ready):
            m.d.sync += o.valid.eq(0)
        with m.If(push):
            complete = i.p.last | (place == self.ratio - 1)
            m.d.sync += [
                place.eq(Mux(complete, 0, place + 1)),
                o.valid.eq(complete),
                held.last.eq(i.p.last),
            ]
            for index in range(self.ratio):
                keep = held.keep[index * self.i_lanes : (index + 1) * self.i_lanes]
                width = self.i_lanes * self.lane_width
                with m.If(place == index):
                    m.d.sync += [
                        held.data[index * width : (index + 1) * width].eq(i.p.data),
                        keep.eq(i.p.keep),
                    ]
                with m.Elif(place == 0):
                    m.d.sync += keep.eq(0)
        return m

    def _split(self) -> Module:
        """Hold a beat and shift it down a piece at a time; the lowest piece is sent."""
        m = Module()
        i, o = self.i, self.o
        piece_width = self.o_lanes * self.lane_width
        held_data = Signal(self.i_lanes * self.lane_width, reset_less=True)
        held_keep = Signal(self.i_lanes)
        held_last = Signal()
        #: Pieces left behind the one on ``o``.
        left = Signal(range(self.ratio))
        final = left == 0
        taken = Signal()
        m.d.comb += [
            i.ready.eq(~o.valid | taken),
            taken.eq(o.ready & final),
            o.p.data.eq(held_data),
            o.p.keep.eq(held_keep),
            o.p.last.eq(held_last & final),
        ]
        with m.If(i.ready):
            m.d.sync += [
                o.valid.eq(i.valid),
                held_keep.eq(i.p.keep),
                held_last.eq(i.p.last),
                left.eq(Mux(i.p.last, self._last_kept(m, i.p.keep), self.ratio - 1)),
            ]
        with m.Elif(o.ready):
            m.d.sync += [
                held_keep.eq(held_keep >> self.o_lanes),
                left.eq(left - 1),
            ]
        # The data, with copies of `o.valid` for some bits each.
        valids = copies(Signal(name="valid"), -(-len(held_data) // LOADS))
        for low, valid in zip(range(0, len(held_data), LOADS), valids, strict=True):
            bits = slice(low, min(low + LOADS, len(held_data)))
            with m.If(~valid | taken):
                m.d.sync += [valid.eq(i.valid), held_data[bits].eq(i.p.data[bits])]
            with m.Elif(o.ready):
                m.d.sync += held_data[bits].eq((held_data >> piece_width)[bits])
        return m

    def _last_kept(self, m: Module, keep: Value) -> Signal:
        """Return the index of the highest piece with a kept lane, or 0."""
        index = Signal(range(self.ratio))
        for piece in range(self.ratio):
            with m.If(keep[piece * self.o_lanes : (piece + 1) * self.o_lanes].any()):
                m.d.comb += index.eq(piece)
        return index
