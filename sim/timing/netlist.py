"""Yosys' netlist of a kernel, part by part, as arrays of nets and paths."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hw.errors import ToolError
from sim.build.yosys import NETLIST, mapped, part_texts
from sim.timing.cells import Pins, data_bits, timing_of
from sim.timing.collapse import collapse, pins_of
from sim.timing.delays import Delays, Driver


@dataclass(frozen=True, kw_only=True)
class PartTiming:
    """The timing of one module of the netlist, with other parts placed in it left out; times in ps."""

    drivers: Any  #: By net: `Driver`.
    loads: Any  #: By net: pins it drives.
    kinds: Sequence[str]  #: By net: type of the cell that drives it, or "port".
    names: Sequence[str]  #: By net: the signal, ``""`` without one.
    sources: Sequence[str]  #: By net: source line of the signal (``hw/lib/fifo.py:31``).
    arcs: Any  #: Rows of paths through cells: net, net, delay, `Sink` of the first net.
    launches: Any  #: Rows of nets that change with the clock: net, clock to out, net that is stored or -1.
    captures: Any  #: Rows of pins that the clock samples: net, setup, `Sink`.
    endpoints: Sequence[tuple[str, str]]  #: By such pin: register and pin (``x.q[3]/CE``), source line.
    ports: Mapping[str, tuple[list[int | None], bool]]  #: Nets of each port, and whether it is an input.
    placed: Sequence[tuple[str, str, Pins]]  #: Other parts in it: name, part, nets by port.
    luts: int  #: LUTs in it.


def read_parts(verilog: str, top: str, delays: Delays) -> dict[str, PartTiming]:
    """Map a kernel to UltraScale+ cells with Yosys, each part once, and read the netlists.

    In its text, modules named ``CELL.x`` are within the part ``CELL``.  Raises `ToolError` when Yosys is
    missing, refuses the text, or maps to a cell with unknown timing.
    """
    texts = part_texts(verilog)
    wanted, found = [top], dict[str, PartTiming]()
    while wanted:
        name = wanted.pop()
        if name not in found:
            mapping = json.loads((mapped(texts, name) / NETLIST).read_text())
            module = prepared(mapping["modules"][name], set(texts))
            found[name] = part_of(module, delays, set(texts))
            wanted += [part for _, part, _ in found[name].placed]
    return found


def prepared(module: Mapping[str, Any], parts: set[str]) -> dict[str, Any]:
    """Return a module with inverters absorbed by their loads, and LUTs merged; see `collapse`."""
    inverters = [cell["connections"] for cell in module["cells"].values() if cell["type"] == "INV"]
    same = {pins["O"][0]: pins["I"][0] for pins in inverters}

    def straight(bits: Sequence[int | str]) -> list[int | str]:
        found = list(bits)
        for index, bit in enumerate(found):
            while bit in same:
                bit = same[bit]
            found[index] = bit
        return found

    cells = {
        name: {**cell, "connections": {pin: straight(bits) for pin, bits in cell["connections"].items()}}
        for name, cell in module["cells"].items()
        if cell["type"] not in ("INV", "GND", "VCC")
    }
    ports = {name: {**port, "bits": straight(port["bits"])} for name, port in module["ports"].items()}
    nets = {name: {**net, "bits": straight(net["bits"])} for name, net in module["netnames"].items()}
    outputs = [bit for port in ports.values() if port["direction"] == "output" for bit in port["bits"]]
    return {"cells": collapse(cells, parts, outputs), "ports": ports, "netnames": nets}


def part_of(module: Mapping[str, Any], delays: Delays, parts: set[str]) -> PartTiming:
    """Read the timing of a module in Yosys' JSON; ``parts`` are cell types that are other parts."""
    names, sources = _names(module)
    drivers, kinds = np.full(len(names), Driver.PORT), ["port"] * len(names)
    loads = np.zeros(len(names), int)
    arcs: list[tuple[float, ...]] = []
    launches: list[tuple[float, ...]] = []
    captures: list[tuple[float, ...]] = []
    endpoints: list[tuple[str, str]] = []
    placed = []
    luts = 0
    for name, cell in module["cells"].items():
        kind = cell["type"]
        if kind in parts:
            placed.append((name, kind, _pins(cell["connections"])))
            continue
        inputs, outputs = _pins(pins_of(cell, "input")), _pins(pins_of(cell, "output"))
        timing = timing_of(kind, inputs, outputs, delays)
        if timing is None:
            raise ToolError(f"Yosys maps to {kind}, a cell whose timing is not known")
        luts += kind.startswith("LUT")
        register = None
        for pin, bits in outputs.items():
            for bit in bits:
                if bit is not None:
                    carry_sum = timing.drives is Driver.CARRY and pin == "O"
                    drivers[bit], kinds[bit] = Driver.SUM if carry_sum else timing.drives, kind
                    register = bit if register is None and names[bit] else register
        for _, net in data_bits(inputs):
            loads[net] += 1
        arcs += timing.arcs
        launches += timing.launches
        captures += [(net, setup, sink) for net, setup, sink, _ in timing.captures]
        owner = names[register] if timing.drives is Driver.FF and register is not None else name
        source = (sources[register] if register is not None else "") or _line(cell)
        endpoints += [(f"{owner}/{pin}", source) for *_, pin in timing.captures]
    return PartTiming(
        drivers=drivers,
        loads=loads,
        kinds=kinds,
        names=names,
        sources=sources,
        arcs=np.array(arcs).reshape(-1, 4),
        launches=np.array(launches).reshape(-1, 3),
        captures=np.array(captures).reshape(-1, 3),
        endpoints=endpoints,
        ports={
            name: (_pins({name: port["bits"]})[name], port["direction"] == "input")
            for name, port in module["ports"].items()
        },
        placed=placed,
        luts=luts,
    )


def _pins(pins: Mapping[str, Sequence[int | str]]) -> dict[str, list[int | None]]:
    return {pin: [bit if isinstance(bit, int) else None for bit in bits] for pin, bits in pins.items()}


def _line(item: Mapping[str, Any]) -> str:
    """Return the last source line of Python of an item of the netlist."""
    return next(
        (line for line in reversed(item["attributes"].get("src", "").split("|")) if ".py:" in line), ""
    )


def _names(module: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Return name and source line of every net, from its signal with the shortest name."""
    items = [*module["netnames"].values(), *module["ports"].values()]
    every = [item["bits"] for item in items]
    every += [bits for cell in module["cells"].values() for bits in cell["connections"].values()]
    count = max((bit for bits in every for bit in bits if isinstance(bit, int)), default=-1) + 1
    names, sources = [""] * count, [""] * count
    for name, net in module["netnames"].items():
        if net.get("hide_name") or name.startswith("$"):
            continue
        wide = len(net["bits"]) > 1
        for index, bit in enumerate(net["bits"]):
            if isinstance(bit, int) and (not names[bit] or len(name) < len(names[bit].split("[")[0])):
                names[bit] = f"{name}[{index}]" if wide else name
                sources[bit] = _line(net)
    return names, sources
