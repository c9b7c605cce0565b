"""The estimate of a kernel's timing: endpoints over the clock's budget, their places, the worst paths."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from hw.board import Board
from sim.timing.delays import load_delays
from sim.timing.graph import Graph, Step
from sim.timing.netlist import read_parts


@dataclass(frozen=True, kw_only=True)
class Path:
    """The slowest path to an endpoint."""

    endpoint: str  #: Pin of the register it ends at.
    source: str  #: Line of Python that the register is from.
    part: str  #: Part that the register is in.
    delay_ps: float  #: From clock edge to clock edge with setup.
    slack_ps: float  #: What of the budget is left.
    steps: tuple[Step, ...]  #: The nets of the path.


@dataclass(frozen=True, kw_only=True)
class Place:
    """What ends in one part and source file."""

    part: str
    file: str
    endpoints: int
    endpoints_over: int  #: Those over budget.
    worst_slack_ps: float


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The timing of a kernel or block; an endpoint is a pin of a register, memory or output."""

    budget_ps: float  #: What a path may take.
    slr_crossing_ps: float  #: What nets between parts were charged for crossing dies; 0 where it fits in one.
    luts: int
    endpoints: int
    endpoints_over: int  #: Endpoints whose path takes too long.
    worst_slack_ps: float
    logic_depth: int  #: Cells between the registers of the slowest path.
    places: tuple[Place, ...]  #: The same by part and source file, worst first.
    paths: tuple[Path, ...]  #: The slowest path to each of the worst registers, worst first, one a register.
    widest: tuple[Step, ...]  #: The nets with the most loads, most first.


def estimate(verilog: str, top: str, board: Board, *, worst: int = 10) -> Estimate:
    """Estimate the timing of a kernel or block, with the slowest paths of the ``worst`` registers, and as
    many nets with the most loads.

    Raises `ToolError` when Yosys is missing or fails, or the netlist has a combinational loop.
    """
    parts = read_parts(verilog, top, delays := load_delays())
    graph, crossing = Graph(parts, top, delays), 0.0
    if graph.luts > board.user.lut / board.slrs:
        crossing = board.budget.slr_crossing_ps
        graph = Graph(parts, top, delays, crossing=crossing)
    return judge(graph, board.path_budget_ps, board.budget.delay_factor, crossing=crossing, worst=worst)


def judge(graph: Graph, budget_ps: float, factor: float, *, crossing: float, worst: int) -> Estimate:
    """Compare every endpoint of a timing graph with the budget."""
    delays = graph.arrivals * factor
    slacks = budget_ps - delays
    by_place: dict[tuple[str, str], list[int]] = defaultdict(list)
    for endpoint, (_, source, part) in enumerate(graph.endpoints):
        by_place[part, _shorter(source).split(":")[0]].append(endpoint)
    places = [
        Place(
            part=part,
            file=file,
            endpoints=len(members),
            endpoints_over=int((slacks[members] < 0).sum()),
            worst_slack_ps=float(slacks[members].min()),
        )
        for (part, file), members in by_place.items()
    ]
    paths: dict[str, Path] = {}
    for endpoint in np.argsort(slacks, kind="stable"):
        if len(paths) == worst:
            break
        name, source, part = graph.endpoints[endpoint]
        register = name.rpartition("/")[0].split("[")[0]
        if register not in paths:
            paths[register] = Path(
                endpoint=name,
                source=_shorter(source),
                part=part,
                delay_ps=float(delays[endpoint]),
                slack_ps=float(slacks[endpoint]),
                steps=tuple(graph.path_to(int(endpoint))),
            )
    return Estimate(
        budget_ps=budget_ps,
        slr_crossing_ps=crossing,
        luts=graph.luts,
        endpoints=len(delays),
        endpoints_over=int((slacks < 0).sum()),
        worst_slack_ps=float(slacks.min(initial=budget_ps)),
        logic_depth=max((len(path.steps) - 1 for path in list(paths.values())[:1]), default=0),
        places=tuple(sorted(places, key=lambda place: (place.worst_slack_ps, place.part, place.file))),
        paths=tuple(paths.values()),
        widest=tuple(replace(net, source=_shorter(net.source)) for net in graph.widest(worst)),
    )


def _shorter(source: str) -> str:
    """Give ``hw/lib/fifo.py:31`` for a line of the project, and package and file for any other."""
    found = re.match(r".*?\.py:\d+", source)
    steps = PurePath(found[0] if found else source).parts
    roots = [index for index, step in enumerate(steps) if step in ("hw", "tests", "amaranth")]
    return "/".join(steps[roots[-1] :] if roots else steps[-2:])
