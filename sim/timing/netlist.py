"""Yosys' netlist of a kernel, part by part, as arrays of nets and paths."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hw.errors import ToolError
from sim.build.cache import BuildCache
from sim.build.yosys import part_texts, placed_in, run_yosys
from sim.host.digest import key_of
from sim.timing.cells import timing_of
from sim.timing.collapse import collapse
from sim.timing.delays import Delays, Driver, Sink

_NETLIST = "netlist.json"


@dataclass(frozen=True, kw_only=True)
class Part:
    """The timing of one module of the netlist, with other parts placed in it left out.

    Members
    -------
    drivers, loads
        By net: `Driver`, and how many pins it drives.
    starts, ends, delays, sinks
        Paths through cells: net to net, the delay of the cell, and what the cell is to the first net.
    launch_nets, launch_delays, launch_stored
        Nets that change with the clock; the net a flip-flop stores, else -1.
    capture_nets, capture_setups, capture_sinks, capture_pins
        Pins the clock samples; the pins' names (``x.q[3]/CE``) lead to registers.
    cell_of
        By net: the kind of the cell that drives it, as an index of ``kinds``, or -1.
    names, sources
        By net: name and source line (``hw/lib/fifo.py:31``) of the signal; empty without one.
    ports
        Nets of each port, and whether it is an input.
    placed
        Other parts in it: name, part, nets by port.
    luts
        LUTs in it.
    """

    drivers: Any
    loads: Any
    starts: Any
    ends: Any
    delays: Any
    sinks: Any
    launch_nets: Any
    launch_delays: Any
    launch_stored: Any
    capture_nets: Any
    capture_setups: Any
    capture_sinks: Any
    capture_pins: Sequence[str]
    capture_sources: Sequence[str]
    cell_of: Any
    kinds: Sequence[str]
    names: Sequence[str]
    sources: Sequence[str]
    ports: Mapping[str, tuple[list[int | None], bool]]
    placed: Sequence[tuple[str, str, Mapping[str, list[int | None]]]]
    luts: int


def read_parts(verilog: str, top: str, delays: Delays, *, cache: BuildCache | None = None) -> dict[str, Part]:
    """Map a kernel to UltraScale+ cells with Yosys, each part once, and read the netlists.

    Parameters
    ----------
    verilog
        Its text; modules named ``CELL.x`` are within the part ``CELL``.
    top
        Its top module.

    Raises
    ------
    ToolError
        When Yosys is missing or refuses the text, or maps to a cell whose timing is not known.
    """
    texts = part_texts(verilog)
    wanted, found = [top], {}
    while wanted:
        name = wanted.pop()
        if name not in found:
            module = _synthesized(texts, name, cache or BuildCache())
            found[name] = part_of(prepared(module, set(texts)), delays, set(texts))
            wanted += [part for _, part, _ in found[name].placed]
    return found


def _synthesized(texts: Mapping[str, str], name: str, cache: BuildCache) -> dict[str, Any]:
    """Give the module of a part in Yosys' JSON, flattened but for other parts."""
    others = placed_in(texts, name)

    def build(folder: Path) -> None:
        commands = [
            *(f"blackbox {other}" for other in others),
            f"synth_xilinx -family xcup -flatten -noiopad -noclkbuf -top {name}",
            "delete t:$scopeinfo",
            f"write_json {_NETLIST}",
        ]
        run_yosys(folder, "".join(texts.values()), commands, name)

    entry, _ = cache.get(key_of(["timing", name, texts[name], *others]), build)
    with (entry / _NETLIST).open() as file:
        module: dict[str, Any] = json.load(file)["modules"][name]
    return module


def part_of(module: Mapping[str, Any], delays: Delays, parts: set[str]) -> Part:
    """Read the timing of a module.

    Parameters
    ----------
    module
        As Yosys writes it in JSON.
    parts
        Cell types that are other parts.
    """
    ports = {
        name: (_nets(port["bits"]), port["direction"] == "input") for name, port in module["ports"].items()
    }
    names, sources = _names(module)
    count = len(names)
    drivers, cell_of = np.full(count, Driver.PORT), np.full(count, -1)
    loads = np.zeros(count, int)
    arcs: list[tuple[int, int, float, int]] = []
    launches: list[tuple[int, float, int]] = []
    captures: list[tuple[int, float, int]] = []
    pins: list[str] = []
    capture_sources: list[str] = []
    kinds: dict[str, int] = {}
    placed = []
    luts = 0
    for name, cell in module["cells"].items():
        kind, directions = cell["type"], cell["port_directions"]
        connections = {pin: _nets(bits) for pin, bits in cell["connections"].items()}
        if kind in parts:
            placed.append((name, kind, connections))
            continue
        inputs = {pin: bits for pin, bits in connections.items() if directions[pin] == "input"}
        outputs = {pin: bits for pin, bits in connections.items() if directions[pin] == "output"}
        timing = timing_of(kind, inputs, outputs, delays)
        if timing is None:
            raise ToolError(f"Yosys maps to {kind}, a cell whose timing is not known")
        luts += kind.startswith("LUT")
        driven = [bit for bits in outputs.values() for bit in bits if bit is not None]
        drivers[driven] = timing.drives
        if timing.drives is Driver.CARRY:
            drivers[[bit for bit in outputs.get("O", []) if bit is not None]] = Driver.SUM
        cell_of[driven] = kinds.setdefault(kind, len(kinds))
        sink_of: dict[int, Sink] = {}
        for net, sink in timing.loads:
            loads[net] += 1
            sink_of[net] = sink
        arcs += [(arc.start, arc.end, arc.delay, sink_of[arc.start]) for arc in timing.arcs]
        launches += [(net, delay, -1 if stored is None else stored) for net, delay, stored in timing.launches]
        register = next((bit for bit in driven if names[bit]), None)
        for net, sink, setup, pin in timing.captures:
            captures.append((net, setup, sink))
            is_ff = timing.drives is Driver.FF and register is not None
            pins.append(f"{names[register] if is_ff and register is not None else name}/{pin}")
            capture_sources.append(
                sources[register] if register is not None and sources[register] else _line(cell)
            )
    arc = np.array(arcs).reshape(-1, 4)
    launch = np.array(launches).reshape(-1, 3)
    capture = np.array(captures).reshape(-1, 3)
    return Part(
        drivers=drivers,
        loads=loads,
        starts=arc[:, 0].astype(int),
        ends=arc[:, 1].astype(int),
        delays=arc[:, 2],
        sinks=arc[:, 3].astype(int),
        launch_nets=launch[:, 0].astype(int),
        launch_delays=launch[:, 1],
        launch_stored=launch[:, 2].astype(int),
        capture_nets=capture[:, 0].astype(int),
        capture_setups=capture[:, 1],
        capture_sinks=capture[:, 2].astype(int),
        capture_pins=pins,
        capture_sources=capture_sources,
        cell_of=cell_of,
        kinds=list(kinds),
        names=names,
        sources=sources,
        ports=ports,
        placed=placed,
        luts=luts,
    )


def _nets(bits: Sequence[int | str | None]) -> list[int | None]:
    return [bit if isinstance(bit, int) else None for bit in bits]


def prepared(module: Mapping[str, Any], parts: set[str]) -> dict[str, Any]:
    """Give a module without inverters, which go into what they feed, and with LUTs merged; see `collapse`."""
    same = {
        cell["connections"]["O"][0]: cell["connections"]["I"][0]
        for cell in module["cells"].values()
        if cell["type"] == "INV"
    }

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
    outputs = [bit for port in ports.values() if port["direction"] == "output" for bit in port["bits"]]
    nets = {name: {**net, "bits": straight(net["bits"])} for name, net in module["netnames"].items()}
    return {"cells": collapse(cells, parts, outputs), "ports": ports, "netnames": nets}


def _line(item: Mapping[str, Any]) -> str:
    """Give the last source line of Python that an item of the netlist has."""
    lines = [line for line in item["attributes"].get("src", "").split("|") if ".py:" in line]
    return lines[-1] if lines else ""


def _names(module: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Give name and source line of every net: of the signal with the shortest name that anybody gave."""
    every = [bit for net in module["netnames"].values() for bit in net["bits"] if isinstance(bit, int)]
    for cell in module["cells"].values():
        every += [bit for bits in cell["connections"].values() for bit in bits if isinstance(bit, int)]
    for port in module["ports"].values():
        every += [bit for bit in port["bits"] if isinstance(bit, int)]
    count = max(every, default=-1) + 1
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
