"""Responses of a read port of a slice: the choice of the bank, and credits for what was asked."""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.lib.delay import delay
from hw.lib.fifo import Fifo
from hw.lib.loads import copies
from hw.scheduler.core.granules.bank import SliceBank
from hw.scheduler.core.granules.shape import GranuleShape

#: Reads of a port that are granted and not yet taken: one level of LUTRAM.
READS_AHEAD = 32
#: Bits of data that one copy of the selection serves.
_COPY_BITS = 32


class SliceResponse(wiring.Component):
    """Selects each response from its bank, and keeps them in order.

    Behaviour
    ---------
    A response is on ``response`` `LATENCY` cycles after its grant.  ``room`` counts reads granted and not
    taken, so the FIFO never overflows.
    """

    #: From a grant to its response: winner, bank, selection, FIFO.
    LATENCY = 1 + SliceBank.LATENCY + 1 + Fifo.LATENCY

    def __init__(self, shape: GranuleShape) -> None:
        self._shape = shape
        super().__init__(
            {
                "granted": In(1),  #: A read is granted in this cycle.
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
        with m.If(self.granted & ~taken):
            m.d.sync += [credits.eq(credits - 1), self.room.eq(credits != 1)]
        with m.If(taken & ~self.granted):
            m.d.sync += [credits.eq(credits + 1), self.room.eq(1)]

        chunks = shape.granule_bits // _COPY_BITS
        selects = copies(Signal(shape.bank_bits, name="select", reset_less=True), 2 * chunks)
        bank = delay(m, "bank", self.won_bank, SliceBank.LATENCY - 1, reset=False)
        m.d.sync += [select.eq(bank) for select in selects]
        arrived = delay(m, "arrived", self.won, SliceBank.LATENCY)
        chosen = Signal(shape.granule_bits, reset_less=True)
        chosen_valid = Signal()
        m.d.sync += [
            chosen_valid.eq(arrived),
            chosen.eq(Cat(self._chunk(m, n, selects) for n in range(chunks))),
        ]

        m.submodules.waiting = waiting = Fifo(shape.granule_bits, depth=READS_AHEAD)
        m.d.comb += [waiting.i.valid.eq(chosen_valid), waiting.i.payload.eq(chosen)]
        connect(m, waiting.o, flipped(self.response))
        return m

    def _chunk(self, m: Module, chunk: int, selects: list[Signal]) -> Value:
        """Return bits of the selected bank; the banks' halves have copies of their own."""
        values: list[Any] = [word.word_select(chunk, _COPY_BITS) for word in self.banks]
        for bit in range(self._shape.bank_bits):
            half = len(values) // 2
            chosen = []
            for at in range(half):
                select = selects[2 * chunk + (2 * at >= half)]
                # A signal: as an expression it would be written out for each use.
                value = Signal(_COPY_BITS, name=f"chunk_{chunk}_{bit}_{at}")
                m.d.comb += value.eq(Mux(select[bit], values[2 * at + 1], values[2 * at]))
                chosen.append(value)
            values = chosen
        return values[0]
