"""Requests of a register file, as properties see them."""

from amaranth.hdl import Signal
from amaranth.lib.wiring import In

from tests.support.proofs.formal import check, free


def free_inputs(m, dut):
    for name, member in dut.bus.signature.members.items():
        if member.flow == In:
            free(m, getattr(dut.bus, name))
    free(m, dut.done, dut.counters.as_value())


class Requests:
    """Requests of the bus: the write and the read that are due in a cycle. Only bus signals decide."""

    def __init__(self, m, bus, state):
        addressed, filled, asked, sampled = (Signal() for _ in range(4))
        write_word, read_word = Signal(10), Signal(10)
        self.data, self.strobes = Signal(32), Signal(4)
        with m.If(bus.awvalid & bus.awready):
            m.d.sync += [addressed.eq(1), write_word.eq(bus.awaddr[2:])]
        with m.If(bus.wvalid & bus.wready):
            m.d.sync += [filled.eq(1), self.data.eq(bus.wdata), self.strobes.eq(bus.wstrb)]
        with m.If(bus.bvalid & bus.bready):
            m.d.sync += [addressed.eq(0), filled.eq(0)]
        with m.If(bus.arvalid & bus.arready):
            m.d.sync += [asked.eq(1), read_word.eq(bus.araddr[2:])]
        self.read = asked & ~sampled
        with m.If(self.read):
            m.d.sync += sampled.eq(1)
        with m.If(bus.rvalid & bus.rready):
            m.d.sync += [asked.eq(0), sampled.eq(0)]
        for name, there, seen in (
            ("write_word", addressed, write_word),
            ("payload", filled, self.data),
            ("strobes", filled, self.strobes),
            ("read_word", asked, read_word),
        ):
            check(m, ~there | (state[name] == seen), f"{name} is what was on the bus")
        check(m, ~bus.bvalid | (addressed & filled), "a response has a request")
        check(m, ~bus.rvalid | sampled, "an answer has a question")
        check(m, state.reading == asked, "a read is under way while a word is asked for")
        check(m, state.sampled == sampled, "a word is sampled in the cycle after its address")
        check(m, ~sampled | asked, "a word that is sampled was asked for")
        self._write, self._write_word = addressed & filled & ~bus.bvalid, write_word
        self.read_word = read_word
        # The word is there, and not on the bus yet.
        self.answers = sampled & ~bus.rvalid

    def writes(self, offset):
        return self._write & (self._write_word == offset // 4)

    def writes_low(self, offset):
        return self.writes(offset) & self.strobes[0]

    def reads(self, offset):
        return self.read & (self.read_word == offset // 4)
