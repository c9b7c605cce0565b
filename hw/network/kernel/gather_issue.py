"""Transfers of rows that numbers in memory choose: first the numbers, then a transfer for each row."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from hw.lib.fifo import Fifo
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.program.program import NUMBER_BYTES
from hw.network.program.records import read_layout, transfer_layout
from hw.scheduler.program.latency import TRANSFERS_AHEAD

#: Bits of a number, and numbers of a word.
NUMBER_BITS = 8 * NUMBER_BYTES
NUMBERS = WORD_BYTES // NUMBER_BYTES


class PartKind(data.StructLayout):
    """What the words of a part are; ``ends``: they end a transfer of the program."""

    def __init__(self) -> None:
        super().__init__({"numbers": 1, "ends": 1})


class GatherIssue(wiring.Component):
    """Cuts transfers into parts: one of whole words is one part, a gather is a part for each row.

    Behaviour
    ---------
    A transfer of whole words passes in the same cycle.  A gather asks for a word of numbers, and for the next
    one before the rows of the former.  A row takes two cycles, and one for each bit of its count of words.  A
    number beyond the table's last row is that row's.

    Why
    ---
    Numbers come before the rows that were asked for after them.  So two words of numbers are enough.
    """

    def __init__(self, config: NetworkConfig) -> None:
        self._config = config
        item, part = read_layout(config)["item"].shape, transfer_layout(config)["item"].shape
        super().__init__(
            {
                "i": In(stream.Signature(item)),  #: The payload stays until it is taken.
                "o": Out(stream.Signature(part)),  #: ``ready`` may depend on ``valid``.
                #: Of each part, from the cycle after it was taken.
                "kind": Out(stream.Signature(PartKind())),
                "numbers": In(stream.Signature(8 * WORD_BYTES)),  #: Words of numbers, in order.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """State machine, the numbers of a word, and the queue of kinds."""
        m = Module()
        m.submodules.kinds = kinds = Fifo(PartKind(), depth=2 * TRANSFERS_AHEAD)
        m.submodules.words = words = Fifo(8 * WORD_BYTES, depth=2)
        connect(m, kinds.o, flipped(self.kind))
        connect(m, flipped(self.numbers), words.i)
        item, part = self.i.payload, self.o.payload
        wanted = Signal()
        taken = Signal()
        first = Signal()  # the word of numbers that is asked for is the first one
        left = Signal.like(item.gather.rows, reset_less=True)
        place = Signal(exact_log2(NUMBERS))  # of a number in its word
        held = Signal(8 * WORD_BYTES, reset_less=True)
        dram = Signal.like(item.dram, reset_less=True)  # of the next word of numbers
        address = Signal.like(item.address, reset_less=True)
        number = Signal.like(item.dram, reset_less=True)
        count = Signal.like(item.words, reset_less=True)
        row = Signal.like(item.dram, reset_less=True)
        m.d.comb += [
            self.o.valid.eq(wanted & kinds.i.ready),
            taken.eq(self.o.valid & self.o.ready),
            kinds.i.valid.eq(taken),
            *(part[name].eq(item[name]) for name in ("dram", "address", "words")),
        ]
        with m.FSM():
            with m.State("WHOLE"):
                whole = ~item.gather.some
                m.d.comb += [
                    wanted.eq(self.i.valid & whole),
                    kinds.i.payload.ends.eq(1),
                    self.i.ready.eq(taken),
                ]
                m.d.sync += [
                    first.eq(1),
                    left.eq(item.gather.rows),
                    dram.eq(item.dram),
                    address.eq(item.address),
                    place.eq(0),
                ]
                with m.If(self.i.valid & ~whole):
                    m.next = "ASK"
            with m.State("ASK"):
                m.d.comb += [
                    wanted.eq(1),
                    kinds.i.payload.numbers.eq(1),
                    part.dram.eq(dram),
                    part.words.eq(1),
                ]
                with m.If(taken):
                    m.d.sync += [dram.eq(dram + 1), first.eq(0)]
                    m.next = "NUMBER"
                    with m.If(first):
                        m.next = "WAIT"
            with m.State("WAIT"):
                m.d.comb += words.o.ready.eq(1)
                m.d.sync += held.eq(words.o.payload)
                with m.If(words.o.valid):
                    m.next = "NUMBER"
                    with m.If(left > NUMBERS):
                        m.next = "ASK"
            with m.State("NUMBER"):
                beyond = held[:NUMBER_BITS] > item.gather.last
                m.d.sync += [
                    number.eq(Mux(beyond, item.gather.last, held[:NUMBER_BITS])),
                    held.eq(held >> NUMBER_BITS),
                    count.eq(item.words),
                    row.eq(item.gather.table),
                ]
                m.next = "SCALE"
            with m.State("SCALE"):
                m.d.sync += [
                    row.eq(row + Mux(count[0], number, 0)),
                    number.eq(number << 1),
                    count.eq(count >> 1),
                ]
                with m.If(count[1:] == 0):
                    m.next = "ROW"
            with m.State("ROW"):
                last = left == 1
                m.d.comb += [
                    wanted.eq(1),
                    kinds.i.payload.ends.eq(last),
                    part.dram.eq(row),
                    part.address.eq(address),
                    self.i.ready.eq(taken & last),
                ]
                with m.If(taken):
                    m.d.sync += [address.eq(address + item.words), left.eq(left - 1), place.eq(place + 1)]
                    m.next = "NUMBER"
                    with m.If(last):
                        m.next = "WHOLE"
                    with m.Elif(place == NUMBERS - 1):
                        m.next = "WAIT"
        return m
