"""A slice of the scratchpad: one granule of every word, in banks, for several ports at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from hw.errors import check_whole
from hw.lib.fifo import Fifo
from hw.lib.place import Placer
from hw.network.scratchpad.bank import SliceBank
from hw.network.scratchpad.response import SliceResponse
from hw.network.scratchpad.shape import GranuleShape

#: Requests that wait in front of a port's head.
QUEUE = 16


class SliceReadPort(wiring.Signature):
    """A read port of a slice, seen from its user."""

    def __init__(self, shape: GranuleShape) -> None:
        super().__init__(
            {
                "request": Out(stream.Signature(shape.address_bits)),  #: Address of a word.
                "response": In(stream.Signature(shape.granule_bits)),  #: One for each request, in order.
            }
        )


class SliceWritePort(wiring.Signature):
    """A write port of a slice, seen from its user."""

    def __init__(self, shape: GranuleShape) -> None:
        write = data.StructLayout({"address": shape.address_bits, "data": shape.granule_bits})
        super().__init__(
            {
                "write": Out(stream.Signature(write)),
                #: Every write taken before this cycle was granted before this cycle.
                "idle": In(1),
                "granted": In(1),  #: A write was granted in the last cycle.
            }
        )


class _Head:
    """The oldest request of a port: its bank and row in registers."""

    def __init__(self, shape: GranuleShape, name: str) -> None:
        self.valid = Signal(name=f"{name}_valid")
        self.bank = Signal(shape.bank_bits, name=f"{name}_bank", reset_less=True)
        self.row = Signal(shape.row_bits, name=f"{name}_row", reset_less=True)
        self.eligible = Signal(name=f"{name}_eligible")
        self.grant = Signal(name=f"{name}_grant")
        #: Of the read or write that was granted in the last cycle, and its row a cycle later.
        self.won = Signal(name=f"{name}_won")
        self.won_bank = Signal.like(self.bank, name=f"{name}_won_bank")
        self.won_row = Signal.like(self.row, name=f"{name}_won_row")
        self.late_row = Signal.like(self.row, name=f"{name}_late_row")

    def take(self, m: Module, shape: GranuleShape, requests: Any) -> None:
        """Take the next request when there is none or it is granted; follow the granted one."""
        free = ~self.valid | self.grant
        address = requests.payload
        low = address[: shape.bank_bits]
        m.d.comb += requests.ready.eq(free)
        with m.If(free):
            m.d.sync += [
                self.valid.eq(requests.valid),
                self.bank.eq(low + address[shape.bank_bits : 2 * shape.bank_bits]),
                self.row.eq(address[shape.bank_bits :]),
            ]
        m.d.sync += [
            self.won.eq(self.grant),
            self.won_bank.eq(self.bank),
            self.won_row.eq(self.row),
            self.late_row.eq(self.won_row),
        ]


def _arbitrate(m: Module, heads: Sequence[_Head]) -> None:
    """Grant a head unless an earlier port has an eligible one of the same bank."""
    for at, head in enumerate(heads):
        beaten = [other.eligible & (other.bank == head.bank) for other in heads[:at]]
        m.d.comb += head.grant.eq(head.eligible & ~Cat(beaten).any())


class ScratchpadSlice(wiring.Component):
    """One granule of every word.

    ``readers``, ``writers``: its ports, the most important first.

    Behaviour
    ---------
    Word ``a`` lies in bank ``(a + a // banks) % banks``.  A bank grants one read and one write a cycle, each
    to the first port whose oldest request is of that bank.  So port 0 is granted in every cycle with a
    request and room for its response.  A later port may wait for as long as earlier ones ask for its bank.

    A read granted at least a cycle after a write returns the new granule; in the same cycle, the old one in
    simulation and an undefined one in UltraRAM.  The content at power-up is undefined.

    Why
    ---
    Ports are compared in pairs, so a grant needs no requests sorted by banks first.  The first ports must
    never wait: what an array loses in a cycle is lost, what others lose their queues return.
    """

    #: From a request to its grant without a conflict, and from there to its response.
    REQUEST_LATENCY = Fifo.LATENCY + 1
    RESPONSE_LATENCY = SliceResponse.LATENCY

    def __init__(self, shape: GranuleShape, placer: Placer, *, readers: int, writers: int) -> None:
        check_whole("readers", readers, 1)
        check_whole("writers", writers, 1)
        self._shape = shape
        self._placer = placer
        super().__init__(
            {
                "read": In(SliceReadPort(shape)).array(readers),
                "write": In(SliceWritePort(shape)).array(writers),
            }
        )
        #: ``read_grants``, ``write_grants``: ports whose oldest request is granted in this cycle, for tests.
        self.read_grants = Signal(readers)
        self.write_grants = Signal(writers)

    def elaborate(self, platform: Any) -> Module:
        """Queues -> heads -> grants -> banks -> responses."""
        m = Module()
        readers = [self._reader(m, index, port) for index, port in enumerate(self.read)]
        writers = [self._writer(m, index, port) for index, port in enumerate(self.write)]
        _arbitrate(m, [head for head, _ in readers])
        _arbitrate(m, [head for head, _ in writers])
        m.d.comb += [
            self.read_grants.eq(Cat(head.grant for head, _ in readers)),
            self.write_grants.eq(Cat(head.grant for head, _ in writers)),
        ]

        for number in range(self._shape.banks):
            bank = self._placer.place(
                m,
                f"bank_{number}",
                "network_granule_bank",
                lambda: SliceBank(self._shape, readers=len(readers), writers=len(writers)),
            )
            m.d.comb += [
                bank.read_hit.eq(Cat(head.won & (head.won_bank == number) for head, _ in readers)),
                bank.write_hit.eq(Cat(head.won & (head.won_bank == number) for head, _ in writers)),
            ]
            for index, (head, response) in enumerate(readers):
                m.d.comb += [
                    bank.read_row[index].eq(head.late_row),
                    response.banks[number].eq(bank.read_data),
                ]
            for index, (head, late_data) in enumerate(writers):
                m.d.comb += [
                    bank.write_row[index].eq(head.late_row),
                    bank.write_data[index].eq(late_data),
                ]
        return m

    def _reader(self, m: Module, index: int, port: Any) -> tuple[_Head, Any]:
        """Return the head and the response path of a read port."""
        m.submodules[f"requests_{index}"] = requests = Fifo(self._shape.address_bits, depth=QUEUE)
        connect(m, flipped(port.request), requests.i)
        head = _Head(self._shape, f"read_{index}")
        head.take(m, self._shape, requests.o)
        response = self._placer.place(
            m, f"response_{index}", "network_granule_response", lambda: SliceResponse(self._shape)
        )
        m.d.comb += [
            head.eligible.eq(head.valid & response.room),
            response.won.eq(head.won),
            response.won_bank.eq(head.won_bank),
        ]
        connect(m, response.response, flipped(port.response))
        return head, response

    def _writer(self, m: Module, index: int, port: Any) -> tuple[_Head, Value]:
        """Return the head of a write port, and its data in the cycle of the late row."""
        shape = self._shape
        m.submodules[f"addresses_{index}"] = addresses = Fifo(shape.address_bits, depth=QUEUE)
        # A datum waits until its address was granted a cycle ago: two places more.
        m.submodules[f"data_{index}"] = words = Fifo(shape.granule_bits, depth=QUEUE + 2)
        head = _Head(shape, f"write_{index}")
        head.take(m, shape, addresses.o)
        late_data = Signal(shape.granule_bits, name=f"write_{index}_late_data", reset_less=True)
        m.d.comb += [
            addresses.i.valid.eq(port.write.valid),
            addresses.i.payload.eq(port.write.payload.address),
            words.i.valid.eq(port.write.valid & addresses.i.ready),
            words.i.payload.eq(port.write.payload.data),
            port.write.ready.eq(addresses.i.ready),
            head.eligible.eq(head.valid),
            words.o.ready.eq(head.won),
            port.idle.eq(addresses.empty & ~head.valid),
            port.granted.eq(head.won),
        ]
        m.d.sync += late_data.eq(words.o.payload)
        return head, late_data
