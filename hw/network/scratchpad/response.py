"""Responses of a read port of a slice: the choice of the bank, and a credit for each request."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.loads import copies
from hw.network.scratchpad.bank import SliceBank
from hw.network.scratchpad.shape import GranuleShape

#: Reads of a port that are granted and not yet taken: one level of LUTRAM.
READS_AHEAD = 32
#: Bits of data that one copy of the selection serves.
_COPY_BITS = 32
#: Bits of the bank's number that select among neighbours, in one LUT a bit; the others select a cycle later.
_NEAR_BITS = 2


def _selected(values: list[Any], select: Signal) -> Value:
    """Return the value of a number, by a tree of pairs."""
    for bit in range(len(select)):
        values = [Mux(select[bit], odd, even) for even, odd in zip(values[::2], values[1::2], strict=True)]
    return Value.cast(values[0])


class SliceResponse(wiring.Component):
    """Selects each response from its bank, and keeps them in order.

    Behaviour
    ---------
    A response is on ``response`` `LATENCY` cycles after its grant.  ``room`` is up while fewer than
    `READS_AHEAD` reads are granted and not taken, so the FIFO never overflows.
    """

    #: From a grant to its response: winner, bank, two selections, FIFO.
    LATENCY = 1 + SliceBank.LATENCY + 2 + Fifo.LATENCY

    def __init__(self, shape: GranuleShape) -> None:
        self._shape = shape
        super().__init__(
            {
                "won": In(1),  #: A read was granted in the last cycle, of bank ``won_bank``.
                "won_bank": In(shape.bank_bits),
                "room": Out(1, init=1),  #: A read may be granted.
                "banks": In(shape.granule_bits).array(shape.banks),
                "response": Out(stream.Signature(shape.granule_bits)),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Delay the number of the bank until its data is there."""
        m = Module()
        shape = self._shape
        credits = Signal(range(READS_AHEAD + 1), init=READS_AHEAD)
        taken = Signal()
        m.d.comb += taken.eq(self.response.valid & self.response.ready)
        # Grants end long paths, so they are counted a cycle later: one credit is kept for the last one.
        with m.If(self.won & ~taken):
            m.d.sync += [credits.eq(credits - 1), self.room.eq(credits > 2)]
        with m.If(taken & ~self.won):
            m.d.sync += [credits.eq(credits + 1), self.room.eq(credits != 0)]

        chunks = shape.granule_bits // _COPY_BITS
        low = min(_NEAR_BITS, shape.bank_bits)
        nears = copies(Signal(low, name="near", reset_less=True), 2 * chunks)
        fars = copies(Signal(shape.bank_bits - low, name="far", reset_less=True), chunks)
        bank = delay(m, "bank", self.won_bank, SliceBank.LATENCY - 1, reset=False)
        far = delay(m, "far_bank", bank[low:], 1, reset=False)
        m.d.sync += [near.eq(bank[:low]) for near in nears] + [copy.eq(far) for copy in fars]
        arrived = delay(m, "arrived", self.won, SliceBank.LATENCY + 2)
        chosen = Signal(shape.granule_bits, reset_less=True)
        for chunk in range(chunks):
            values = [word.word_select(chunk, _COPY_BITS) for word in self.banks]
            groups = [values[at : at + (1 << low)] for at in range(0, len(values), 1 << low)]
            found = []
            for number, group in enumerate(groups):
                value = Signal(_COPY_BITS, name=f"group_{number}_{chunk}", reset_less=True)
                m.d.sync += value.eq(_selected(group, nears[2 * chunk + (2 * number >= len(groups))]))
                found.append(value)
            m.d.sync += chosen.word_select(chunk, _COPY_BITS).eq(_selected(found, fars[chunk]))

        m.submodules.waiting = waiting = Fifo(shape.granule_bits, depth=READS_AHEAD)
        m.d.comb += [waiting.i.valid.eq(arrived), waiting.i.payload.eq(chosen)]
        connect(m, waiting.o, flipped(self.response))
        return m
