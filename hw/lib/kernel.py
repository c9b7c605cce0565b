"""The kernel shell: the ports and registers that Vitis expects around an engine's body."""

from collections.abc import Mapping
from typing import Any

from amaranth.hdl import ClockDomain, Elaboratable, Fragment, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out, connect

from hw.errors import InputError
from hw.lib import axi
from hw.lib.arguments import STATUS, STATUS_BUS, ArgumentTable
from hw.lib.bus_guard import BusGuard
from hw.lib.recovery import Recovery
from hw.lib.registers import ADDR_WIDTH, RegisterFile, arguments_layout, counters_layout
from hw.lib.reset import RESET_LEVELS, spread_reset

#: Prefixes of port names, by which Vitis finds the interfaces.
CONTROL_PREFIX, MEMORY_PREFIX = "s_axi_control", "m_axi"
#: Registers between ``ap_rst_n`` and the gates.
RESET_STAGES = 4

#: Constant signals of AXI4 on both address channels: (name, bits, value).  ``size`` depends on the width.
_CONSTANTS = (
    ("burst", 2, 0b01),  # INCR
    ("lock", 1, 0),
    ("cache", 4, 0b0011),  # normal memory, bufferable, not cacheable: as kernels of Vitis HLS
    ("prot", 3, 0),
    ("qos", 4, 0),
    ("region", 4, 0),
)


class BodySignature(wiring.Signature):
    """An engine inside the shell, between its registers and its memory ports.

    ``data_width``: bits of a beat of every memory port, or of each by its name.

    >>> from hw.lib.arguments import Argument, ArgumentKind
    >>> table = ArgumentTable((Argument(name="a", kind=ArgumentKind.POINTER, port="gmem0", doc="Input"),))
    >>> list(BodySignature(table, data_width=256).members)
    ['start', 'done', 'args', 'counters', 'gmem0']
    """

    def __init__(
        self,
        table: ArgumentTable,
        *,
        data_width: int | Mapping[str, int],
        addr_width: int = 64,
        id_width: int = 1,
    ) -> None:
        self.table = table
        #: Whether the shell ends launches after a memory error and drives the counter ``status``.
        self.guarded = STATUS in table.counters
        if self.guarded and not table.ports:
            raise InputError("counters", STATUS.name, "left out where there is no memory port")
        own = tuple(argument for argument in table.arguments if argument != STATUS)
        #: The signature of each memory port, by its name.
        self.ports = {
            port: axi.Signature(
                data_width=data_width if isinstance(data_width, int) else data_width[port],
                addr_width=addr_width,
                id_width=id_width,
            )
            for port in table.ports
        }
        members: dict[str, wiring.Member] = {
            "start": In(1),  #: One-cycle pulse: begin; after the last ``done``.
            "done": Out(1),  #: One-cycle pulse: the launch has ended, every write has its response.
            "args": In(arguments_layout(table)),  #: Constant from ``start`` to ``done``.
            #: With secret arguments alone: as in `hw.lib.registers.RegisterFile`.
            **({"keyed": In(1), "forget": Out(1)} if table.secrets else {}),
            #: Read by the host at any time; the shell drives `hw.lib.arguments.STATUS`.
            "counters": Out(counters_layout(ArgumentTable(own))),
        }
        for port, signature in self.ports.items():
            if port in members:
                raise InputError("port", port, "different from " + ", ".join(members))
            #: Write data follow their address and wait for no other channel.
            members[port] = Out(signature)
        super().__init__(members)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.members == getattr(other, "members", None)

    def __repr__(self) -> str:
        return f"BodySignature({self.table!r}, ports={self.ports!r})"


class Kernel(wiring.Component):
    """An ``ap_ctrl_hs`` kernel with exactly the ports Vitis packages.

    ``name``: name of the kernel and of its Verilog module: a lower-case C identifier. ``body``: the engine: a
    component with `BodySignature` of ``table``.

    * ``ap_clk``; ``ap_rst_n``, synchronous, active low; ``interrupt``.
    * ``s_axi_control_*``: the AXI-Lite port of `hw.lib.registers.RegisterFile`.
    * ``m_axi_gmem0_*`` and so on, one for each of ``table.ports``: driven by the body, with the constants of
      a full-width INCR burst.

    Behaviour
    ---------
    Reset reaches the gates `RESET_STAGES` cycles after both edges of ``ap_rst_n``.  ``awready``, ``wready``
    and ``arready`` are low until then, so that a faster host waits.

    With the counter `hw.lib.arguments.STATUS` in ``table``, an answer other than OKAY stops further bursts.
    When all outstanding bursts have ended, the body is reset and the launch is done.  The counter's bit stays
    up until the next start.  Any other launch is done `Recovery.LATENCY` cycles after the body.

    Why
    ---
    A body that continues with a corrupt descriptor may write anywhere and never end.  Reset needs no proof
    for each state of each engine.

    The reset of a large engine crosses several dies.  A chain of registers, kept out of shift registers, and
    the tree of `hw.lib.reset.spread_reset` carry it.

    Example
    -------
    >>> from examples.vadd.engine import VaddBody, VaddConfig, vadd_table
    >>> from hw.board import load_board
    >>> from hw.lib.place import InlinePlacer
    >>> body = VaddBody(VaddConfig(), load_board("u55c"), InlinePlacer())
    >>> kernel = Kernel("vadd", vadd_table(), body)
    >>> [name for name in kernel.signature.members if "gmem" not in name][:3]
    ['ap_clk', 'ap_rst_n', 's_axi_control_AWVALID']
    """

    def __init__(self, name: str, table: ArgumentTable, body: wiring.Component) -> None:
        if not (isinstance(name, str) and name.isidentifier() and name.isascii() and name.islower()):
            raise InputError("kernel name", name, "a lower-case C identifier")
        if not isinstance(body.signature, BodySignature):
            raise TypeError(f"the body's signature must be a BodySignature, not {body.signature!r}")
        if body.signature.table != table:
            raise ValueError("the body was made for another argument table")
        self.name = name
        self.table = table
        self.body = body
        super().__init__(kernel_members(body.signature))

    def elaborate(self, platform: Any) -> Elaboratable:
        """Clock and reset, registers, body, and wires."""
        m = Module()
        m.domains.sync = sync = ClockDomain("sync", reset_less=True)
        sync.clk = self.ap_clk
        stages = Signal(RESET_STAGES - RESET_LEVELS, attrs={"shreg_extract": "no"})
        m.d.sync += stages.eq((stages << 1) | self.ap_rst_n)

        registers, body = RegisterFile(self.table), self.body
        m.submodules.registers = gates = Fragment.get(registers, platform)
        m.submodules.body = engine = Fragment.get(body, platform)
        ports = {port: getattr(body, port) for port in body.signature.ports}
        counters = {name: body.counters[name] for name, _ in body.counters.shape()}
        m.d.comb += [
            body.start.eq(registers.start),
            body.args.eq(registers.args),
            self.interrupt.eq(registers.interrupt),
        ]
        if self.table.secrets:
            m.d.comb += [body.keyed.eq(registers.keyed), registers.forget.eq(body.forget)]
        if body.signature.guarded:
            recovery, guards = self._guards(m, ports)
            m.d.comb += [
                recovery.start.eq(registers.start),
                recovery.engine_done.eq(body.done),
                registers.done.eq(recovery.done),
            ]
            counters[STATUS.name] = recovery.failed * STATUS_BUS
            # Takes the place of the last stage.
            engine_reset = Signal(init=1)
            m.d.sync += engine_reset.eq(~stages[-2] | recovery.clear)
            shell = [Fragment.get(part, platform) for part in (recovery, *guards.values())]
            m.submodules.recovery, *parts = shell
            for (port, guard), part in zip(guards.items(), parts, strict=True):
                m.submodules[f"{port}_guard"] = part
                ports[port] = guard.o
            spread_reset(m, ~stages[-1], gates, *shell)
            spread_reset(m, engine_reset, engine)
        else:
            m.d.comb += registers.done.eq(body.done)
            spread_reset(m, ~stages[-1], gates, engine)
        m.d.comb += [registers.counters[name].eq(count) for name, count in counters.items()]
        self._join(m, CONTROL_PREFIX, registers.bus)
        for port, signature in body.signature.ports.items():
            prefix = f"{MEMORY_PREFIX}_{port}"
            self._join(m, prefix, ports[port])
            for name, _, value in port_constants(signature):
                m.d.comb += getattr(self, f"{prefix}_{name}").eq(value)
        return m

    def _guards(self, m: Module, ports: Mapping[str, Any]) -> tuple[Recovery, dict[str, BusGuard]]:
        """Guard each port of the body, and connect guards and recovery."""
        recovery = Recovery(ports=len(ports))
        guards = {port: BusGuard(bus.signature) for port, bus in ports.items()}
        for n, (port, guard) in enumerate(guards.items()):
            connect(m, ports[port], guard.i)
            m.d.comb += [
                guard.hold.eq(recovery.hold),
                recovery.error[n].eq(guard.error),
                recovery.idle[n].eq(guard.idle),
            ]
        return recovery, guards

    def _join(self, m: Module, prefix: str, bus: Any) -> None:
        for name, member in bus.signature.members.items():
            outer, inner = getattr(self, f"{prefix}_{name.upper()}"), getattr(bus, name)
            m.d.comb += outer.eq(inner) if member.flow == Out else inner.eq(outer)


def port_constants(port: axi.Signature) -> list[tuple[str, int, int]]:
    """Return the constant signals of an AXI4 port as (name, bits, value)."""
    size = ("size", 3, port.beat_bytes.bit_length() - 1)
    return [
        (f"{way}{name}".upper(), bits, value)
        for way in ("aw", "ar")
        for name, bits, value in (size, *_CONSTANTS)
    ]


def kernel_members(body: BodySignature) -> dict[str, wiring.Member]:
    """Return the ports of the kernel around a body, in the order of its Verilog module."""
    members: dict[str, wiring.Member] = {"ap_clk": In(1), "ap_rst_n": In(1)}
    for name, member in axi.LiteSignature(addr_width=ADDR_WIDTH).flip().members.items():
        members[f"{CONTROL_PREFIX}_{name.upper()}"] = member
    for port, signature in body.ports.items():
        prefix = f"{MEMORY_PREFIX}_{port}"
        for name, member in signature.members.items():
            members[f"{prefix}_{name.upper()}"] = member
        for name, bits, _ in port_constants(signature):
            members[f"{prefix}_{name}"] = Out(bits)
    members["interrupt"] = Out(1)
    return members
