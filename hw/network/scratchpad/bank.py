"""A bank of a slice: one RAM, and the choice among the ports that were granted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.lib.loads import copies
from hw.lib.memory import ports, uninitialised
from hw.network.scratchpad.shape import GranuleShape

#: Bits of data that one copy of a grant selects.
_COPY_BITS = 32


def _chosen(hits: Value, values: Sequence[Any]) -> Value:
    """Return the value whose hit is up; any of them if none is."""
    *others, found = values
    for at in reversed(range(len(others))):
        found = Mux(hits[at], others[at], found)
    return Value.cast(found)


class SliceBank(wiring.Component):
    """Every ``banks``-th granule of a slice.

    ``readers``, ``writers``: ports of the slice.

    Behaviour
    ---------
    At most one reader and one writer hit the bank in a cycle.  A hit comes a cycle before its row and data.
    A read that hits at least a cycle after a write returns the new granule; in the same cycle, the old one in
    simulation and an undefined one in UltraRAM.
    """

    #: Cycles from a hit to ``read_data``: hit, row, RAM, output register.
    LATENCY = 4

    def __init__(self, shape: GranuleShape, *, readers: int, writers: int) -> None:
        self._shape = shape
        super().__init__(
            {
                "read_hit": In(readers),
                "read_row": In(shape.row_bits).array(readers),
                "read_data": Out(shape.granule_bits),
                "write_hit": In(writers),
                "write_row": In(shape.row_bits).array(writers),
                "write_data": In(shape.granule_bits).array(writers),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Hits -> row and data -> RAM -> output register."""
        m = Module()
        shape = self._shape
        read_hit = Signal.like(self.read_hit)
        write_hit = Signal.like(self.write_hit)
        data_hits = copies(
            Signal(len(self.write_hit), name="data_hit", reset_less=True), shape.granule_bits // _COPY_BITS
        )
        m.d.sync += [
            read_hit.eq(self.read_hit),
            write_hit.eq(self.write_hit),
            *(hit.eq(self.write_hit) for hit in data_hits),
        ]
        read = Signal()
        read_row = Signal(shape.row_bits, reset_less=True)
        write = Signal()
        write_row = Signal(shape.row_bits, reset_less=True)
        write_data = Signal(shape.granule_bits, reset_less=True)
        m.d.sync += [
            read.eq(read_hit.any()),
            read_row.eq(_chosen(read_hit, list(self.read_row))),
            write.eq(write_hit.any()),
            write_row.eq(_chosen(write_hit, list(self.write_row))),
            write_data.eq(
                Cat(
                    _chosen(hit, [word.word_select(at, _COPY_BITS) for word in self.write_data])
                    for at, hit in enumerate(data_hits)
                )
            ),
        ]
        m.submodules.ram = ram = uninitialised(
            width=shape.granule_bits, depth=shape.rows, ram_style=shape.memory
        )
        to_ram, from_ram = ports(ram)
        m.d.comb += [
            to_ram.en.eq(write),
            to_ram.addr.eq(write_row),
            to_ram.data.eq(write_data),
            from_ram.en.eq(read),
            from_ram.addr.eq(read_row),
        ]
        held = Signal(shape.granule_bits, reset_less=True)
        m.d.sync += held.eq(from_ram.data)
        m.d.comb += self.read_data.eq(held)
        return m
