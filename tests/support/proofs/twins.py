"""Two copies of a part with equal public inputs and other secrets: no output that is shown may differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from amaranth.hdl import Const, Elaboratable, Fragment, Module, Signal, Value
from amaranth.lib import wiring

from hw.lib.place import InlinePlacer
from tests.support.proofs.formal import check, free

#: From the spec's module and the first copy to the bits of an input that are public in this cycle.
Public = Callable[[Module, Any], Value]


class Twins(Elaboratable):
    """Two copies; inputs are free in every cycle.

    ``make``: makes a copy. ``secret``: inputs by name, such as ``i.payload``, and the bits of each that are
    equal nevertheless; None for none. All other inputs are equal. ``hidden``: outputs that may differ.
    """

    def __init__(
        self,
        make: Callable[[], wiring.Component],
        *,
        secret: Mapping[str, Public | None],
        hidden: Collection[str] = (),
    ) -> None:
        self.copies = make(), make()
        self._secret, self._hidden = secret, hidden
        inputs, outputs = ({name for name, *_ in self._ports(flow)} for flow in (wiring.In, wiring.Out))
        if unknown := (set(secret) - inputs) | (set(hidden) - outputs):
            raise ValueError(f"the part has no {sorted(unknown)}")

    def elaborate(self, platform: Any) -> Module:
        """Share the public bits; compare the outputs."""
        m = Module()
        m.submodules.one, m.submodules.other = self.copies
        for name, one, other in self._ports(wiring.In):
            shared = Signal(len(one), name=f"{name}_shared")
            free(m, shared)
            if name not in self._secret:
                m.d.comb += [one.eq(shared), other.eq(shared)]
                continue
            public = self._secret[name]
            mask = Signal(len(one), name=f"{name}_public")
            if public is not None:
                m.d.comb += mask.eq(public(m, self.copies[0]))
            for copy, port in (("one", one), ("other", other)):
                own = Signal(len(port), name=f"{name}_{copy}")
                free(m, own)
                m.d.comb += port.eq((shared & mask) | (own & ~mask))
        for name, one, other in self._ports(wiring.Out):
            if name not in self._hidden:
                check(m, one == other, f"{name} shows the same")
        return m

    def _ports(self, flow: wiring.Flow) -> list[tuple[str, Value, Value]]:
        """Return the name of each port in one direction, and the ports of both copies; constants are none."""
        one, other = (part.signature.flatten(part) for part in self.copies)
        return [
            (".".join(map(str, path)), Value.cast(port), Value.cast(twin))
            for (path, member, port), (_, _, twin) in zip(one, other, strict=True)
            if member.flow == flow and not isinstance(port, Const)
        ]


class SecretPlacer(InlinePlacer):
    """Leaves cells out that only compute: their outputs may be anything.

    ``cells``: prefixes of their names.
    """

    def __init__(self, cells: tuple[str, ...]) -> None:
        self._cells = cells

    def place(self, m: Module, name: str, cell: str, make: Callable[[], wiring.Component]) -> Any:
        """Return an interface with free outputs instead of a cell that is left out."""
        if not cell.startswith(self._cells):
            return super().place(m, name, cell, make)
        component = make()
        Fragment.get(component, None)  # Amaranth warns of components that are never elaborated
        interface = component.signature.create(path=(name,))
        for _, member, port in component.signature.flatten(interface):
            if member.flow == wiring.Out and not isinstance(port, Const):
                free(m, port)
        return interface
