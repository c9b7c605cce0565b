"""Amaranth's netlists made in less time: its own steps, without checks that repeat for every bit.

Amaranth 0.5 checks the type of each bit of each value whenever it makes one, and resolves values bit by bit.
It looks for combinational cycles from each bit of an adder to each bit of its inputs.  Without that,
generating attention's default takes a fifth less time.  Another version of Amaranth is left as it is.
"""

import contextlib
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from typing import Any

from amaranth.back import rtlil
from amaranth.hdl import _ir, _nir

#: Operators of which a bit depends on the same bit of the inputs; of all others it depends on every bit.
_BITWISE = ("~", "&", "|", "^", "m")


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
        (_nir.Value, "__new__", staticmethod(_value)),
        (_nir.Netlist, "resolve_value", _resolved),
        (_nir.Netlist, "add_value_cell", _value_of_cell),
        (_nir.Netlist, "check_comb_cycles", checked),
        (_nir.FlipFlop, "output_nets", lambda cell, number: set(_bits(number, len(cell.data)))),
        (_nir.AssignmentList, "output_nets", lambda cell, number: set(_bits(number, len(cell.default)))),
        (_nir.Operator, "output_nets", lambda cell, number: set(_bits(number, cell.width))),
        (_ir, "_compute_net_flows", _compute_net_flows),
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
    connections = netlist.connections
    found = []
    for net in value:
        while net < 0:
            net = connections[net]
        found.append(net)
    return _nir.Value(found)


def _is_acyclic(netlist: Any) -> bool:
    """Tell whether no combinational path of a netlist meets itself.

    A node is a bit, or a cell whose bits all depend on the same inputs.
    """
    cells, connections = netlist.cells, netlist.connections
    whole = [_is_whole(cell) for cell in cells]
    edges: dict[int, list[list[int]]] = {}  # of cells that are assigned in parts
    done: dict[int, bool] = {}  # False while a node's inputs are followed

    def nodes(nets: Iterable[int]) -> list[int]:
        found = set()
        for net in nets:
            while net < 0:
                net = connections[net]
            if net >= 2:
                found.add(net >> 16 << 16 if whole[net >> 16] else int(net))
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

    for start in _starts(cells, whole):
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


def _starts(cells: Iterable[Any], whole: list[bool]) -> Iterator[int]:
    """List the nodes of all cells; registers and ports end paths."""
    for number, cell in enumerate(cells):
        if whole[number]:
            yield number << 16
        elif not isinstance(cell, _nir.FlipFlop | _nir.Top):
            yield from cell.output_nets(number)


def _assigned(cell: Any) -> list[list[int]]:
    """Return the nets that each bit of an assigned value depends on."""
    found = [[net] for net in cell.default]
    for assign in cell.assignments:
        for bit, net in enumerate(assign.value, start=assign.start):
            found[bit] += (assign.cond, net)
    return found


def _compute_net_flows(netlist: Any) -> None:
    """Stand in for Amaranth's function of this name: a net that a module has needs no further look."""
    flow, modules = _nir.ModuleNetFlow, netlist.modules
    lowest: dict[int, int] = {}  # the module below which a net is not, of every net
    for number, cell in enumerate(netlist.cells):
        flows = modules[cell.module_idx].net_flow
        for net in cell.output_nets(number):
            lowest[net] = cell.module_idx
            flows[net] = flow.Internal

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
        flows = modules[cell.module_idx].net_flow
        for net in cell.input_nets():
            if net >= 2 and net not in flows:
                use(net, cell.module_idx)
    for number, module in enumerate(modules):
        flows = module.net_flow
        for signal in module.signal_names:
            for net in netlist.signals[signal]:
                if net >= 2 and net not in flows:
                    use(net, number)


def _sigspec(emitter: Any, *parts: Any) -> str:
    """Stand in for ``ModuleEmitter.sigspec``, which makes a value of each slice it looks at."""
    value: list[int] = []
    for part in parts:
        value += (part,) if isinstance(part, int) else part
    wires, chunks, begin = emitter.nets, [], 0
    while begin < len(value):
        end = begin + 1
        if value[begin] < 2:
            while end < len(value) and value[end] < 2:
                end += 1
            chunks.append(f"{end - begin}'{''.join('01'[net] for net in reversed(value[begin:end]))}")
        else:
            wire, start = wires[value[begin]]
            while end < len(value) and value[end] >= 2 and wires[value[end]] == (wire, start + end - begin):
                end += 1
            high = start + end - begin - 1
            chunks.append(f"{wire.name} [{start}]" if high == start else f"{wire.name} [{high}:{start}]")
        begin = end
    return chunks[0] if len(chunks) == 1 else "{ " + " ".join(reversed(chunks)) + " }"
