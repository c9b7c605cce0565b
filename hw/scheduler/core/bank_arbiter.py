"""Who may use a bank of the scratchpad: the first in line, but everybody in turn."""

from __future__ import annotations

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.arbiter import lowest


class BankArbiter(wiring.Component):
    """Arbiter in rounds: within a round, lower inputs come first (`hw.lib.arbiter` is round-robin).

    Behaviour
    ---------
    One item a cycle; somebody is granted whenever somebody asks.  Who asks in a cycle that begins a round is
    in it, with all others who ask then; a round is served lowest first, and nobody new is served before it is
    over.  So an input waits for at most two grants of each other one: one of the round under way, one of its
    own.

    Why
    ---
    Users of a scratchpad follow each other from bank to bank, often at a fixed distance: a core writes what a
    transfer brought some cycles ago.  When such two meet, it must be the later one who waits: it then follows
    one place further behind and they never meet again.  If the earlier one waits, the gap travels through to
    the later one and they meet again, for ever.  Who was served least recently says nothing about that; the
    order of the inputs does.
    """

    def __init__(self, shape: ShapeLike, *, inputs: int) -> None:
        if not isinstance(inputs, int) or inputs < 1:
            raise InputError("inputs", inputs, "an integer of at least 1")
        super().__init__(
            {
                "i": In(stream.Signature(shape)).array(inputs),  #: ``ready`` is the grant.
                "valid": Out(1),
                #: What was granted in the cycle before; without meaning while ``valid`` is low.
                "payload": Out(shape),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        inputs = len(self.i)
        requests, left, grant = Signal(inputs), Signal(inputs), Signal(inputs)
        now = Signal(inputs)  # the round: what is left of it, or a new one
        m.d.comb += [
            requests.eq(Cat(port.valid for port in self.i)),
            now.eq(Mux((requests & left).any(), requests & left, requests)),
            grant.eq(lowest(now)),
        ]
        m.d.sync += [left.eq(now & ~grant), self.valid.eq(requests.any())]
        m.d.comb += [port.ready.eq(grant[index]) for index, port in enumerate(self.i)]
        # Without a request anything may be there, so the last input needs no grant: fewer LUTs for each bit.
        granted = Value.cast(self.i[-1].payload)
        for port, mine in reversed(list(zip(self.i, grant, strict=True))[:-1]):
            granted = Mux(mine, Value.cast(port.payload), granted)
        m.d.sync += Value.cast(self.payload).eq(granted)
        return m
