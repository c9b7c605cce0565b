"""Placing one module many times without converting it many times.

Amaranth never merges identical submodules.  A 32-row array elaborated row by row takes 32 times as long to
convert, and every later tool sees 32 different modules.  A `Placer` decides how a repeated component enters
its parent:

* `InlinePlacer`: as an ordinary submodule.  Amaranth's own simulator and formal proofs see through it.
* `CellPlacer`: the component is converted once, on its own, and every placement is an ``Instance`` of it.
  Generation of Verilog uses this one; `CellPlacer.verilog` is the text of all placed cells.
* `ControlPlacer`: likewise, but cells that only compute are left out, for simulations of control alone.

The parent is written once and works with either.  A large part that comes once may be a cell, too: its reset
is its own, and tools map it alone.
"""

import re
from collections.abc import Callable
from typing import Any, Protocol

from amaranth.hdl import ClockSignal, Fragment, Instance, Module, Signal
from amaranth.lib import wiring

from hw.lib.convert import ports, to_verilog


class Placer(Protocol):
    """How a repeated component enters its parent.

    >>> def parent(placer: Placer) -> Module:
    ...     m = Module()
    ...     for n in range(2):
    ...         placer.place(m, f"skid_{n}", "skid_8", lambda: Skid(8))
    ...     return m
    >>> from hw.lib.skid import Skid
    >>> m = parent(InlinePlacer())
    """

    def place(self, m: Module, name: str, cell: str, make: Callable[[], wiring.Component]) -> Any:
        """Place one copy in ``m`` and return an object with the component's interface.

        ``name``: name of this placement, unique in ``m`` (``"row_3"``). ``cell``: name of the cell's Verilog
        module, unique in the design for its configuration. ``make``: makes the component; all placements of
        one ``cell`` must make equal components.
        """
        ...


class InlinePlacer:
    """Every placement is an ordinary submodule.

    >>> from hw.lib.skid import Skid
    >>> m = Module()
    >>> skid = InlinePlacer().place(m, "skid_0", "skid_8", lambda: Skid(8))
    >>> skid.o.payload.shape()
    unsigned(8)
    """

    def place(self, m: Module, name: str, cell: str, make: Callable[[], wiring.Component]) -> Any:
        """Add ``make()`` to ``m`` as the submodule ``name``."""
        component = make()
        m.submodules[name] = component
        return component


class CellPlacer:
    """Every placement is an ``Instance`` of a cell converted once.

    ``sources``, ``platform``: whether the text names the lines of Python, and the platform that cells are
    elaborated for; see `hw.lib.convert.to_verilog`. ``prefix``: before the names of all cells, where a design
    may have other cells of these names.

    >>> from hw.lib.skid import Skid
    >>> m, placer = Module(), CellPlacer()
    >>> for n in range(2):
    ...     skid = placer.place(m, f"skid_{n}", "skid_8", lambda: Skid(8))
    >>> placer.verilog.count("module skid_8(")
    1
    """

    def __init__(self, *, sources: bool = False, platform: Any = None, prefix: str = "") -> None:
        self._sources = sources
        self._platform = platform
        self._prefix = prefix
        self.cells: dict[str, str] = {}  #: Verilog text of each cell, by module name, in order of first use.
        self._signatures: dict[str, wiring.Signature] = {}
        self._clocks: dict[str, set[str]] = {}

    def place(self, m: Module, name: str, cell: str, make: Callable[[], wiring.Component]) -> Any:
        """Convert ``make()`` if ``cell`` is new, and add an ``Instance`` of it to ``m``.

        The cell's only clock is ``sync``: its ``clk`` port, if it has one, is tied to the parent's.  Its
        ``rst`` is tied to a register of the parent's reset: the loads of all cells should not be on one net.
        So a cell sees reset a cycle later than its parent.
        """
        cell = self._prefix + cell
        if cell not in self.cells:
            component = make()
            text = to_verilog(component, name=cell, sources=self._sources, platform=self._platform)
            self.cells[cell] = text
            self._signatures[cell] = component.signature
            self._clocks[cell] = _clock_ports(cell, text)
        signature = self._signatures[cell]
        interface = signature.create(path=(name,))
        connections: dict[str, Any] = {}
        if "clk" in self._clocks[cell]:
            connections["i_clk"] = ClockSignal()
        if "rst" in self._clocks[cell]:
            # Set by the parent's reset.  Such registers are equal, and must not become one.
            reset = Signal(init=1, name=f"{name}_rst", attrs={"keep": 1})
            m.d.sync += reset.eq(0)
            connections["i_rst"] = reset
        for port, (value, direction) in ports(interface).items():
            connections[f"{direction.value[0]}_{port}"] = value
        m.submodules[name] = Instance(cell, **connections)
        return interface

    @property
    def verilog(self) -> str:
        """Text of all cells, in order of first use."""
        return "\n".join(self.cells.values())


class ControlPlacer(CellPlacer):
    """As `CellPlacer`, but of some cells nothing is placed: their outputs are constant 0.

    ``left_out``: prefixes of the names of these cells.

    >>> from hw.lib.skid import Skid
    >>> m, placer = Module(), ControlPlacer(("skid",))
    >>> skid = placer.place(m, "skid_0", "skid_8", lambda: Skid(8))
    >>> placer.verilog
    ''
    """

    def __init__(self, left_out: tuple[str, ...], *, sources: bool = False) -> None:
        super().__init__(sources=sources)
        self._left_out = left_out

    def place(self, m: Module, name: str, cell: str, make: Callable[[], wiring.Component]) -> Any:
        """Return the interface of a cell that is left out, which nobody drives; place any other."""
        if not cell.startswith(self._left_out):
            return super().place(m, name, cell, make)
        if cell not in self._signatures:
            component = make()
            Fragment.get(component, None)  # Amaranth warns of components that are never elaborated
            self._signatures[cell] = component.signature
        return self._signatures[cell].create(path=(name,))


def _clock_ports(cell: str, text: str) -> set[str]:
    """Return which of clock and reset are ports of module ``cell`` in its Verilog ``text``."""
    header = re.search(rf"^module {re.escape(cell)}\(([^)]*)\);", text, re.MULTILINE)
    if header is None:
        raise ValueError(f"no module {cell} in its own text")
    return {"clk", "rst"} & set(header[1].replace(",", " ").split())
