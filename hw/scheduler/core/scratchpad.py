"""The scratchpad: interleaved banks of block RAM or UltraRAM behind a crossbar."""

import itertools
from typing import Any

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import exact_log2

from hw.lib.fifo import Fifo
from hw.lib.memory import RamStyle, ports, uninitialised
from hw.lib.place import Placer
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.core.bank_arbiter import BankArbiter
from hw.scheduler.program.latency import READ_LATENCY, READS_AHEAD

#: Words of a RAM tile: the depth of one UltraRAM.
TILE_ROWS = 4096


def write_layout(config: SchedulerConfig) -> data.StructLayout:
    """Return the payload of a write: word ``address`` and ``data``."""
    return data.StructLayout({"address": config.address_bits, "data": config.word_bits})


class ScratchpadReadPort(wiring.Signature):
    """A read port, seen from its user."""

    def __init__(self, config: SchedulerConfig) -> None:
        super().__init__(
            {
                "request": Out(stream.Signature(config.address_bits)),
                #: One for each request, in order, at least `READ_LATENCY` cycles after it.
                "response": In(stream.Signature(config.word_bits)),
            }
        )


class RamTile(wiring.Component):
    """One RAM with a read and a write port: a module that is elaborated once and instantiated many times."""

    def __init__(self, *, width: int, rows: int, ram_style: RamStyle) -> None:
        self._ram_style: RamStyle = ram_style
        self._width, self._rows = width, rows
        super().__init__(
            {
                "write": In(1),
                "write_row": In(range(rows)),
                "write_data": In(width),
                #: ``read``, ``read_row``, ``read_data``: data is valid in the cycle after ``read``, and until
                #: the next read.
                "read": In(1),
                "read_row": In(range(rows)),
                "read_data": Out(width),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        m.submodules.ram = ram = uninitialised(width=self._width, depth=self._rows, ram_style=self._ram_style)
        write, read = ports(ram)
        m.d.comb += [
            write.en.eq(self.write),
            write.addr.eq(self.write_row),
            write.data.eq(self.write_data),
            read.en.eq(self.read),
            read.addr.eq(self.read_row),
            self.read_data.eq(read.data),
        ]
        return m


class Bank(wiring.Component):
    """Every ``banks``-th word of the scratchpad: RAM tiles, and an arbiter for each direction.

    ``ports``: ports of each direction.

    Behaviour
    ---------
    Each direction grants one port a cycle (`BankArbiter`); ``ready`` is the grant.  Reads and writes reach
    the RAM one cycle later.  A read granted after a write returns the written word.
    """

    def __init__(self, config: SchedulerConfig, placer: Placer, *, ports: int) -> None:
        self._config = config
        self._placer = placer
        row = range(config.bank_rows)
        self._read = data.StructLayout({"row": row})
        self._write = data.StructLayout({"row": row, "data": config.word_bits})
        super().__init__(
            {
                "read": In(stream.Signature(self._read)).array(ports),
                "write": In(stream.Signature(self._write)).array(ports),
                "read_data": Out(config.word_bits),  #: Of a read granted in cycle t: in cycle t + 3.
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Arbiters -> tiles -> output register."""
        m = Module()
        config = self._config
        m.submodules.reads = reads = BankArbiter(self._read, inputs=len(self.read))
        m.submodules.writes = writes = BankArbiter(self._write, inputs=len(self.write))
        for arbiter, outers in ((reads, self.read), (writes, self.write)):
            for inner, outer in zip(arbiter.i, outers, strict=True):
                connect(m, flipped(outer), inner)

        rows = min(config.bank_rows, TILE_ROWS)
        tiles = -(-config.bank_rows // rows)
        row_bits = exact_log2(TILE_ROWS) if tiles > 1 else len(reads.payload.row)
        arrived = Signal(tiles)  # one bit a tile
        for index in range(tiles):
            tile = self._placer.place(
                m,
                f"tile_{index}",
                "scheduler_tile",
                lambda: RamTile(width=config.word_bits, rows=rows, ram_style=config.memory),
            )
            for arbiter, enable, row in (
                (reads, tile.read, tile.read_row),
                (writes, tile.write, tile.write_row),
            ):
                here = arbiter.payload.row[row_bits:] == index
                m.d.comb += [
                    row.eq(arbiter.payload.row[:row_bits]),
                    enable.eq(arbiter.valid & here),
                ]
            m.d.comb += tile.write_data.eq(writes.payload.data)
            m.d.sync += arrived[index].eq(tile.read)
            with m.If(arrived[index]):
                m.d.sync += self.read_data.eq(tile.read_data)
        return m


class Scratchpad(wiring.Component):
    """All words of the scratchpad, for several users at once.

    Behaviour
    ---------
    ``ready`` is the grant.  Word ``a`` lies in bank ``a % banks``.  A bank grants one read and one write a
    cycle; a port waits for at most two words of each other port.  Two sequential users collide in a bank
    once: the later one waits a cycle, and from then on they follow each other from bank to bank.

    A read granted at least a cycle after a write returns the new word; in the same cycle, the old one.  The
    content at power-up is undefined.
    """

    def __init__(self, config: SchedulerConfig, placer: Placer) -> None:
        self._config = config
        self._placer = placer
        ports = config.cores + 1
        super().__init__(
            {
                #: Of the cores, then of the write engine.
                "read": In(ScratchpadReadPort(config)).array(ports),
                #: Of the read engine, then of the cores.  In both directions words flow from lower to higher
                #: ports, so that the earlier of two users has priority (`BankArbiter`).
                "write": In(stream.Signature(write_layout(config))).array(ports),
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """Requests -> banks, by the low bits of the address -> responses, selected by the bank requested."""
        m = Module()
        config = self._config
        banks = [
            self._placer.place(
                m,
                f"bank_{number}",
                "scheduler_bank",
                lambda: Bank(config, self._placer, ports=len(self.read)),
            )
            for number in range(config.banks)
        ]
        low = exact_log2(config.banks)
        for index, port in enumerate(self.write):
            for number, bank in enumerate(banks):
                m.d.comb += [
                    bank.write[index].payload.row.eq(port.payload.address[low:]),
                    bank.write[index].payload.data.eq(port.payload.data),
                    bank.write[index].valid.eq(port.valid & (port.payload.address[:low] == number)),
                ]
            m.d.comb += port.ready.eq(Cat(bank.write[index].ready for bank in banks).any())
        for index, port in enumerate(self.read):
            self._read_port(m, index, port, banks)
        return m

    def _read_port(self, m: Module, index: int, port: Any, banks: list[Any]) -> None:
        """Request only while the response FIFO has room; select each response from its bank."""
        low = exact_log2(len(banks))
        m.submodules[f"responses_{index}"] = responses = Fifo(self._config.word_bits, depth=READS_AHEAD)
        room = Signal(range(READS_AHEAD + 1), init=READS_AHEAD, name=f"room_{index}")
        some_room = Signal(init=1, name=f"some_room_{index}")
        for number, bank in enumerate(banks):
            here = port.request.payload[:low] == number
            m.d.comb += [
                bank.read[index].payload.row.eq(port.request.payload[low:]),
                bank.read[index].valid.eq(port.request.valid & some_room & here),
            ]
        granted = Cat(bank.read[index].ready for bank in banks).any()
        m.d.comb += port.request.ready.eq(granted)
        taken = port.response.valid & port.response.ready
        with m.If(granted & ~taken):
            m.d.sync += [room.eq(room - 1), some_room.eq(room != 1)]
        with m.If(taken & ~granted):
            m.d.sync += [room.eq(room + 1), some_room.eq(1)]

        # Banks of the words granted one, two and three cycles ago.
        stages = [
            Signal(data.StructLayout({"valid": 1, "bank": low}), name=f"asked_{index}_{age}")
            for age in range(1, READ_LATENCY)
        ]
        m.d.sync += [stages[0].valid.eq(granted), stages[0].bank.eq(port.request.payload[:low])]
        m.d.sync += [later.eq(earlier) for earlier, later in itertools.pairwise(stages)]
        m.d.comb += responses.i.valid.eq(stages[-1].valid)
        for number, bank in enumerate(banks):
            with m.If(stages[-1].bank == number):
                m.d.comb += responses.i.payload.eq(bank.read_data)
        connect(m, responses.o, flipped(port.response))
