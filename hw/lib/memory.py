"""On-chip memory: banks of block RAM or UltraRAM without initial content.

UltraRAM cannot be initialised.  Memories made here have the attribute `NO_INIT`, and
`hw.lib.convert.to_verilog` writes no initial content for them.  `BankedMemory.clear` zeroes them.
"""

from typing import Any, Literal, get_args

from amaranth.hdl import Module, Signal, unsigned
from amaranth.lib import memory as amaranth_memory
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError, check_one_of

RamStyle = Literal["distributed", "block", "ultra"]

#: Attribute of memories with undefined content at power-up.
NO_INIT = "loomwork_no_init"


def check_ram_style(ram_style: str) -> None:
    """Raise `InputError` unless ``ram_style`` is a style of the tools."""
    check_one_of("ram_style", ram_style, get_args(RamStyle))


def uninitialised(*, width: int, depth: int, ram_style: RamStyle) -> amaranth_memory.Memory:
    """Make a memory of ``depth`` words of ``width`` bits for the given kind of RAM, without initial content.

    It starts with zeros in Amaranth's simulator, and undefined in Verilog.
    """
    check_ram_style(ram_style)
    return amaranth_memory.Memory(
        shape=unsigned(width), depth=depth, init=[], attrs={"ram_style": ram_style, NO_INIT: 1}
    )


def ports(
    ram: amaranth_memory.Memory, *, domain: str = "sync", granularity: int | None = None
) -> tuple[Any, Any]:
    """Return a write port and a read port of ``ram``; the latter in ``domain``.

    Amaranth names a port after its variable.  In Python 3.13 it finds none where one line assigns two
    variables, so that Verilog would differ between machines.
    """
    write = ram.write_port(granularity=granularity)
    read = ram.read_port(domain=domain)
    return write, read


class BankWriteSignature(wiring.Signature):
    """A write port, seen from the memory's user.

    >>> BankWriteSignature(depth=64, lanes=4, lane_width=8).members["data"]
    Out(32)
    """

    def __init__(self, *, depth: int, lanes: int, lane_width: int) -> None:
        super().__init__(
            {
                "en": Out(lanes),  #: One bit a lane: writes this lane of the word.
                "addr": Out(range(depth)),
                "data": Out(lanes * lane_width),  #: Lane 0 in the low bits.
            }
        )


class BankReadSignature(wiring.Signature):
    """A read port, seen from the memory's user.

    >>> BankReadSignature(depth=64, lanes=4, lane_width=8).members["data"]
    In(32)
    """

    def __init__(self, *, depth: int, lanes: int, lane_width: int) -> None:
        super().__init__(
            {
                "en": Out(1),  #: Reads the word at ``addr``; otherwise ``data`` keeps its value.
                "addr": Out(range(depth)),
                #: ``read_latency`` cycles after ``en``.
                "data": In(lanes * lane_width),
            }
        )


class BankedMemory(wiring.Component):
    """Equal banks, each with one read and one write port of its own.

    * ``banks``: number of banks, at least 1.
    * ``depth``: words a bank, at least 2.
    * ``lanes``, ``lane_width``: a word is ``lanes`` lanes of ``lane_width`` bits, each with its own write
      enable.  Block RAM and UltraRAM have write enables for 8 or 9 bits; ``lane_width`` is a multiple of one
      of these, or every lane costs a RAM.
    * ``ram_style``: ``"ultra"``, ``"block"`` or ``"distributed"``.
    * ``read_latency``: 1, or 2 with an output register, for the clock of UltraRAM.

    Behaviour
    ---------
    One read and one write a bank and cycle.  ``data`` of a read in cycle t is valid from cycle t +
    ``read_latency`` until the next read's data.  A read and a write of one word in the same cycle: the read
    returns the old word in simulation, and an undefined one in UltraRAM.  Content at power-up is undefined;
    ``rst`` resets only the clearing counter.

    Example
    -------
    >>> memory = BankedMemory(banks=4, depth=512, lanes=8, lane_width=9, ram_style="ultra", read_latency=2)
    >>> len(memory.read), len(memory.read[0].data)
    (4, 72)
    """

    def __init__(
        self,
        *,
        banks: int,
        depth: int,
        lanes: int,
        lane_width: int,
        ram_style: RamStyle,
        read_latency: int = 1,
    ) -> None:
        for name, value, least in (
            ("banks", banks, 1),
            ("depth", depth, 2),
            ("lanes", lanes, 1),
            ("lane_width", lane_width, 1),
        ):
            if not isinstance(value, int) or value < least:
                raise InputError(name, value, f"an integer of at least {least}")
        if read_latency not in (1, 2):
            raise InputError("read_latency", read_latency, "1 or 2")
        check_ram_style(ram_style)
        self.banks = banks
        self.depth = depth
        self.lanes = lanes
        self.lane_width = lane_width
        self.ram_style: RamStyle = ram_style
        self.read_latency = read_latency
        write = BankWriteSignature(depth=depth, lanes=lanes, lane_width=lane_width)
        read = BankReadSignature(depth=depth, lanes=lanes, lane_width=lane_width)
        super().__init__(
            {
                "write": In(write).array(banks),
                "read": In(read).array(banks),
                "clear": In(1),  #: Starts clearing, unless it runs.
                #: Clearing uses the write ports: writes of the user are lost.  Up for ``depth`` cycles from
                #: the cycle after ``clear``; then every word is zero.
                "clearing": Out(1),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        clear_addr = Signal(range(self.depth))
        with m.If(self.clearing):
            m.d.sync += clear_addr.eq(clear_addr + 1)
            with m.If(clear_addr == self.depth - 1):
                m.d.sync += [self.clearing.eq(0), clear_addr.eq(0)]
        with m.Elif(self.clear):
            m.d.sync += self.clearing.eq(1)

        for bank in range(self.banks):
            ram = uninitialised(
                width=self.lanes * self.lane_width, depth=self.depth, ram_style=self.ram_style
            )
            m.submodules[f"bank_{bank}"] = ram
            user_write, user_read = self.write[bank], self.read[bank]
            write = ram.write_port(granularity=self.lane_width)
            m.d.comb += [
                write.en.eq(user_write.en),
                write.addr.eq(user_write.addr),
                write.data.eq(user_write.data),
            ]
            with m.If(self.clearing):
                m.d.comb += [write.en.eq(-1), write.addr.eq(clear_addr), write.data.eq(0)]

            read = ram.read_port()
            m.d.comb += [read.en.eq(user_read.en), read.addr.eq(user_read.addr)]
            if self.read_latency == 1:
                m.d.comb += user_read.data.eq(read.data)
            else:
                arrived = Signal(name=f"arrived_{bank}")
                held = Signal(len(read.data), name=f"held_{bank}", reset_less=True)
                m.d.sync += arrived.eq(user_read.en)
                m.d.comb += user_read.data.eq(held)
                with m.If(arrived):
                    m.d.sync += held.eq(read.data)
        return m
