"""Descriptors of jobs, prefetched from memory."""

from typing import Any, ClassVar

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.fifo import Fifo

#: Bits of an address, and of a number of descriptors.
ADDRESS_BITS, COUNT_BITS = 64, 32


class DescriptorQueue(wiring.Component):
    """Prefetches the descriptors of a launch, in order.

    ``pitch_bytes``: from one descriptor to the next in memory. ``used_bytes``: bytes of each that are read:
    whole words. ``ahead``: descriptors that may be prefetched.

    Why
    ---
    Words wait in a narrow RAM and become a descriptor only when it is needed.

    Example
    -------
    >>> queue = DescriptorQueue(pitch_bytes=128, used_bytes=96, data_width=256, ahead=4)
    >>> queue.o.payload.shape()
    unsigned(768)
    """

    #: Cycles from ``start`` to the first address.
    START_LATENCY: ClassVar = 1

    def __init__(self, *, pitch_bytes: int, used_bytes: int, data_width: int, ahead: int) -> None:
        if used_bytes * 8 % data_width or not 0 < used_bytes <= pitch_bytes:
            raise InputError("used_bytes", used_bytes, f"words of {data_width // 8}, up to {pitch_bytes}")
        self._pitch = pitch_bytes
        self._bits = 8 * used_bytes
        self._data_width = data_width
        self._ahead = ahead
        super().__init__(
            {
                "start": In(1),  #: One-cycle pulse; not while ``left``.
                #: ``address``, ``count``: of the descriptors; taken at ``start``.
                "address": In(ADDRESS_BITS),
                "count": In(COUNT_BITS),
                #: Addresses of ``used_bytes`` to read.
                "fetch": Out(stream.Signature(ADDRESS_BITS)),
                #: The words read, in order.  Always ready for all requested ones.
                "words": In(stream.Signature(data_width)),
                "o": Out(stream.Signature(self._bits)),
                "left": Out(1),  #: Descriptors are left; from the cycle after ``start``.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Make the gates."""
        m = Module()
        words = self._bits // self._data_width
        m.submodules.queue = queue = Fifo(self._data_width, depth=self._ahead * words)
        m.d.comb += [
            queue.i.payload.eq(self.words.payload),
            queue.i.valid.eq(self.words.valid),
            self.words.ready.eq(queue.i.ready),
        ]

        # Words are shifted into a descriptor from above.
        raw = Signal(self._bits, reset_less=True)
        place = Signal(range(words))
        push = Signal()
        joined = Signal()
        taken = Signal()
        m.d.comb += [
            taken.eq(self.o.valid & self.o.ready),
            queue.o.ready.eq(~self.o.valid | taken),
            push.eq(queue.o.valid & queue.o.ready),
            joined.eq(push & (place == words - 1)),
            self.o.payload.eq(raw),
        ]
        with m.If(taken):
            m.d.sync += self.o.valid.eq(0)
        with m.If(push):
            m.d.sync += raw.eq(Cat(raw, queue.o.payload)[self._data_width :])
            m.d.sync += place.eq(Mux(place == words - 1, 0, place + 1))
        with m.If(joined):
            m.d.sync += self.o.valid.eq(1)

        # Addresses, while the queue has room for the words.
        unasked = Signal(COUNT_BITS)
        untaken = Signal(COUNT_BITS)
        ahead = Signal(range(self._ahead + 1))
        asked = self.fetch.valid & self.fetch.ready
        m.d.comb += [
            self.fetch.valid.eq((unasked != 0) & (ahead != self._ahead)),
            self.left.eq(untaken != 0),
        ]
        m.d.sync += ahead.eq(ahead + asked - joined)
        with m.If(asked):
            m.d.sync += [unasked.eq(unasked - 1), self.fetch.payload.eq(self.fetch.payload + self._pitch)]
        with m.If(taken):
            m.d.sync += untaken.eq(untaken - 1)
        with m.If(self.start):
            m.d.sync += [
                unasked.eq(self.count),
                untaken.eq(self.count),
                self.fetch.payload.eq(self.address),
            ]
        return m
