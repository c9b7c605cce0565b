"""A core as a module of its own: flat ports, one clock, one reset, AXI constants."""

from typing import Any

from amaranth.hdl import ClockDomain, Elaboratable, Fragment, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from hw.cores.ports import AXI_PREFIX, Port, core_ports
from hw.lib.kernel import port_constants
from hw.lib.reset import RESET_LEVELS, spread_reset

#: Fewest cycles of ``rst``, and cycles after it in which no stream moves: the tree of resets, a placed cell's
#: own register, and one for the valid bits between cells and the rest.
RESET_CYCLES = RESET_LEVELS + 2


class StandAlone(wiring.Component):
    """The ports of ``core`` under flat names, as `hw.cores.ports` lists them, and ``clk`` and ``rst``.

    Behaviour
    ---------
    ``rst`` is synchronous and active high, for at least `RESET_CYCLES`.  From the cycle after it rises until
    `RESET_CYCLES` cycles after it falls, ``valid`` and ``ready`` of all streams and of AXI are low on the
    module's side, so that a faster neighbour waits.  Otherwise every port is the core's, without a register.

    Why
    ---
    One net of reset has tens of thousands of loads; a tree of registers carries it (decision 0021), and takes
    cycles, in which a neighbour out of reset must lose nothing.
    """

    def __init__(self, core: wiring.Component) -> None:
        self._core = core
        self.core_ports: tuple[Port, ...] = core_ports(core)  #: All but ``clk``, ``rst`` and constants.
        members: dict[str, wiring.Member] = {"clk": In(1), "rst": In(1)}
        members |= {port.name: (In if port.is_input else Out)(port.width) for port in self.core_ports}
        #: Constant outputs of the AXI port, (name, bits, value).
        self.constants: tuple[tuple[str, int, int], ...] = tuple(self._constants())
        members |= {name: Out(bits) for name, bits, _ in self.constants}
        super().__init__(members)

    def _constants(self) -> list[tuple[str, int, int]]:
        bus = next((port for port in self.core_ports if port.is_axi), None)
        if bus is None:
            return []
        names = {port.name for port in self.core_ports}
        given = [
            (f"{AXI_PREFIX}_{name.lower()}", bits, value)
            for name, bits, value in port_constants(self._core.axi.signature)
        ]
        return [each for each in given if f"{each[0][: len(AXI_PREFIX) + 3]}valid" in names]

    def elaborate(self, platform: Any) -> Elaboratable:
        """Wires, and the gate of the handshakes."""
        m = Module()
        m.domains.sync = sync = ClockDomain("sync", reset_less=True)
        sync.clk = self.clk
        m.submodules.core = gates = Fragment.get(self._core, platform)
        spread_reset(m, self.rst, gates)
        quiet = Signal(RESET_CYCLES, reset_less=True)  # a bit for each of the last cycles without reset
        awake = Signal()
        m.d.sync += quiet.eq((quiet << 1) | ~self.rst)
        m.d.comb += awake.eq(quiet.all())
        for port in self.core_ports:
            outer, inner = getattr(self, port.name), port.signal
            target, source = (inner, outer) if port.is_input else (outer, inner)
            m.d.comb += target.eq(source & awake if port.is_handshake else source)
        for name, _, value in self.constants:
            m.d.comb += getattr(self, name).eq(value)
        return m
