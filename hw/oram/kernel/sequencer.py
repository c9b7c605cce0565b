"""The phases of a launch, and its end."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from hw.oram.kernel.arguments import Fault

#: Faults that persist, in the order of their bits.
LASTING = tuple(fault for fault in Fault if fault not in (Fault.EMPTY, Fault.AGAIN, Fault.UNKEYED))


class Sequencer(wiring.Component):
    """Keys, empty map, operations, erasure, end.

    ``quiet_cycles``: cycles without a burst after which none can follow: `PathTiming.quiet`. ``end_cycles``:
    cycles for all writes to HBM: `PathTiming.end`, at least 4.

    Behaviour
    ---------
    Operations end when all commands are answered and no burst was in flight at the host's ports for
    ``quiet_cycles``, after a fault by the quiet time alone. Then all changes are sent to HBM, and ``done``
    follows ``end_cycles`` later. A launch in the wrong order ends at once: see `Fault`.

    After a fault, and with ``finish``, HBM is erased before ``done``, then the keys. A further launch ends at
    once.

    Why
    ---
    The end shows nothing of HBM: it follows from the host's ports and fixed times.
    """

    def __init__(self, *, quiet_cycles: int, end_cycles: int) -> None:
        self._quiet_cycles, self._end_cycles = quiet_cycles, end_cycles
        #: ``keys_start``, ``init_start``, ``run_start``, ``flush``, ``erase_start``: pulses: expand the keys;
        #: write the empty map; read commands; send all changes to HBM; erase it. ``enable``: the keys are
        #: valid. ``forget``: keys are given as zeros from now on. ``halt``: a fault occurred.
        #: ``initializing``: from ``start`` until the map is initialized. ``erasing``: HBM and keys are being
        #: erased. ``erased``: they are, until reset.
        pulses = (
            "keys_start",
            "init_start",
            "run_start",
            "flush",
            "erase_start",
            "enable",
            "forget",
            "halt",
            "initializing",
            "erasing",
            "erased",
            "done",
        )
        #: ``start``, ``initialize``, ``finish``: pulse, and the launch's arguments. ``keyed``: all words of
        #: keys and epoch were written. ``keys_done``, ``init_busy``: pulse; and the empty map is not written
        #: yet. ``erase_busy``: HBM is not erased yet, from ``erase_start`` on. ``commands_busy``: further
        #: commands may arrive. ``operations_busy``: commands are unanswered. ``bus_busy``, ``host_busy``: a
        #: burst is in flight at any port, at one of the host's. ``flushing``: changes are left.
        levels = (
            "start",
            "initialize",
            "finish",
            "keyed",
            "keys_done",
            "init_busy",
            "erase_busy",
            "commands_busy",
            "operations_busy",
            "bus_busy",
            "host_busy",
            "flushing",
        )
        super().__init__(
            {
                **{name: In(1) for name in levels},
                **{name: Out(1) for name in pulses},
                #: Levels, or pulses.
                "fault": In(data.StructLayout({fault.name.lower(): 1 for fault in LASTING if fault.name})),
                "status": Out(len(Fault)),  #: `Fault`.
            }
        )

    def elaborate(self, platform: Any) -> Module:
        """A state machine, and counts of quiet cycles and of those at the end."""
        m = Module()
        ending = Signal(range(self._end_cycles))
        lasting = Signal(len(LASTING))
        refused = Signal(len(Fault) - len(LASTING))
        m.d.sync += lasting.eq(lasting | self.fault.as_value())
        m.d.comb += [self.status.eq(Cat(lasting, refused)), self.halt.eq(lasting.any())]

        quiet = Signal(range(self._quiet_cycles + 1))
        ended = Signal()
        m.d.comb += ended.eq(
            (quiet == self._quiet_cycles) & (self.halt | ~(self.commands_busy | self.operations_busy))
        )
        with m.If(Mux(self.initializing, self.bus_busy, self.host_busy)):
            m.d.sync += quiet.eq(0)
        with m.Elif(quiet != self._quiet_cycles):
            m.d.sync += quiet.eq(quiet + 1)

        pulses = (
            self.keys_start,
            self.init_start,
            self.run_start,
            self.flush,
            self.erase_start,
            self.done,
        )
        m.d.sync += [pulse.eq(0) for pulse in pulses]
        used = Signal()
        last = Signal()
        empty, again = ~self.enable & ~self.initialize, used & self.initialize
        unkeyed = ~used & self.initialize & ~self.keyed
        with m.FSM():
            with m.State("IDLE"), m.If(self.start):
                m.d.sync += [refused.eq(Cat(empty, again, unkeyed)), last.eq(self.finish), quiet.eq(0)]
                with m.If(self.halt & ~self.erased):
                    self._erase(m)
                with m.Elif(self.halt | empty | again | unkeyed):
                    m.d.sync += self.done.eq(1)
                with m.Elif(self.initialize):
                    m.d.sync += [self.keys_start.eq(1), self.initializing.eq(1), used.eq(1)]
                    m.next = "KEYS"
                with m.Else():
                    m.d.sync += self.run_start.eq(1)
                    m.next = "BEGIN"
            with m.State("KEYS"), m.If(self.keys_done):
                m.d.sync += [self.enable.eq(1), self.init_start.eq(1), quiet.eq(0)]
                m.next = "INIT"
            with m.State("INIT"), m.If((quiet == self._quiet_cycles) & (~self.init_busy | self.halt)):
                m.d.sync += [self.initializing.eq(0), self.run_start.eq(1)]
                m.next = "BEGIN"
            with m.State("BEGIN"):  # the reader is busy from the next cycle on
                m.d.sync += quiet.eq(0)
                m.next = "RUN"
            with m.State("RUN"), m.If(ended):
                with m.If(self.halt | last):
                    self._erase(m)
                with m.Else():
                    m.d.sync += [self.flush.eq(1), ending.eq(0)]
                    m.next = "END"
            with m.State("END"):
                m.d.sync += ending.eq(ending + 1)
                with m.If(self.flushing & (ending == self._end_cycles - 2)):
                    m.d.sync += lasting[LASTING.index(Fault.LATE_WRITE)].eq(1)
                with m.If(ending == self._end_cycles - 1):
                    with m.If(self.halt):
                        self._erase(m)
                    with m.Else():
                        m.d.sync += self.done.eq(1)
                        m.next = "IDLE"
            with m.State("ERASE"), m.If(~self.erase_busy):
                m.d.sync += self.keys_start.eq(1)
                m.next = "FORGET"
            with m.State("FORGET"), m.If(self.keys_done):
                m.d.sync += [self.erasing.eq(0), self.erased.eq(1), self.done.eq(1)]
                m.next = "IDLE"
        return m

    def _erase(self, m: Module) -> None:
        m.d.sync += [self.erase_start.eq(1), self.erasing.eq(1), self.enable.eq(0), self.forget.eq(1)]
        m.next = "ERASE"
