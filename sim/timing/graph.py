"""The timing graph of a whole kernel, and the arrival time of each net.

A kernel is its top part with all placed parts joined at their ports.  Every placement is a copy of the part's
arrays, and nets joined by a port are one.  So no path through ports is lost, and every net has all its loads.
"""

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hw.errors import ToolError
from sim.timing.cells import Pins
from sim.timing.delays import Delays, Driver, Sink, net_delays
from sim.timing.netlist import PartTiming


@dataclass(frozen=True, kw_only=True)
class PathNet:
    """A net of a path."""

    name: str  #: Signal, ``""`` without one.
    source: str  #: Its line of Python.
    cell: str  #: Type of the cell that drives it.
    loads: int
    arrival: float  #: Time at which it settles, in ps after the clock edge.


class TimingGraph:
    """The timing graph of a kernel.

    * ``parts``, ``top``, ``delays``: its netlist, the name of its top part, the delays of cells and nets.
    * ``crossing``: added delay of a net for each border of dies, in ps.
    * ``die_of``: the die of a placement by its path; without it every net between parts crosses.

    The kernel's own ports count as registers beside it: inputs change like a flip-flop's output, outputs must
    settle like a flip-flop's input.  Raises `ToolError` for a combinational loop, with a signal on it.
    """

    def __init__(
        self,
        parts: Mapping[str, PartTiming],
        top: str,
        delays: Delays,
        *,
        crossing: float = 0.0,
        die_of: Callable[[str], int] | None = None,
    ) -> None:
        #: Where the nets of a placement begin, its path, its part.
        self._placed: list[tuple[int, str, PartTiming]] = []
        self._kinds: list[str] = []
        self._joined: list[tuple[int, int]] = []
        #: Register and pin, source line, and part of every pin that the clock samples.
        self.endpoints: list[tuple[str, str, str]] = []
        self._place(parts, top, "", {})
        self.luts = sum(part.luts for _, _, part in self._placed)  #: LUTs in all parts.
        count = self._placed[-1][0] + len(self._placed[-1][2].names)
        root = _joined_nets(count, self._joined)
        loads = np.concatenate([part.loads for *_, part in self._placed])
        self._loads = np.bincount(root, weights=loads, minlength=count).astype(int)
        driving = np.concatenate([part.drivers for *_, part in self._placed])
        driven = np.flatnonzero(driving != Driver.PORT)
        self._driven_at = np.arange(count)  # the joined net with the driver
        self._driven_at[root[driven]] = driven
        drivers = driving[self._driven_at]

        own = [
            (name, index, bit, is_input)
            for name, (bits, is_input) in parts[top].ports.items()
            for index, bit in enumerate(bits)
            if bit is not None
        ]
        outputs = root[np.array([bit for *_, bit, is_input in own if not is_input], int)]
        np.add.at(self._loads, outputs, 1)
        self.endpoints += [
            (f"{name}[{index}] (port)", "", top) for name, index, _, is_input in own if not is_input
        ]

        arcs = self._rows("arcs", root, 0, 1)
        launches = self._rows("launches", root, 0, 2)
        beside = np.array([[net, delays["ff_setup"], Sink.FF] for net in outputs]).reshape(-1, 3)
        captures = np.concatenate([self._rows("captures", root, 0), beside])
        stored = launches[:, 2].astype(int)
        for driver, register in (
            (Driver.BLOCK_RAM, delays["block_ram_register_clock_to_out"]),
            (Driver.ULTRA_RAM, delays["ultra_ram_register_clock_to_out"]),
            (Driver.DSP, delays["dsp_register_clock_to_out"]),
        ):
            launches[(stored >= 0) & (drivers[stored] == driver) & (self._loads[stored] == 1), 1] = register
        self._launched = np.full(count, -np.inf)
        np.maximum.at(self._launched, launches[:, 0].astype(int), launches[:, 1])
        inputs = np.array([bit for *_, bit, is_input in own if is_input], int)
        self._launched[root[inputs]] = delays["ff_clock_to_out"]

        # Connections: from the driver of a net to each arc through a cell, then to each sampled pin.
        self._arcs = len(arcs)
        self._ends = arcs[:, 1].astype(int)
        self._nets = np.concatenate([arcs[:, 0], captures[:, 0]]).astype(int)
        self._cell_delays = np.concatenate([arcs[:, 2], captures[:, 1]])
        sinks = np.concatenate([arcs[:, 3], captures[:, 2]]).astype(int)
        placements = self._owners("names")
        at = np.where(drivers == Driver.PORT, 0, placements[self._driven_at])[self._nets]
        to = np.concatenate([self._owners("arcs"), self._owners("captures"), np.zeros(len(beside), int)])
        self._between = at != to
        if die_of is None:
            joined = np.zeros(count, bool)
            joined[root[np.array(self._joined, int).ravel()]] = True
            crossed = joined[self._nets].astype(float)
        else:
            dies = np.array([die_of(path.removesuffix(".")) for _, path, _ in self._placed])
            crossed = abs(dies[at] - dies[to])
        # Without dies a net between parts may still lie within a slice.
        apart = crossed > 0 if die_of is not None else False
        net_delay = net_delays(delays, drivers[self._nets], sinks, self._loads[self._nets], apart)
        self._routed = net_delay >= delays["routed"]  # nets within a slice are faster
        self.crossing_nets = len(np.unique(self._nets[crossed > 0]))  #: Nets with an added ``crossing``.
        self._net_delays = net_delay + crossing * crossed

        self._levels = self._ordered()
        weights = self._cell_delays + self._net_delays
        self._settled = self._settle(weights)
        starts = self._nets[: self._arcs]
        slowest = self._settled[starts] + weights[: self._arcs] == self._settled[self._ends]
        self._before = np.full(count, -1)
        self._before[self._ends[slowest]] = starts[slowest]
        self._captured = self._nets[self._arcs :]
        #: By endpoint: arrival of its data plus setup, in ps after the clock edge.
        self.arrivals = self._arrivals(self._settled, weights)

    @property
    def placed(self) -> list[tuple[str, str]]:
        """Path and part of every placement, the kernel itself first."""
        return [
            (path.removesuffix("."), name)
            for (_, path, _), name in zip(self._placed, self._kinds, strict=True)
        ]

    def scattered(self, deviation: float, seed: int) -> Any:
        """Return arrivals with routed nets off by a normal distribution, one draw for each net."""
        draws = np.random.default_rng(seed).normal(0.0, deviation, len(self._settled))[self._nets]
        nets = np.where(self._routed, np.maximum(self._net_delays + draws, 0.0), self._net_delays)
        weights = self._cell_delays + nets
        return self._arrivals(self._settle(weights), weights)

    def lengthened(self, longer: float) -> Any:
        """Return arrivals with ``longer`` ps added to every net between two parts."""
        weights = self._cell_delays + self._net_delays + longer * self._between
        return self._arrivals(self._settle(weights), weights)

    def _arrivals(self, settled: Any, weights: Any) -> Any:
        return settled[self._captured] + weights[self._arcs :]

    def _place(self, parts: Mapping[str, PartTiming], name: str, path: str, nets: Pins) -> None:
        part = parts[name]
        first = self._placed[-1][0] + len(self._placed[-1][2].names) if self._placed else 0
        self._placed.append((first, path, part))
        self._kinds.append(name)
        self.endpoints += [(path + pin, source, name) for pin, source in part.endpoints]
        for port, outer in nets.items():
            for bit, above in zip(part.ports[port][0], outer, strict=True):
                if bit is not None and above is not None:
                    self._joined.append((first + bit, above))
        for instance, kind, connections in part.placed:
            inner = {
                port: [None if bit is None else first + bit for bit in bits]
                for port, bits in connections.items()
            }
            self._place(parts, kind, f"{path}{instance}.", inner)

    def _rows(self, name: str, root: Any, *columns: int) -> Any:
        """Return the rows of all placements; ``columns`` are converted to nets of the kernel, or -1."""
        found = np.concatenate([getattr(part, name) for *_, part in self._placed])
        firsts = np.array([first for first, *_ in self._placed])[self._owners(name)]
        for column in columns:
            nets = found[:, column].astype(int)
            found[:, column] = np.where(nets < 0, -1, root[nets + firsts])
        return found

    def _owners(self, name: str) -> Any:
        """Return for every row of all placements the number of its placement."""
        lengths = [len(getattr(part, name)) for *_, part in self._placed]
        return np.repeat(np.arange(len(self._placed)), lengths)

    def _ordered(self) -> list[tuple[Any, Any, Any]]:
        """Group the arcs by the depth of their start nets.

        Each group has the arcs sorted by their end net, the first arc of each end net, and the end nets.
        """
        starts, ends, count = self._nets[: self._arcs], self._ends, len(self._launched)
        order = np.argsort(starts, kind="stable")
        first = np.searchsorted(starts[order], np.arange(count + 1))
        waiting = np.bincount(ends, minlength=count)
        ready = np.flatnonzero(waiting == 0)
        levels = []
        while len(ready):
            lengths = first[ready + 1] - first[ready]
            begins = np.repeat(first[ready] - np.cumsum(lengths) + lengths, lengths)
            arcs = order[begins + np.arange(lengths.sum())]
            arcs = arcs[np.argsort(ends[arcs], kind="stable")]
            touched, begin, times = np.unique(ends[arcs], return_index=True, return_counts=True)
            levels.append((arcs, begin, touched))
            waiting[touched] -= times
            ready = touched[waiting[touched] == 0]
        if waiting.any():
            self._settled = self._launched
            looped = self._step(int(np.flatnonzero(waiting)[0]))
            raise ToolError(f"the netlist has a combinational loop through {looped.name}")
        return levels

    def _settle(self, weights: Any) -> Any:
        """Return the arrival of each net, from the delays of every connection with the cell behind it."""
        settled = self._launched.copy()
        for arcs, begin, touched in self._levels:
            if len(arcs):
                reached = np.maximum.reduceat(settled[self._nets[arcs]] + weights[arcs], begin)
                settled[touched] = np.maximum(settled[touched], reached)
        return settled

    def path_to(self, endpoint: int) -> list[PathNet]:
        """Return the nets of the slowest path to an endpoint, beginning at the launching register."""
        net = int(self._captured[endpoint])
        path = [self._step(net)]
        while (net := int(self._before[net])) >= 0:
            path.append(self._step(net))
        return path[::-1]

    def widest(self, count: int) -> list[PathNet]:
        """Return the nets with the most loads, most first, one of each signal over all placements."""
        found: dict[tuple[str, str], PathNet] = {}
        for net in np.argsort(-self._loads, kind="stable"):
            step = self._step(int(net))
            if len(found) == count or not step.loads:
                break
            found.setdefault((step.name.rpartition(".")[2].split("[")[0], step.source), step)
        return list(found.values())

    def _step(self, net: int) -> PathNet:
        at = int(self._driven_at[net])
        first, path, part = self._placed[bisect(self._placed, at, key=lambda place: place[0]) - 1]
        name = part.names[at - first]
        return PathNet(
            name=path + name if name else "",
            source=part.sources[at - first],
            cell=part.kinds[at - first],
            loads=int(self._loads[net]),
            arrival=float(self._settled[net]),
        )


def _joined_nets(count: int, joined: Iterable[tuple[int, int]]) -> Any:
    """Return for every net the representative of all nets that ports join with it."""
    root = np.arange(count)
    for net, other in joined:
        while root[net] != net:
            net = root[net]
        while root[other] != other:
            other = root[other]
        root[net] = other
    while (root != root[root]).any():
        root = root[root]
    return root
