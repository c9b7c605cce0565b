"""Arbitration of a scratchpad bank: fixed priority within a round, so that no port starves."""

from amaranth.hdl import Cat, Module, Mux, ShapeLike, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.errors import InputError
from hw.lib.arbiter import lowest


class BankArbiter(wiring.Component):
    """Arbiter in rounds: within a round, lower inputs come first (`hw.lib.arbiter` is round-robin).

    Behaviour
    ---------
    One item a cycle; a request is granted in every cycle with a request.  A round consists of the inputs that
    request in its first cycle.  It is served lowest input first, and later requests wait for the next round.
    So an input waits for at most two grants of each other input: one in the current round, one in its own.

    Why
    ---
    Users of a scratchpad often follow each other from bank to bank at a fixed distance.  For example, a core
    writes the result of a word some cycles after a transfer wrote that word.  When the two collide, the core
    must wait.  It then follows one bank further behind, and they never collide again.  If the earlier one
    waits, the later one catches up and they collide again, for ever.  The order of the inputs says which is
    earlier; least-recently-used arbitration does not.
    """

    def __init__(self, shape: ShapeLike, *, inputs: int) -> None:
        if not isinstance(inputs, int) or inputs < 1:
            raise InputError("inputs", inputs, "an integer of at least 1")
        super().__init__(
            {
                "i": In(stream.Signature(shape)).array(inputs),  #: ``ready`` is the grant.
                "valid": Out(1),
                #: The item granted in the previous cycle; undefined while ``valid`` is low.
                "payload": Out(shape),
            }
        )

    def elaborate(self, platform: object) -> Module:
        """Make the gates."""
        m = Module()
        inputs = len(self.i)
        requests = Signal(inputs)
        left = Signal(inputs)
        grant = Signal(inputs)
        now = Signal(inputs)  # inputs not yet served in this round, or those of a new one
        m.d.comb += [
            requests.eq(Cat(port.valid for port in self.i)),
            now.eq(Mux((requests & left).any(), requests & left, requests)),
            grant.eq(lowest(now)),
        ]
        m.d.sync += [left.eq(now & ~grant), self.valid.eq(requests.any())]
        m.d.comb += [port.ready.eq(grant[index]) for index, port in enumerate(self.i)]
        # The payload may be anything without a request, so the last input needs no grant: fewer LUTs a bit.
        granted = Value.cast(self.i[-1].payload)
        for port, mine in reversed(list(zip(self.i, grant, strict=True))[:-1]):
            granted = Mux(mine, Value.cast(port.payload), granted)
        m.d.sync += Value.cast(self.payload).eq(granted)
        return m
