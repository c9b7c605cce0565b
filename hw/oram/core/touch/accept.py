"""Acceptance of commands: its times depend on public times alone."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.core.layouts import BEAT_BITS
from hw.oram.core.touch.credits import Credits


class Accept(wiring.Component):
    """Passes whole commands on, at least an interval apart.

    Behaviour
    ---------
    a(n) is the first cycle, at least ``interval`` after a(n - 1), in which a command has arrived and fewer
    than ``config.accepted`` operations wait for their issue. Pulses count from the next cycle on. The
    command's first beat is on ``o`` in the cycle after a(n).
    """

    def __init__(self, config: OramConfig) -> None:
        self._config = config
        super().__init__(
            {
                "arrived": In(1),  #: Pulse: one more whole command is at ``i``.
                "i": In(stream.Signature(BEAT_BITS)),
                "o": Out(stream.Signature(BEAT_BITS)),  #: The user takes a command within the interval.
                #: Pulse: the oldest accepted operation's first touch is issued.
                "issued": In(1),
                "halt": In(1),  #: Stops all acceptance.
                "accepted": Out(1),  #: Pulse in the cycle after the acceptance, a(n).
            }
        )
        self.commands = Credits(config.command_records, full=False)
        self.operations = Credits(config.accepted)

    def elaborate(self, platform: Any) -> Module:
        """Count commands and operations, and the cycles since the last acceptance."""
        m = Module()
        config = self._config
        m.submodules.commands, m.submodules.operations = self.commands, self.operations
        wait = Signal(range(config.interval))
        passing = Signal()
        go = Signal()
        beats = config.command_bytes // BEAT_BYTES
        left = Signal(range(beats))
        m.d.comb += [
            go.eq(self.commands.some & self.operations.some & (wait == 0) & ~passing & ~self.halt),
            self.commands.give.eq(self.arrived),
            self.commands.take.eq(go),
            self.operations.give.eq(self.issued),
            self.operations.take.eq(go),
            self.o.valid.eq(self.i.valid & passing),
            self.o.payload.eq(self.i.payload),
            self.i.ready.eq(self.o.ready & passing),
        ]
        m.d.sync += [self.accepted.eq(go), wait.eq(wait - (wait != 0))]
        with m.If(self.o.valid & self.o.ready):
            m.d.sync += [left.eq(left - 1), passing.eq(left != 0)]
        with m.If(go):
            m.d.sync += [wait.eq(config.interval - 1), left.eq(beats - 1), passing.eq(1)]
        return m
