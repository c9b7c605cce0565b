"""LUTs merged along deep paths, as a mapper that works for timing does it.

Yosys' mapper works for its slowest path and saves LUTs everywhere else: it leaves chains of two-input LUTs
that a vendor's tool would merge.  A LUT takes over the function of the LUTs before it when both have at most
six inputs together and it then settles a level earlier; those before it stay for their other loads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: Inputs of the widest LUT.
_WIDEST = 6
_LUT = re.compile(r"LUT[1-6]")
#: Cells whose outputs come from a clock, or may: paths begin there.
_CLOCKED = re.compile(r"FD[RSCP]E|SRL.*|RAMB.*|URAM.*")


def collapse(cells: Mapping[str, Any], parts: set[str], outputs: Iterable[int | str]) -> dict[str, Any]:
    """Merge LUTs, and leave out those that then drive nothing.

    Parameters
    ----------
    cells
        Of a module in Yosys' JSON, inverters gone.
    parts
        Cell types that are other parts.
    outputs
        Nets of the module's output ports.
    """
    inputs: dict[int, list[int]] = {}
    luts: dict[int, str] = {}
    used: set[int | str] = set(outputs)
    for name, cell in cells.items():
        ways = cell["port_directions"]
        reads = [bit for pin, bits in cell["connections"].items() if ways[pin] == "input" for bit in bits]
        reads = [bit for bit in dict.fromkeys(reads) if isinstance(bit, int)]
        if _LUT.fullmatch(cell["type"]):
            luts[cell["connections"]["O"][0]] = name
        else:
            used.update(reads)
        if cell["type"] not in parts and not _CLOCKED.fullmatch(cell["type"]):
            driven = (
                bit for pin, bits in cell["connections"].items() if ways[pin] == "output" for bit in bits
            )
            inputs.update((bit, reads) for bit in driven if isinstance(bit, int))
    order = _ordered(inputs)
    depth: dict[int, int] = {}
    for net in order:
        if net in luts:
            inputs[net] = _merged(inputs[net], inputs, luts, depth)
        depth[net] = 1 + max((depth.get(bit, 0) for bit in inputs[net]), default=0)
    kept = dict(cells)
    for net in reversed(order):
        if net not in luts:
            continue
        if net not in used:
            del kept[luts[net]]
            continue
        used.update(inputs[net])
        pins = {f"I{n}": [bit] for n, bit in enumerate(inputs[net])}
        kept[luts[net]] = {
            **cells[luts[net]],
            "type": f"LUT{max(1, len(pins))}",
            "port_directions": {**dict.fromkeys(pins, "input"), "O": "output"},
            "connections": {**pins, "O": [net]},
        }
    return kept


def _ordered(inputs: Mapping[int, Sequence[int]]) -> list[int]:
    """Give the nets of combinational cells, each after those it comes from; nets of a loop are left out."""
    waiting = {net: sum(bit in inputs for bit in bits) for net, bits in inputs.items()}
    loads: dict[int, list[int]] = {}
    for net, bits in inputs.items():
        for bit in bits:
            loads.setdefault(bit, []).append(net)
    order = [net for net, count in waiting.items() if not count]
    for net in order:  # grows
        for load in loads.get(net, ()):
            waiting[load] -= 1
            if not waiting[load]:
                order.append(load)
    return order


def _merged(
    own: list[int], inputs: Mapping[int, list[int]], luts: Mapping[int, str], depth: Mapping[int, int]
) -> list[int]:
    """Give the inputs of a LUT that takes over all its latest ones, again and again while they fit."""
    while True:
        latest = max((depth.get(bit, 0) for bit in own), default=0)
        late = [bit for bit in own if depth.get(bit, 0) == latest]
        if not latest or any(bit not in luts for bit in late):
            return own
        taken = dict.fromkeys(bit for bit in own if bit not in late)
        for bit in late:
            taken.update(dict.fromkeys(inputs[bit]))
        if len(taken) > _WIDEST:
            return own
        own = list(taken)
