"""Amaranth's netlists made in less time: its own steps, without checks that repeat for every bit.

Amaranth 0.5 checks the type of each bit of each value whenever it makes one, and resolves values bit by bit.
It looks for combinational cycles from each bit of an adder to each bit of its inputs.  Its closures keep a
finished netlist for the garbage collector, which frees ten million objects in 2.4 s.  Without these,
generating attention's default takes a third less time.  Another version of Amaranth is left as it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import _ir, _nir

#: Operators of which a bit depends on the same bit of the inputs; of all others it depends on every bit.
_BITWISE = ("~", "&", "|", "^", "m")
#: The nets 0 and 1.
_CONSTANTS = (_nir.Net(0), _nir.Net(1))
#: Cells that end combinational paths.
_ENDS = (_nir.FlipFlop, _nir.Instance, _nir.SyncReadPort, _nir.Top)


@contextlib.contextmanager
def quick_netlists() -> Iterator[None]:
    """Let Amaranth make netlists quickly during the ``with`` block."""
    if not version("amaranth").startswith("0.5."):
        yield
        return
    check = _nir.Netlist.check_comb_cycles

    def checked(netlist: Any) -> None:
        if not _is_acyclic(netlist):
            check(netlist)  # it names the path

    stand_ins: list[tuple[Any, str, Any]] = [
        (_nir.Net, "from_cell", classmethod(lambda cls, cell, bit: cls(cell << 16 | bit))),
        (_nir.Net, "from_const", staticmethod(_CONSTANTS.__getitem__)),
        (_nir.Value, "from_const", classmethod(_constant)),
        (_nir.Value, "__new__", staticmethod(_value)),
        (_nir.Netlist, "resolve_value", _resolved),
        (_nir.Netlist, "add_value_cell", _value_of_cell),
        (_nir.Netlist, "check_comb_cycles", checked),
        (_nir.FlipFlop, "output_nets", lambda cell, number: set(_bits(number, len(cell.data)))),
        (_nir.AssignmentList, "output_nets", lambda cell, number: set(_bits(number, len(cell.default)))),
        (_nir.Operator, "output_nets", lambda cell, number: set(_bits(number, cell.width))),
        (_ir, "_emit_netlist", _emit_netlist),
        (_ir, "_compute_net_flows", _compute_net_flows),
        (rtlil.ModuleEmitter, "emit", _emptying(rtlil.ModuleEmitter.emit)),
        (rtlil.ModuleEmitter, "sigspec", _sigspec),
    ]
    originals = [(owner, name, owner.__dict__[name]) for owner, name, _ in stand_ins]
    try:
        for owner, name, stand_in in stand_ins:
            setattr(owner, name, stand_in)
        yield
    finally:
        for owner, name, original in originals:
            setattr(owner, name, original)


def _bits(cell: int, width: int) -> Iterable[Any]:
    """Return the nets of a cell's output."""
    return map(_nir.Net, range(cell << 16, (cell << 16) + width))


def _constant(cls: type, value: int, width: int) -> Any:
    """Stand in for ``Value.from_const``, which makes a net of each bit."""
    zero, one = _CONSTANTS
    if not value:
        return tuple.__new__(cls, (zero,) * width)
    return tuple.__new__(cls, [one if value >> bit & 1 else zero for bit in range(width)])


def _value_of_cell(netlist: Any, width: int, cell: Any) -> Any:
    """Stand in for ``Netlist.add_value_cell``, which makes and checks nets one by one."""
    return _nir.Value(_bits(netlist.add_cell(cell), width))


def _value(cls: type, nets: Any = ()) -> Any:
    """Stand in for ``Value.__new__``, which asks of each net whether it is one."""
    return tuple.__new__(cls, (nets,) if isinstance(nets, _nir.Net) else nets)


def _resolved(netlist: Any, value: Any) -> Any:
    """Stand in for ``Netlist.resolve_value``: most values are resolved."""
    if min(value, default=0) >= 0:
        return value
    connections = netlist.connections  # each leads to a driver at once: see `_is_acyclic`
    return tuple.__new__(_nir.Value, [connections[net] if net < 0 else net for net in value])


def _is_acyclic(netlist: Any) -> bool:
    """Tell whether no combinational path of a netlist meets itself; then connect each net to its driver.

    Few cells are in a cycle of cells.  Bits are followed within these only.
    """
    ends = _drivers(netlist.connections)
    if ends is None or not _are_acyclic(netlist.cells, ends, _cycles(netlist.cells, ends)):
        return False
    netlist.connections = ends
    return True


def _drivers(connections: Mapping[int, int]) -> dict[int, int] | None:
    """Return the driving cell's net of each connected net; None if nets connect to each other in a ring."""
    ends: dict[int, int] = {}
    for net, end in connections.items():
        way: list[int] = []
        while end < 0:
            if end in ends:
                end = ends[end]
            elif len(way) > len(connections):
                return None
            else:
                way.append(end)
                end = connections[end]
        ends[net] = end
        for passed in way:
            ends[passed] = end
    return ends


def _cycles(cells: Sequence[Any], ends: Mapping[int, int]) -> set[int]:
    """Return the cells that are in a combinational cycle of cells: Tarjan's strongly connected components."""
    found: set[int] = set()
    index, low = [0] * len(cells), [0] * len(cells)  # from 1 in order of the search; low is 0 once done
    waiting: list[int] = []
    count = 0

    def inputs(number: int) -> Iterator[int]:
        cell = cells[number]
        if isinstance(cell, _ENDS):
            return iter(())
        return iter({(ends[net] if net < 0 else net) >> 16 for net in cell.input_nets()})

    for start in range(len(cells)):
        path = [] if index[start] else [(start, inputs(start))]
        while path:
            number, rest = path[-1]
            if not index[number]:
                count += 1
                index[number] = low[number] = count
                waiting.append(number)
            for other in rest:
                if not index[other]:
                    path.append((other, inputs(other)))
                    break
                if other == number:
                    found.add(number)
                elif low[other]:
                    low[number] = min(low[number], low[other])
            else:
                path.pop()
                if low[number] == index[number]:
                    at = waiting.index(number) if waiting[-1] != number else len(waiting) - 1
                    found.update(waiting[at:] if len(waiting) - at > 1 else ())
                    for member in waiting[at:]:
                        low[member] = 0
                    del waiting[at:]
                if path:
                    parent = path[-1][0]
                    if low[number]:
                        low[parent] = min(low[parent], low[number])
    return found


def _are_acyclic(cells: Sequence[Any], ends: Mapping[int, int], among: set[int]) -> bool:
    """Tell whether no combinational path through some cells meets itself.

    A node is a bit, or a cell whose bits all depend on the same inputs.
    """
    whole = {number: _is_whole(cells[number]) for number in among}
    edges: dict[int, list[list[int]]] = {}  # of cells that are assigned in parts
    done: dict[int, bool] = {}  # False while a node's inputs are followed

    def nodes(nets: Iterable[int]) -> list[int]:
        found = set()
        for net in nets:
            end = ends[net] if net < 0 else net
            number = end >> 16
            if number in among:
                found.add(number << 16 if whole[number] else int(end))
        return list(found)

    def inputs(node: int) -> list[int]:
        number = node >> 16
        cell = cells[number]
        if whole[number]:
            return nodes(cell.input_nets())
        if isinstance(cell, _nir.AssignmentList):
            if number not in edges:
                edges[number] = _assigned(cell)
            return nodes(edges[number][node & 0xFFFF])
        return nodes(net for net, _ in cell.comb_edges_to(node & 0xFFFF))

    for number in among:
        for start in (number << 16,) if whole[number] else cells[number].output_nets(number):
            if start in done:
                continue
            done[start] = False
            path = [(start, iter(inputs(start)))]
            while path:
                node, rest = path[-1]
                for other in rest:
                    if other not in done:
                        done[other] = False
                        path.append((other, iter(inputs(other))))
                        break
                    if not done[other]:
                        return False
                else:
                    done[node] = True
                    path.pop()
    return True


def _is_whole(cell: Any) -> bool:
    if isinstance(cell, _nir.Operator):
        return cell.operator not in _BITWISE
    return isinstance(cell, _nir.Part | _nir.Matches)


def _assigned(cell: Any) -> list[list[int]]:
    """Return the nets that each bit of an assigned value depends on."""
    found = [[net] for net in cell.default]
    for assign in cell.assignments:
        for bit, net in enumerate(assign.value, start=assign.start):
            found[bit] += (assign.cond, net)
    return found


def _emit_netlist(netlist: Any, design: Any, *, all_undef_to_ff: bool = False) -> None:
    """Stand in for Amaranth's function of this name; empty the emitter, which recursive closures keep."""
    emitter = _ir.NetlistEmitter(netlist, design, all_undef_to_ff=all_undef_to_ff)
    emitter.emit_fragment(design.fragment, None)
    vars(emitter).clear()


def _emptying(emit: Callable[[Any], None]) -> Callable[[Any], None]:
    """Empty a ``ModuleEmitter`` after ``emit``: its recursive closures keep it."""

    def emit_and_empty(emitter: Any) -> None:
        emit(emitter)
        vars(emitter).clear()

    return emit_and_empty


def _compute_net_flows(netlist: Any) -> None:
    """Stand in for Amaranth's function of this name: a net that a module has needs no further look."""
    flow, modules = _nir.ModuleNetFlow, netlist.modules
    lowest: dict[int, int] = {}  # the module below which a net is not, of every net
    for number, cell in enumerate(netlist.cells):
        nets = cell.output_nets(number)
        lowest.update(dict.fromkeys(nets, cell.module_idx))
        modules[cell.module_idx].net_flow.update(dict.fromkeys(nets, flow.Internal))

    def use(net: int, user: int) -> None:
        driver = lowest[net]
        while len(modules[driver].name) > len(modules[user].name):
            modules[driver].net_flow[net] = flow.Output
            driver = modules[driver].parent
        while len(modules[driver].name) < len(modules[user].name):
            if net in modules[user].net_flow:
                return
            modules[user].net_flow[net] = flow.Input
            user = modules[user].parent
        while driver != user:
            modules[driver].net_flow[net] = flow.Output
            driver = modules[driver].parent
            modules[user].net_flow[net] = flow.Input
            user = modules[user].parent
        modules[driver].net_flow[net] = flow.Internal
        lowest[net] = driver

    for cell in netlist.cells:
        for net in cell.input_nets().difference(modules[cell.module_idx].net_flow):
            if net >= 2:
                use(net, cell.module_idx)
    for number, module in enumerate(modules):
        for signal in module.signal_names:
            for net in set(netlist.signals[signal]).difference(module.net_flow):
                if net >= 2:
                    use(net, number)


def _sigspec(emitter: Any, *parts: Any) -> str:
    """Stand in for ``ModuleEmitter.sigspec``, which makes a value of each slice it looks at."""
    if len(parts) == 1 and type(parts[0]) is _nir.Value:
        known: dict[Any, str] = vars(emitter).setdefault("quick_specs", {})
        if parts[0] not in known:
            known[parts[0]] = _spelled(emitter.nets, parts[0])
        return known[parts[0]]
    nets: list[int] = []
    for part in parts:
        nets += (part,) if isinstance(part, int) else part
    return _spelled(emitter.nets, nets)


def _spelled(wires: Mapping[int, tuple[Any, int]], nets: Iterable[int]) -> str:
    """Return nets in RTLIL, as constants and slices of wires."""
    chunks: list[str] = []
    digits, low, high = "", 0, 0
    wire: Any = None

    def close() -> None:
        if wire is not None:
            chunks.append(f"{wire.name} [{low}]" if low == high else f"{wire.name} [{high}:{low}]")
        elif digits:
            chunks.append(f"{len(digits)}'{digits[::-1]}")

    for net in nets:
        if net < 2:
            if wire is not None:
                close()
                digits, wire = "", None
            digits += "01"[net]
        else:
            other, bit = wires[net]
            if other is wire and bit == high + 1:
                high = bit
                continue
            close()
            wire, low, high = other, bit, bit
    close()
    return chunks[0] if len(chunks) == 1 else "{ " + " ".join(reversed(chunks)) + " }"
