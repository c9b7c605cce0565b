"""The arbiter, for all time: fair, exclusive, work-conserving, lossless, packets whole."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from amaranth.hdl import Cat, Elaboratable, Module, Signal
from amaranth.lib import data

from hw.lib.arbiter import Arbiter
from tests.formal.stream_properties import first_in_first_out, free_input, free_output
from tests.support.proofs.formal import PropertyFailure, check, constant, cover, free, prove, reach, suppose
from tests.support.proofs.mutants import mutant

PACKET = data.StructLayout({"value": 1, "last": 1})


class ArbiterSpec(Elaboratable):
    """An arbiter between free neighbours; ``who`` is any one input, followed in fairness and order."""

    def __init__(self, cls=Arbiter, *, inputs=3, packets=False):
        self.inputs = inputs
        self.packets = packets
        self.dut = cls(PACKET if packets else 2, inputs=inputs, packets=packets)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        for index in range(self.inputs):
            free_input(m, dut.i[index], f"i{index}")
        free_output(m, dut.o, "o")

        transfers = Signal(self.inputs, name="transfers")
        requests = Signal(self.inputs, name="requests")
        who = Signal(self.inputs, name="who")  # one-hot
        constant(m, who)
        one_hot = Cat(who == 1 << index for index in range(self.inputs)).any()
        suppose(m, one_hot, "one input is followed")
        m.d.comb += [
            requests.eq(Cat(port.valid for port in dut.i)),
            transfers.eq(Cat(port.valid & port.ready for port in dut.i)),
        ]
        check(m, (transfers & (transfers - 1)) == 0, "at most one input is served in a cycle")
        self._fairness(m, who, requests, transfers)
        if self.packets:
            self._whole_packets(m)
        else:
            with m.If(requests.any() & (~dut.o.valid | dut.o.ready)):
                check(m, transfers.any(), "somebody is served when somebody asks and there is room")
            self._order(m, who)
        return m

    def _fairness(self, m, who, requests, transfers):
        """Count the items (or packets) of others that pass while ``who`` waits."""
        passed = Signal(range(self.inputs + 2), name="passed")
        served = Signal(name="served")
        m.d.comb += served.eq((transfers & who).any())
        ends = Signal(name="ends")
        m.d.comb += ends.eq(transfers.any())
        if self.packets:
            lasts = Cat(port.p.last for port in self.dut.i)
            m.d.comb += ends.eq((transfers & lasts).any())
        with m.If(served | ~(requests & who).any()):
            m.d.sync += passed.eq(0)
        with m.Elif(ends & (passed != self.inputs + 1)):
            m.d.sync += passed.eq(passed + 1)
        # Of packets, one more may be under way when the waiting begins.
        limit = self.inputs - 1 + self.packets
        check(m, passed <= limit, f"who waits is served within {self.inputs} grants")
        reach(m, passed == self.inputs - 1, "an input waits as long as it may")

    def _order(self, m, who):
        """First in, first out from input ``who`` to the items that say they come from there."""
        dut = self.dut
        i = SimpleNamespace(valid=Signal(name="w_valid"), ready=Signal(name="w_ready"), payload=Signal(2))
        o = SimpleNamespace(valid=Signal(name="s_valid"), ready=dut.o.ready, payload=dut.o.payload)
        for index, port in enumerate(dut.i):
            with m.If(who[index]):
                m.d.comb += [i.valid.eq(port.valid), i.ready.eq(port.ready), i.payload.eq(port.payload)]
                m.d.comb += o.valid.eq(dut.o.valid & (dut.source == index))
        first_in_first_out(m, i, o, capacity=1, latency=0)

    def _whole_packets(self, m):
        dut = self.dut
        inside = Signal(name="inside")
        owner = Signal.like(dut.source, name="owner")
        with m.If(dut.o.valid & dut.o.ready):
            m.d.sync += [inside.eq(~dut.o.p.last), owner.eq(dut.source)]
        with m.If(dut.o.valid & inside):
            check(m, dut.source == owner, "no item comes between those of a packet")
        reach(m, inside & dut.o.valid & dut.o.p.last, "a packet of several items passes")


class LoneSource(Elaboratable):
    """Source numbers are right: only input ``who`` sends, and ``source`` says so."""

    def __init__(self, cls=Arbiter):
        self.dut = cls(1, inputs=3)

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        number = Signal(range(3), name="number")
        constant(m, number)
        suppose(m, number < 3, "one of the inputs")
        free(m, dut.o.ready)
        for index, port in enumerate(dut.i):
            free(m, port.payload)
            m.d.comb += port.valid.eq(number == index)
        with m.If(dut.o.valid):
            check(m, dut.source == number, "source names the sender")
        return m


@pytest.mark.parametrize("inputs", [1, 2, 3, 4])
def test_items(inputs):
    prove(ArbiterSpec(inputs=inputs), depth=1)
    cover(ArbiterSpec(inputs=inputs), depth=10)


@pytest.mark.parametrize("inputs", [2, 3])
def test_packets(inputs):
    prove(ArbiterSpec(inputs=inputs, packets=True), depth=1)
    cover(ArbiterSpec(inputs=inputs, packets=True), depth=10)


def test_source():
    prove(LoneSource(), depth=2)
    cover(LoneSource(), depth=4)


BUGS = {
    "always the lowest first": (
        "first = requests & behind",
        "first = requests & 0",
        False,
        "within 3 grants",
    ),
    "the one just served again": (
        "behind.eq(~(grant | (grant - 1)))",
        "behind.eq(~(grant - 1))",
        False,
        "within 3 grants",
    ),
    "two at once": (
        "m.d.comb += grant.eq(choice)",
        "m.d.comb += grant.eq(choice | (requests & 1))",
        False,
        "at most one input",
    ),
    "offered item replaced": (
        "with m.If(free):",
        "with m.If(free | requests[0]):",
        False,
        "payload holds|lost|marked|given",
    ),
    "taken without room": (
        "port.ready.eq(free & grant[index])",
        "port.ready.eq(grant[index])",
        False,
        "capacity|lost|marked",
    ),
    "valid falls": (
        "with m.If(free):",
        "with m.If(~free):\n            m.d.sync += self.o.valid.eq(0)\n        with m.Else():",
        False,
        "valid holds",
    ),
    "last input forgotten": (
        "requests.eq(Cat(port.valid for port in self.i))",
        "requests.eq(Cat(port.valid for port in list(self.i)[:-1]))",
        False,
        "somebody is served|within 3 grants",
    ),
    "lock ignored": ("with m.If(locked):", "with m.If(0):", True, "no item comes between"),
    "lock never let go": ("locked.eq(~last)", "locked.eq(1)", True, "within 3 grants"),
}


@pytest.mark.sample(2)
@pytest.mark.parametrize("bug", BUGS)
def test_seeded_bug_is_found(bug):
    old, new, packets, words = BUGS[bug]
    with pytest.raises(PropertyFailure, match=words):
        prove(ArbiterSpec(mutant(Arbiter, old, new), packets=packets), depth=1)


def test_seeded_wrong_source_is_found():
    with pytest.raises(PropertyFailure, match="source names the sender"):
        prove(LoneSource(mutant(Arbiter, "source.eq(index)", "source.eq(index >> 1)")), depth=1)
