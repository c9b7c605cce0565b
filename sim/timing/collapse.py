"""LUTs merged along deep paths, as a timing-driven mapper does.

Yosys' mapper optimizes its slowest path and saves LUTs everywhere else: it leaves chains of two-input LUTs
that a vendor's tool would merge.  Here a LUT takes over the function of the LUTs before it when both have at
most six inputs together and it then settles a level earlier.  The LUTs before it stay for their other loads.
"""

import contextlib
import graphlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

#: Inputs of the widest LUT.
_WIDEST = 6
_LUT = re.compile(r"LUT[1-6]")
#: Cells with outputs that may be clocked: paths begin there.
_CLOCKED = re.compile(r"FD[RSCP]E|SRL.*|RAMB.*|URAM.*")


def pins_of(cell: Mapping[str, Any], direction: str) -> dict[str, list[Any]]:
    """Return the nets of a cell's inputs (``direction`` "input") or outputs by pin, of Yosys' JSON."""
    return {
        pin: bits for pin, bits in cell["connections"].items() if cell["port_directions"][pin] == direction
    }


def _nets(pins: Mapping[str, list[Any]]) -> list[int]:
    return list(dict.fromkeys(bit for bits in pins.values() for bit in bits if isinstance(bit, int)))


def collapse(cells: Mapping[str, Any], parts: set[str], outputs: Iterable[int | str]) -> dict[str, Any]:
    """Merge LUTs in the cells of a module in Yosys' JSON, and remove those without remaining loads.

    Inverters were removed before. ``parts``: cell types that are other parts. ``outputs``: nets of output
    ports.
    """
    inputs: dict[int, list[int]] = {}
    luts: dict[int, str] = {}
    used: set[int | str] = set(outputs)
    for name, cell in cells.items():
        reads, driven = _nets(pins_of(cell, "input")), _nets(pins_of(cell, "output"))
        if _LUT.fullmatch(cell["type"]):
            luts[driven[0]] = name
        else:
            used.update(reads)
        if cell["type"] not in parts and not _CLOCKED.fullmatch(cell["type"]):
            inputs.update(dict.fromkeys(driven, reads))
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


def _ordered(inputs: Mapping[int, list[int]]) -> list[int]:
    """Return the nets of combinational cells in topological order, without those of loops."""
    sorter = graphlib.TopologicalSorter(inputs)
    with contextlib.suppress(graphlib.CycleError):  # nets before a loop are still returned
        sorter.prepare()
    order: list[int] = []
    while ready := sorter.get_ready():
        order += (net for net in ready if net in inputs)
        sorter.done(*ready)
    return order


def _merged(
    own: list[int], inputs: Mapping[int, list[int]], luts: Mapping[int, str], depth: Mapping[int, int]
) -> list[int]:
    """Return the inputs of a LUT after merging its latest input LUTs, repeatedly while they fit."""
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
