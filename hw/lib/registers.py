"""The register file of a kernel: AXI-Lite in, a start pulse, arguments and an interrupt out."""

from collections.abc import Mapping
from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Cat, Const, Elaboratable, Module, Mux, Signal, Value
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.lib import axi
from hw.lib.arguments import RANGE_BYTES, ArgumentTable

#: Byte offsets of the registers that every ``ap_ctrl_hs`` kernel has.
CONTROL, GLOBAL_INTERRUPT_ENABLE, INTERRUPT_ENABLE, INTERRUPT_STATUS = 0x00, 0x04, 0x08, 0x0C
#: Bits of the control register.
AP_START, AP_DONE, AP_IDLE, AP_READY, AUTO_RESTART = 0, 1, 2, 3, 7
#: Bits of the interrupt registers.
INTERRUPT_DONE, INTERRUPT_READY = 0, 1
#: Bits of a byte address on ``s_axi_control``.
ADDR_WIDTH = (RANGE_BYTES - 1).bit_length()


def arguments_layout(table: ArgumentTable) -> data.StructLayout:
    """Return the layout of the arguments of ``table``, in call order."""
    return data.StructLayout({argument.name: argument.bits for argument in table.call})


def counters_layout(table: ArgumentTable) -> data.StructLayout:
    """Return the layout of the counters of ``table``."""
    return data.StructLayout({counter.name: counter.bits for counter in table.counters})


#: Words of a block: one is selected in the first cycle, one block in the second.
_BLOCK_WORDS = 16
_PLACE_BITS = _BLOCK_WORDS.bit_length() - 1
#: Bits of a word selected by one copy of the address: five LUTs each.
_PLACE_LOADS = 11


class RegisterFile(wiring.Component):
    """AXI-Lite registers of an ``ap_ctrl_hs`` kernel, as Vitis and XRT drive them.

    Registers
    ---------
    0x00 control
        Bit 0 start: set by writing 1, cleared by ``done``.  With bit 7 (auto-restart) the kernel starts again
        instead, with the arguments of that moment.  Writing 1 while it is set has no effect.  Bits 1 done and
        3 ready: set by ``done``, cleared by a read.  Bit 2 idle: bit 0 is not set.
    0x04 global interrupt enable (bit 0), 0x08 interrupt enable, 0x0C interrupt status
        Bit 0 done, bit 1 ready.  An enabled event sets its status bit; writing 1 toggles it; the event has
        priority.
    0x10 ... arguments
        Read and written, with byte strobes.  Values written while the kernel runs apply to the next start.
    secret arguments
        Read zero.  The first write of a word after reset counts, with any of its strobes; later ones do
        nothing.  A write of a locking argument ends all of them.  A write without a strobe is none.
    0x400 ... counters
        Read only, 64 bit.  Reading a low word latches the high word of the same moment; every high word then
        reads as the latched one.  Read low, then high.
    elsewhere
        Reads zero; writes do nothing.  The response is always OKAY.

    Behaviour
    ---------
    One read and one write at a time, independent of each other.  A read takes 3 cycles from address to data.
    A write takes 2 from the later of address and data to its response; ``start`` and the argument follow a
    cycle later.  Every output is a register, except the readies (one gate) and ``interrupt`` (two).

    Why
    ---
    Unmapped addresses answer OKAY, as kernels of Vitis HLS do: software probes registers, and an error
    response would be a bus fault.  Arguments are copied at the start: no body needs copies, and auto-restart
    never sees half a pointer.  A word is selected in two cycles, within its block and then among blocks; in
    one cycle that is the longest path of a kernel with many registers.  No register has many loads: every
    argument has its own copy of the idle flag, every byte its own enable, every block its own address.

    Example
    -------
    >>> from hw.lib.arguments import Argument, ArgumentKind
    >>> table = ArgumentTable((Argument(name="n", kind=ArgumentKind.SCALAR, doc="Elements"),))
    >>> registers = RegisterFile(table)
    >>> registers.args.shape()
    StructLayout({'n': 32})
    """

    def __init__(self, table: ArgumentTable) -> None:
        self.table = table
        super().__init__(
            {
                "bus": In(axi.LiteSignature(addr_width=ADDR_WIDTH)),
                "start": Out(1),  #: One-cycle pulse: the kernel begins.
                #: One-cycle pulse: the kernel has ended; in the cycle of ``start`` at the earliest.  Ignored
                #: when it does not run.
                "done": In(1),
                #: The arguments at ``start``, constant until ``done``; then they follow the host's writes.
                "args": Out(arguments_layout(table)),
                "counters": In(counters_layout(table)),
                #: With secret arguments alone.  ``keyed``: all their words are written.  Constant as ``args``
                #: are.  ``forget``: sets them to zero, at once, while it is high.
                **({"keyed": Out(1), "forget": In(1)} if table.secrets else {}),
                #: Level: the global enable and a bit of the interrupt status are set.
                "interrupt": Out(1),
            }
        )
        # The whole state, under names for proofs.
        self.state = Signal(
            data.StructLayout(
                {
                    "started": 1,
                    "running": 1,
                    "done": 1,
                    "ready": 1,
                    "restart": 1,
                    "enabled": 1,
                    "enables": 2,
                    "status": 2,
                    "args": arguments_layout(table),
                    "high": 32,
                    "has_address": 1,
                    "write_word": ADDR_WIDTH - 2,
                    "has_data": 1,
                    "payload": 32,
                    "strobes": 4,
                    "reading": 1,
                    "sampled": 1,
                    "read_word": ADDR_WIDTH - 2,
                }
            )
        )
        # By offset: whether a secret word is written.  None is written any more.
        self.written = {
            offset: Signal(name=f"written_{offset:x}")
            for register in table.registers
            if register.argument.secret
            for offset in range(register.offset, register.offset + register.argument.bits // 8, 4)
        }
        self.locked = Signal()
        # The sampled word, and the high word of the same moment.
        self.answer = Signal(32)
        self.kept = Signal(32)
        # Registers beside the state: write enables of a word's bytes, an argument's copy follows the host,
        # and the address within a block.
        self.enables = {
            offset: Signal(4, name=f"write_{offset:x}")
            for register in table.registers
            for offset in range(register.offset, register.offset + register.argument.bits // 8, 4)
        }
        self.follows = {
            register.argument.name: Signal(
                init=1, name=f"follows_{register.argument.name}", attrs={"keep": 1}
            )
            for register in table.registers
        }
        counters = {register.offset for register in table.counter_registers}
        self.places = {
            (name, block, low): Signal(
                _PLACE_BITS, name=f"{name}_place_{block}_{low}", reset_less=True, attrs={"keep": 1}
            )
            for name, offsets in (("word", {CONTROL, *self.enables, *counters}), ("high", counters))
            for block in sorted({offset // 4 // _BLOCK_WORDS for offset in offsets})
            for low in range(0, 32, _PLACE_LOADS)
        }

    def elaborate(self, platform: Any) -> Elaboratable:
        """Two bus engines, and the registers between them."""
        m = Module()
        state = self.state
        # Up from the first cycle out of reset, later than ``ap_rst_n``.
        awake = Signal()
        m.d.sync += awake.eq(1)
        write, read = self._write_engine(m, awake), self._read_engine(m, awake)
        payload, strobes = state.payload, state.strobes

        def writes(offset: int) -> Any:
            return write & (state.write_word == offset // 4)

        def reads(offset: int) -> Any:
            return read & (state.read_word == offset // 4)

        # Start and done.
        ended = Signal()
        launch = Signal()
        m.d.comb += [ended.eq(self.done & state.running), launch.eq(state.started & ~state.running)]
        m.d.sync += self.start.eq(launch)
        with m.If(launch):
            m.d.sync += [state.running.eq(1), *(follow.eq(0) for follow in self.follows.values())]
        for name, follow in self.follows.items():
            with m.If(follow):
                m.d.sync += self.args[name].eq(state.args[name])
        with m.If(reads(CONTROL)):
            m.d.sync += [state.done.eq(0), state.ready.eq(0)]
        with m.If(ended):
            m.d.sync += [state.running.eq(0), *(follow.eq(1) for follow in self.follows.values())]
            m.d.sync += [state.started.eq(state.restart), state.done.eq(1), state.ready.eq(1)]
        with m.If(writes(CONTROL) & strobes[0]):
            m.d.sync += state.restart.eq(payload[AUTO_RESTART])
            with m.If(payload[AP_START]):
                m.d.sync += state.started.eq(1)

        # Interrupt.
        with m.If(writes(GLOBAL_INTERRUPT_ENABLE) & strobes[0]):
            m.d.sync += state.enabled.eq(payload[0])
        with m.If(writes(INTERRUPT_ENABLE) & strobes[0]):
            m.d.sync += state.enables.eq(payload)
        toggles = Mux(writes(INTERRUPT_STATUS) & strobes[0], payload[:2], 0)
        m.d.sync += state.status.eq((state.status ^ toggles) | Mux(ended, state.enables, 0))
        m.d.comb += self.interrupt.eq(state.enabled & state.status.any())

        # The value of each word.
        control = Signal(8)
        m.d.comb += [
            control[AP_START].eq(state.started),
            control[AP_DONE].eq(state.done),
            control[AP_IDLE].eq(~state.started),
            control[AP_READY].eq(state.ready),
            control[AUTO_RESTART].eq(state.restart),
        ]
        words: dict[int, Any] = {
            CONTROL: control,
            GLOBAL_INTERRUPT_ENABLE: state.enabled,
            INTERRUPT_ENABLE: state.enables,
            INTERRUPT_STATUS: state.status,
        }
        for register in self.table.registers:
            for part in range(register.argument.bits // 32):
                offset = register.offset + 4 * part
                word = state.args[register.argument.name].word_select(part, 32)
                if not register.argument.secret:
                    words[offset] = word
                enable = self.enables[offset]
                m.d.sync += enable.eq(Mux(writes(offset) & self._may_write(offset), strobes, 0))
                for lane in range(4):
                    with m.If(enable[lane]):
                        m.d.sync += word.word_select(lane, 8).eq(payload.word_select(lane, 8))
        self._protect(m)
        high_words: dict[int, Any] = {}
        for register in self.table.counter_registers:
            value = self.counters[register.argument.name]
            words[register.offset], words[register.offset + 4] = value[:32], state.high
            high_words[register.offset] = value[32:]
        m.d.comb += [
            self.answer.eq(self._sample(m, "word", words)),
            self.kept.eq(self._sample(m, "high", high_words)),
        ]
        with m.If(state.sampled & ~self.bus.rvalid):
            m.d.sync += self.bus.rdata.eq(self.answer)
            with m.Switch(state.read_word):
                for offset in high_words:
                    with m.Case(offset // 4):
                        m.d.sync += state.high.eq(self.kept)
        return m

    def _may_write(self, offset: int) -> Value:
        """Return whether a word takes a write: a secret one takes the first, unless it is locked."""
        return ~(self.written[offset] | self.locked) if offset in self.written else Const(1)

    def _protect(self, m: Module) -> None:
        """Record written secret words, and the lock; forget secrets."""
        for offset, written in self.written.items():
            with m.If(self.enables[offset].any()):
                m.d.sync += written.eq(1)
        for register in self.table.registers:
            if register.argument.locks:
                with m.If(self.enables[register.offset].any()):
                    m.d.sync += self.locked.eq(1)
        if self.table.secrets:
            with m.If(self.follows[self.table.secrets[-1].name]):
                m.d.sync += self.keyed.eq(Cat(self.written.values()).all())
            with m.If(self.forget):
                for secret in self.table.secrets:
                    m.d.sync += [self.state.args[secret.name].eq(0), self.args[secret.name].eq(0)]

    def _sample(self, m: Module, name: str, words: Mapping[int, Any]) -> Value:
        """Sample the addressed word in each block of ``words``, by offset, or 0 outside the block; return the
        sample of the cycle before.
        """
        answers: list[Value] = [Const(0, 32)]
        for block in sorted({offset // 4 // _BLOCK_WORDS for offset in words}):
            sampled = Signal(32, name=f"{name}_{block}", reset_less=True)
            answers.append(sampled)
            in_block = [words.get(4 * (_BLOCK_WORDS * block + n), Const(0)) for n in range(_BLOCK_WORDS)]
            here = self.state.read_word[_PLACE_BITS:] == block
            for low in range(0, 32, _PLACE_LOADS):
                bits = slice(low, min(32, low + _PLACE_LOADS))
                # Used only in the cycle after the address, so without an enable.
                place = self.places[name, block, low]
                m.d.sync += place.eq(self.bus.araddr[2:])
                level = [Value.cast(word)[bits] for word in in_block]
                for bit in place:
                    level = [Mux(bit, high, low) for low, high in zip(level[::2], level[1::2], strict=True)]
                m.d.sync += sampled[bits].eq(Mux(here, level[0], 0))
        return reduce(or_, answers)

    def _write_engine(self, m: Module, awake: Signal) -> Signal:
        """Collect an address and data in any order; return the write pulse."""
        bus, state = self.bus, self.state
        now = Signal()
        m.d.comb += [
            bus.awready.eq(awake & ~state.has_address),
            bus.wready.eq(awake & ~state.has_data),
            now.eq(state.has_address & state.has_data & ~bus.bvalid),
        ]
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [state.has_address.eq(1), state.write_word.eq(bus.awaddr[2:])]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [state.has_data.eq(1), state.payload.eq(bus.wdata), state.strobes.eq(bus.wstrb)]
        with m.If(now):
            m.d.sync += bus.bvalid.eq(1)
        with m.If(bus.bvalid & bus.bready):
            m.d.sync += [bus.bvalid.eq(0), state.has_address.eq(0), state.has_data.eq(0)]
        return now

    def _read_engine(self, m: Module, awake: Signal) -> Signal:
        """Take an address, sample its word a cycle later, answer; return the sample pulse."""
        bus, state = self.bus, self.state
        now = Signal()
        m.d.comb += [bus.arready.eq(awake & ~state.reading), now.eq(state.reading & ~state.sampled)]
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [state.reading.eq(1), state.read_word.eq(bus.araddr[2:])]
        with m.If(now):
            m.d.sync += state.sampled.eq(1)
        with m.If(state.sampled):
            m.d.sync += bus.rvalid.eq(1)
        with m.If(bus.rvalid & bus.rready):
            m.d.sync += [bus.rvalid.eq(0), state.reading.eq(0), state.sampled.eq(0)]
        return now
