"""Writes a map into the line buffer, row by row, as rows become free."""

from typing import Any, ClassVar

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.conv.config import SIDE_BITS, ConvConfig
from hw.conv.core.layouts import SLOT_BITS, FillCommand
from hw.lib.delay import payload_register


class Fill(wiring.Component):
    """Writes the words of a map to the banks and counts the rows that are complete.

    Behaviour
    ---------
    A word a cycle; two cycles from ``i`` to the banks.  ``i`` stalls for a cycle between rows, and while
    there is no room.

    Banks and addresses
    -------------------
    By parity: pixel (y, x) lies in bank ``2 (y & 1) + (x & 1)``, in row ``(y mod slots) >> 1``, column ``x >>
    1`` of it.  As a strip: the whole of row y lies in bank ``(y >> split) & 3``.  A group of 2^split rows
    shares a bank, so rows a dilation of 2^split apart lie in different banks.
    """

    #: Cycles from ``start`` to the first token, from token to token, and from ``start`` to the first word
    #: taken.
    TOKEN_LATENCY: ClassVar = 3
    TOKEN_INTERVAL: ClassVar = 3
    START_LATENCY: ClassVar = 3
    #: Cycles from ``freed`` to a token or to a word taken; cycles without a word between rows.
    FREED_LATENCY: ClassVar = 2
    ROW_GAP: ClassVar = 2
    #: Cycles from the last word of a row to ``filled``.
    FILLED_LATENCY: ClassVar = 2

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                #: One-cycle pulse: a map begins.  Not before all words of the last one were taken.
                "start": In(1),
                "job": In(FillCommand(config)),  #: The map; constant from ``start`` on.
                #: Rows from the top that are no longer read.  0 in the cycle after ``start``, and never falls
                #: from then on.
                "freed": In(SIDE_BITS),
                "i": In(stream.Signature(config.word_bits)),
                #: A credit for each row that has room, in order, if ``job.asked``.
                "token": Out(stream.Signature(1)),
                #: ``enable``, ``address``, ``word``: a write of a word to one of the four banks.
                "enable": Out(4),
                "address": Out(range(config.bank_words)),
                "word": Out(config.word_bits),
                "open": Out(1),  #: Words of the map are outstanding.
                "filled": Out(SIDE_BITS),  #: Rows whose words are all in the banks.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Count rows, columns and words; addresses are counted, too."""
        m = Module()
        job = self.job
        m.submodules.rows = rows = RowPlace(self._config)
        row = Signal(SIDE_BITS)
        column = Signal(SIDE_BITS)
        # after this one
        columns_left = Signal(SIDE_BITS)
        words_left = Signal.like(job.words)
        pair = Signal(range(self._config.bank_words))  # address of this pixel, or of the even one before it
        offset = Signal.like(pair)
        begins = Signal()  # a row begins: it needs room
        active = Signal()
        room = Signal()

        # Room for a row is known a cycle late, which costs nothing: room never goes away.
        ahead = Signal(SLOT_BITS)  # row less freed, less slots: negative while there is room
        m.d.sync += ahead.eq(row - self.freed - job.slots)
        taken = Signal()
        pixel_ends = Signal()
        row_ends = Signal()
        m.d.comb += [
            self.i.ready.eq(active & room),
            self.open.eq(active),
            taken.eq(self.i.valid & self.i.ready),
            pixel_ends.eq(taken & (words_left == 0)),
            row_ends.eq(pixel_ends & (columns_left == 0)),
            rows.start.eq(self.start),
            rows.step.eq(row_ends),
            rows.job.eq(job),
        ]
        with m.If(taken):
            m.d.sync += [words_left.eq(words_left - 1), offset.eq(offset + 1)]
        with m.If(pixel_ends):
            m.d.sync += [
                words_left.eq(job.words - 1),
                columns_left.eq(columns_left - 1),
                column[0].eq(~column[0]),
            ]
            # The odd pixel of a pair has the address of the even one, in another bank.
            with m.If(~job.strip & ~column[0]):
                m.d.sync += offset.eq(pair)
            with m.Else():
                m.d.sync += pair.eq(offset + 1)
        with m.If(row_ends):
            m.d.sync += [columns_left.eq(job.columns - 1), pair.eq(0), offset.eq(0), column[0].eq(0)]
            m.d.sync += [row.eq(row + 1), active.eq(row + 1 != job.rows), room.eq(0), begins.eq(0)]
        with m.Else():
            m.d.sync += begins.eq(active)
            with m.If(begins):
                m.d.sync += room.eq(ahead[-1])
        with m.If(self.start):
            m.d.sync += [row.eq(0), column[0].eq(0), pair.eq(0), offset.eq(0), active.eq(1), room.eq(0)]
            m.d.sync += [columns_left.eq(job.columns - 1), words_left.eq(job.words - 1), begins.eq(0)]

        # The sum, then the banks.
        enable = Signal(4)
        sum_enable = Signal(4)
        m.d.comb += enable.eq(
            Mux(job.strip, Const(1, 4) << rows.bank, Const(1, 4) << ((rows.bank[0] << 1) | column[0]))
        )
        finished = Signal(2)
        m.d.sync += [
            sum_enable.eq(Mux(taken, enable, 0)),
            self.address.eq(rows.base + offset),
            payload_register(m, self.word, name="word_held").eq(self.i.payload),
            finished.eq((finished << 1) | row_ends),
        ]
        m.d.comb += self.enable.eq(sum_enable)
        with m.If(self.start):
            m.d.sync += self.filled.eq(0)
        with m.Elif(finished[0]):
            m.d.sync += self.filled.eq(self.filled + 1)

        # A token is sent for each row below ``freed + slots``, in order.
        asked = Signal(SIDE_BITS)
        lead = Signal(SLOT_BITS)
        given = Signal()
        recent = Signal()  # the distance is of the previous count
        m.d.comb += given.eq(self.token.valid & self.token.ready)
        m.d.sync += [lead.eq(asked - self.freed - job.slots), recent.eq(given | self.start)]
        with m.If(given):
            m.d.sync += [asked.eq(asked + 1), self.token.valid.eq(0)]
        with m.Elif(active & job.asked & ~recent & (asked != job.rows) & lead[-1]):
            m.d.sync += self.token.valid.eq(1)
        with m.If(self.start):
            m.d.sync += [asked.eq(0), self.token.valid.eq(0)]
        return m


class RowPlace(wiring.Component):
    """Steps through the rows of a map: the bank and the address of each."""

    def __init__(self, config: ConvConfig) -> None:
        self._config = config
        super().__init__(
            {
                "start": In(1),  #: Return to row 0.
                "step": In(1),  #: Advance to the next row.
                "job": In(FillCommand(config)),
                "bank": Out(2),  #: Of a strip; otherwise its low bit is the row's parity.
                "base": Out(range(config.bank_words)),  #: First word of the row in its bank.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Assign rows to the banks in turn: 2^split to each of four; by parity, one to each of two."""
        m = Module()
        job = self.job
        slot = Signal(SLOT_BITS)
        sub = Signal(3)
        group = Signal.like(self.base)  # address of the group of rows
        inner = Signal.like(self.base)  # distance of the row from that address
        last_sub = Signal()
        last_bank = Signal()
        last_slot = Signal()
        stride = Signal(range(2 * self._config.bank_words))  # distance from a group to the next
        m.d.comb += self.base.eq(group + inner)
        # The last row of a group is known a cycle late: rows are further apart than that.
        m.d.sync += [
            stride.eq(job.row_words << job.split),
            last_sub.eq(sub == (Const(1, 4) << job.split) - 1),
            last_bank.eq(Mux(job.strip, self.bank == 3, self.bank[0])),
            last_slot.eq(slot + 1 == job.slots),
        ]
        with m.If(self.step):
            m.d.sync += [slot.eq(slot + 1), sub.eq(sub + 1), inner.eq(inner + job.row_words)]
            with m.If(last_sub):
                m.d.sync += [sub.eq(0), inner.eq(0), self.bank.eq(Mux(last_bank, 0, self.bank + 1))]
                with m.If(last_bank):
                    m.d.sync += group.eq(group + stride)
            with m.If(last_slot):
                m.d.sync += [slot.eq(0), sub.eq(0), inner.eq(0), group.eq(0), self.bank.eq(0)]
        with m.If(self.start):
            m.d.sync += [slot.eq(0), sub.eq(0), inner.eq(0), group.eq(0), self.bank.eq(0)]
        return m
