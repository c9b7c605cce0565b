"""The estimate of a kernel's timing: endpoints over the clock's budget, by part and file, and worst paths."""

import math
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from hw.board import Board
from hw.board.regions import Regions, die_of, undivided
from hw.board.resources import MOST_SHARES, Resources
from sim.build.synthesis import synthesize
from sim.timing.delays import load_delays
from sim.timing.graph import PathNet, TimingGraph
from sim.timing.netlist import read_parts

#: Draws of the fit's scatter.
SEEDS = 20
#: LUTs of a tile, the unit of the delay of long wires.
_TILE_LUTS = 8


@dataclass(frozen=True, kw_only=True)
class TimingPath:
    """The slowest path to an endpoint."""

    endpoint: str  #: Pin of the register it ends at.
    source: str  #: Line of Python that the register is from.
    part: str  #: Part that the register is in.
    delay_ps: float  #: From clock edge to clock edge with setup.
    slack_ps: float  #: Budget minus delay.
    steps: tuple[PathNet, ...]  #: The nets of the path.


@dataclass(frozen=True, kw_only=True)
class EndpointGroup:
    """The endpoints in one part and source file."""

    part: str
    file: str
    endpoints: int
    endpoints_over: int  #: Those over budget.
    worst_slack_ps: float


@dataclass(frozen=True, kw_only=True)
class RegionUse:
    """Resources of a region, against its die."""

    slr: int
    parts: int  #: Placed parts in it, nested ones included.
    taken: Resources  #: Counted.
    over: tuple[str, ...]  #: Resources over the die's limit.


@dataclass(frozen=True, kw_only=True)
class Doubt:
    """Endpoints over budget if nets are slower than the fit: for information, without a limit."""

    deviation_ps: float  #: Standard deviation of routed nets about the fit.
    scattered_over: tuple[int, ...]  #: By seed: with every routed net off by a draw of that deviation.
    long_wires_ps: float  #: Added delay of a net between two parts, from the published delay of long wires.
    long_wires_over: int


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """The timing of a kernel or block; an endpoint is a pin of a register, memory or output."""

    budget_ps: float  #: Longest legal delay of a path.
    slr_crossing_ps: float  #: Added delay of a net for each border of dies; 0 for a kernel on one die.
    regions: tuple[RegionUse, ...]  #: Its regions; empty if none are named or there is only one die.
    crossing_nets: int  #: Nets with this added delay.
    doubt: Doubt
    luts: int
    endpoints: int
    endpoints_over: int  #: Endpoints over budget.
    worst_slack_ps: float
    logic_depth: int  #: Cells between the registers of the slowest path.
    places: tuple[EndpointGroup, ...]  #: The same by part and source file, worst first.
    paths: tuple[TimingPath, ...]  #: The slowest path to each of the worst registers, worst first.
    widest: tuple[PathNet, ...]  #: The nets with the most loads, most first.


def estimate(verilog: str, top: str, board: Board, *, regions: Regions = (), worst: int = 10) -> Estimate:
    """Estimate the timing of a kernel or block, with the slowest paths of the ``worst`` registers, and as
    many nets with the most loads.

    ``regions`` assigns parts to dies; without it all lie on one.  If a kernel does not fit one die and has no
    regions, every net between parts is charged a crossing.

    Raises `ToolError` when Yosys is missing or fails, or the netlist has a combinational loop.
    """
    parts = read_parts(verilog, top, delays := load_delays())
    if board.slrs == 1:
        graph = TimingGraph(parts, top, delays)
        return judge(graph, board.path_budget_ps, board.budget.delay_factor, crossing=0.0, worst=worst)
    regions = regions or undivided(board)
    each = {part.name: part.each for part in synthesize(verilog, top).parts}
    crossing = board.budget.slr_crossing_ps
    graph = TimingGraph(parts, top, delays, crossing=crossing, die_of=lambda path: die_of(regions, path))
    uses = tuple(
        _use(
            board,
            region.slr,
            [each[kind] for path, kind in graph.placed if die_of(regions, path) == region.slr],
        )
        for region in regions
    )
    if len(regions) == 1 and uses[0].over:
        graph, uses = TimingGraph(parts, top, delays, crossing=crossing), ()
    elif len(regions) == 1:
        crossing = 0.0
    budget, factor = board.path_budget_ps, board.budget.delay_factor
    return judge(graph, budget, factor, crossing=crossing, worst=worst, regions=uses)


def _use(board: Board, slr: int, held: Sequence[Resources]) -> RegionUse:
    """Compare the resources of parts with the limits of a die."""
    names = [name for name, _ in board.die.items()]
    taken = Resources(**{name: sum(getattr(part, name) for part in held) for name in names})
    return RegionUse(slr=slr, parts=len(held), taken=taken, over=taken.over_shares(board.die))


def judge(
    graph: TimingGraph,
    budget_ps: float,
    factor: float,
    *,
    crossing: float,
    worst: int,
    regions: tuple[RegionUse, ...] = (),
) -> Estimate:
    """Compare every endpoint of a timing graph with the budget."""
    delays = graph.arrivals * factor
    slacks = budget_ps - delays
    by_place: dict[tuple[str, str], list[int]] = defaultdict(list)
    for endpoint, (_, source, part) in enumerate(graph.endpoints):
        by_place[part, _shorter(source).split(":")[0]].append(endpoint)
    places = [
        EndpointGroup(
            part=part,
            file=file,
            endpoints=len(members),
            endpoints_over=int((slacks[members] < 0).sum()),
            worst_slack_ps=float(slacks[members].min()),
        )
        for (part, file), members in by_place.items()
    ]
    paths: dict[str, TimingPath] = {}
    for endpoint in np.argsort(slacks, kind="stable"):
        if len(paths) == worst:
            break
        name, source, part = graph.endpoints[endpoint]
        register = name.rpartition("/")[0].split("[")[0]
        if register not in paths:
            paths[register] = TimingPath(
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
        regions=regions,
        crossing_nets=graph.crossing_nets if crossing else 0,
        doubt=_doubt(graph, budget_ps, factor, dies=max(1, len(regions))),
        luts=graph.luts,
        endpoints=len(delays),
        endpoints_over=int((slacks < 0).sum()),
        worst_slack_ps=float(slacks.min(initial=budget_ps)),
        logic_depth=max((len(path.steps) - 1 for path in list(paths.values())[:1]), default=0),
        places=tuple(sorted(places, key=lambda place: (place.worst_slack_ps, place.part, place.file))),
        paths=tuple(paths.values()),
        widest=tuple(replace(net, source=_shorter(net.source)) for net in graph.widest(worst)),
    )


def _doubt(graph: TimingGraph, budget_ps: float, factor: float, *, dies: int) -> Doubt:
    """Count again with nets off by the scatter of their fit, and with long wires between parts.

    Two random points in a square are two thirds of its side apart on average.  A die's square has the area of
    its share of the LUTs, filled to the limit of a kernel.
    """
    delays = load_delays()
    side = math.sqrt(graph.luts / dies / (_TILE_LUTS * MOST_SHARES["lut"]))
    longer = delays["long_wire"] * side * 2 / 3

    def over(arrivals: Any) -> int:
        return int((arrivals * factor > budget_ps).sum())

    return Doubt(
        deviation_ps=delays["routed_deviation"],
        scattered_over=tuple(over(graph.scattered(delays["routed_deviation"], n)) for n in range(SEEDS)),
        long_wires_ps=longer,
        long_wires_over=over(graph.lengthened(longer)),
    )


def _shorter(source: str) -> str:
    """Return ``hw/lib/fifo.py:31`` for a line of the project, and package and file for any other."""
    found = re.match(r".*?\.py:\d+", source)
    steps = PurePath(found[0] if found else source).parts
    roots = [index for index, step in enumerate(steps) if step in ("hw", "tests", "amaranth")]
    return "/".join(steps[roots[-1] :] if roots else steps[-2:])
