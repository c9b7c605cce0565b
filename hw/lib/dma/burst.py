"""Burst splitting: commands of any address and length become legal AXI bursts."""

from typing import Any

from amaranth.hdl import Cat, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from hw.errors import InputError
from hw.lib import axi

#: Bits of the ``length`` of a command, in bytes.
LENGTH_BITS = 32


def check_bursts(*, data_width: int, burst_beats: int) -> None:
    """Refuse a burst that is not a power of two of beats, too long for AXI3, or longer than 4 KiB."""
    longest = min(axi.MAX_BURST_BEATS, axi.BOUNDARY_BYTES * 8 // data_width)
    if burst_beats not in (1, 2, 4, 8, 16) or burst_beats > longest:
        raise InputError("burst_beats", burst_beats, f"a power of two from 1 to {longest}")


def command_layout(addr_width: int) -> data.StructLayout:
    """Return the payload of a DMA's ``command``: byte ``address`` and ``length`` in bytes, at least 1."""
    return data.StructLayout({"address": addr_width, "length": LENGTH_BITS})


def span_layout(*, data_width: int, burst_beats: int) -> data.StructLayout:
    """Return the layout of an aligner's parameters for a command; `span` computes them."""
    lanes = exact_log2(data_width // 8)
    return data.StructLayout(
        {
            "offset": lanes,  #: Lane of the first byte in the first bus beat.
            "tail": lanes,  #: Bytes in the last packed word, less 1.
            "after": LENGTH_BITS - lanes + 1,  #: Bus beats after the first.
            "extra": 1,  #: Whether there is one more bus beat than packed words.
            #: Place of the first bus beat in its aligned block of ``burst_beats``.
            "position": exact_log2(burst_beats),
        }
    )


def span(command: Any, *, data_width: int, burst_beats: int) -> data.View:
    """Compute the `span_layout` of ``command``, a view of `command_layout`: combinational."""
    layout = span_layout(data_width=data_width, burst_beats=burst_beats)
    lanes = exact_log2(data_width // 8)
    offset = command.address[:lanes]
    less_one = (command.length - 1)[:LENGTH_BITS]
    # Whether the last packed word, shifted up by the offset, needs one more beat.
    extra = (offset + less_one[:lanes])[lanes]
    after = (less_one[lanes:] + extra)[: LENGTH_BITS - lanes + 1]
    position = (command.address >> lanes)[: exact_log2(burst_beats)]
    return data.View(layout, Cat(offset, less_one[:lanes], after, extra, position))


class BurstSplitter(wiring.Component):
    """Splits a command into aligned INCR bursts of full-width beats.

    ``burst_beats``: beats of the longest burst, a power of two up to 16 that keeps a burst within 4 KiB.

    Behaviour
    ---------
    The first burst is offered in the cycle after its command, then one every cycle.  The next command is
    taken with the last burst, so commands follow each other without a gap.  Byte counts from 1 and all
    alignments are legal; a command must not pass the end of the address space.

    Why
    ---
    Bursts end at multiples of ``burst_beats`` beats, at the cost of at most one burst more a command.  In
    exchange no burst crosses 4 KiB, and long transfers stay aligned to the memory's pages.  The address of a
    beat alone shows the end of its burst: the write path places ``wlast`` from it.

    Example
    -------
    >>> splitter = BurstSplitter(data_width=256)
    >>> dict(splitter.o.payload.shape())["beats"].shape
    range(0, 17)
    """

    def __init__(self, *, data_width: int = 256, addr_width: int = 64, burst_beats: int = 16) -> None:
        check_bursts(data_width=data_width, burst_beats=burst_beats)
        self._data_width = data_width
        self._burst_beats = burst_beats
        burst = data.StructLayout({"address": addr_width, "beats": range(burst_beats + 1), "last": 1})
        super().__init__(
            {
                "command": In(stream.Signature(command_layout(addr_width))),
                #: In the order of addresses.  ``address``: of the first beat, a multiple of the beat.
                #: ``beats``: 1 to ``burst_beats``.  ``last``: the last burst of a command.
                "o": Out(stream.Signature(burst)),
            }
        )
        lanes = exact_log2(data_width // 8)
        # The state, under names for proofs.
        self.active = Signal()
        self.beat = Signal(addr_width - lanes)
        self.left = Signal(LENGTH_BITS - lanes + 1)  # after the one at `beat`

    def elaborate(self, platform: Any) -> Elaboratable:
        """Hold one command: the address of its next beat and how many beats are left."""
        m = Module()
        lanes = exact_log2(self._data_width // 8)
        command = self.command.payload
        extent = span(command, data_width=self._data_width, burst_beats=self._burst_beats)
        active, beat, left = self.active, self.beat, self.left
        position = beat[: exact_log2(self._burst_beats)]
        room: Value = self._burst_beats - 1 - position  # beats after `beat` up to the end of the block
        fits = left <= room
        after = Mux(fits, left, room)
        m.d.comb += [
            self.o.valid.eq(active),
            self.o.payload.address.eq(beat << lanes),
            self.o.payload.beats.eq(after + 1),
            self.o.payload.last.eq(fits),
            self.command.ready.eq(~active | (self.o.ready & fits)),
        ]
        with m.If(self.command.ready):
            m.d.sync += [
                active.eq(self.command.valid),
                beat.eq(command.address >> lanes),
                left.eq(extent.after),
            ]
        with m.Elif(self.o.ready):
            # A burst that does not end its command ends at a block: the next one starts the next block.
            m.d.sync += [
                beat.eq(((beat >> len(position)) + 1) << len(position)),
                left.eq(left - after - 1),
            ]
        return m
