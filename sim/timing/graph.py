"""The timing graph of a whole kernel, and when each of its nets settles.

A kernel is its top part with all placed parts put in by their ports: every placement is a copy of the part's
arrays, and nets that a port joins are one.  So no path through ports is lost, and the loads of a net are all
its loads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hw.errors import ToolError
from sim.timing.delays import Delays, Driver, Sink
from sim.timing.netlist import Part


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A copy of a part: its path in the kernel (``body.row_3.``), and where its nets begin."""

    path: str
    part: str
    first_net: int


@dataclass(frozen=True, kw_only=True)
class Step:
    """A net of a path: signal, source line, cell that drives it, loads, and when it changes in ps."""

    name: str
    source: str
    cell: str
    loads: int
    arrival: float


class Graph:
    """The timing graph of a kernel.

    Parameters
    ----------
    parts, top
        All parts, and the name of the outermost.
    delays
        Delays of cells and nets.
    crossing
        What a net between two parts takes longer, in ps: an allowance for a kernel larger than a die.

    Members
    -------
    arrivals
        By endpoint: when its data settles plus setup, in ps after the clock edge.
    placements
        All parts in it, the top first.

    Behaviour
    ---------
    The kernel's own ports count as registers beside it: inputs change like a flip-flop's output, outputs must
    settle like a flip-flop's input.

    Raises
    ------
    ToolError
        For a combinational loop; the message names a signal on it.
    """

    def __init__(self, parts: Mapping[str, Part], top: str, delays: Delays, *, crossing: float = 0.0) -> None:
        self.parts, self.delays = parts, delays
        self.placements: list[Placement] = []
        self._joined: list[tuple[int, int]] = []
        self._place(top, "", {})
        own = parts[top]
        first = [place.first_net for place in self.placements]
        self._first_nets = np.array(first)
        of = [parts[place.part] for place in self.placements]

        def gather(name: str, *, nets: bool = False) -> Any:
            arrays = [
                getattr(part, name) + (base if nets else 0) for part, base in zip(of, first, strict=True)
            ]
            return np.concatenate(arrays)

        count = first[-1] + len(of[-1].names)
        root = np.arange(count)
        for net, other in self._joined:
            root[_root(root, net)] = _root(root, other)
        while (root != root[root]).any():
            root = root[root]
        self._root = root
        self.loads = np.bincount(root, weights=gather("loads"), minlength=count).astype(int)
        drivers = gather("drivers")
        self._drivers = np.full(count, Driver.PORT)
        driven = drivers != Driver.PORT
        self._drivers[root[driven]] = drivers[driven]
        self._driving = np.full(count, -1)  # which net of which placement the driver has
        self._driving[root[driven]] = np.flatnonzero(driven)
        outputs = [bit for bits, is_input in own.ports.values() for bit in bits if not is_input]
        ports_out = np.array([root[bit] for bit in outputs if bit is not None], int)
        np.add.at(self.loads, ports_out, 1)
        between = np.zeros(count, bool)
        between[[_root(root, net) for net, _ in self._joined]] = True
        self._extra = np.where(between, crossing, 0.0)

        starts, ends = root[gather("starts", nets=True)], root[gather("ends", nets=True)]
        weights = gather("delays") + self._net(starts, gather("sinks"))
        self._order(starts, ends, weights)
        launched = root[gather("launch_nets", nets=True)]
        stored_of = [
            np.where(part.launch_stored < 0, -1, part.launch_stored + base)
            for part, base in zip(of, first, strict=True)
        ]
        stored = np.concatenate(stored_of)
        self._settle(launched, self._launch_delays(gather("launch_delays"), stored), own)
        nets = root[gather("capture_nets", nets=True)]
        sinks, setups = gather("capture_sinks"), gather("capture_setups")
        self.capture_nets = np.concatenate([nets, ports_out])
        setups = np.concatenate([setups, np.full(len(ports_out), delays.ff_setup)])
        sinks = np.concatenate([sinks, np.full(len(ports_out), Sink.FF)])
        self.arrivals = self.settled[self.capture_nets] + self._net(self.capture_nets, sinks) + setups
        self._ports_out = [
            f"{name}[{index}]"
            for name, (bits, is_input) in own.ports.items()
            for index, bit in enumerate(bits)
            if not is_input and bit is not None
        ]

    def _place(self, name: str, path: str, nets: Mapping[str, list[int | None]]) -> None:
        part = self.parts[name]
        last = self.placements[-1] if self.placements else None
        first = last.first_net + len(self.parts[last.part].names) if last else 0
        self.placements.append(Placement(path=path, part=name, first_net=first))
        for port, outer in nets.items():
            for bit, above in zip(part.ports[port][0], outer, strict=True):
                if bit is not None and above is not None:
                    self._joined.append((first + bit, above))
        for instance, kind, connections in part.placed:
            inner = {
                port: [None if bit is None else first + bit for bit in bits]
                for port, bits in connections.items()
            }
            self._place(kind, f"{path}{instance}.", inner)

    def _net(self, nets: Any, sinks: Any) -> Any:
        return self.delays.net(self._drivers[nets], sinks, self.loads[nets]) + self._extra[nets]

    def _order(self, starts: Any, ends: Any, weights: Any) -> None:
        by_start = np.argsort(starts, kind="stable")
        self._starts, self._ends, self._weights = starts[by_start], ends[by_start], weights[by_start]
        count = len(self._root)
        self._first = np.searchsorted(self._starts, np.arange(count + 1))
        self._by_end = np.argsort(self._ends, kind="stable")
        self._first_into = np.searchsorted(self._ends[self._by_end], np.arange(count + 1))

    def _launch_delays(self, delays: Any, stored: Any) -> Any:
        """Give the clock-to-out of launches: that of the output register, where a flip-flop becomes one."""
        taken = {
            Driver.BLOCK_RAM: self.delays.block_ram_register_clock_to_out,
            Driver.ULTRA_RAM: self.delays.ultra_ram_register_clock_to_out,
            Driver.DSP: self.delays.dsp_register_clock_to_out,
        }
        known = stored >= 0
        nets = self._root[np.where(known, stored, 0)]
        for driver, delay in taken.items():
            delays = np.where(
                known & (self._drivers[nets] == driver) & (self.loads[nets] == 1), delay, delays
            )
        return delays

    def _settle(self, launched: Any, delays: Any, own: Part) -> None:
        """Find when each net settles, all nets of one depth at a time."""
        count = len(self._root)
        self.settled = np.full(count, -np.inf)
        np.maximum.at(self.settled, launched, delays)
        inputs = [
            bit for bits, is_input in own.ports.values() for bit in bits if is_input and bit is not None
        ]
        self.settled[self._root[inputs]] = self.delays.ff_clock_to_out
        waiting = np.bincount(self._ends, minlength=count)
        ready = np.flatnonzero(waiting == 0)
        done = len(ready)
        while len(ready):
            lengths = self._first[ready + 1] - self._first[ready]
            edges = (
                np.repeat(self._first[ready], lengths)
                + np.arange(lengths.sum())
                - np.repeat(np.cumsum(lengths) - lengths, lengths)
            )
            ends = self._ends[edges]
            np.maximum.at(self.settled, ends, self.settled[self._starts[edges]] + self._weights[edges])
            np.subtract.at(waiting, ends, 1)
            touched = np.unique(ends)
            ready = touched[waiting[touched] == 0]
            done += len(ready)
        if done < count:
            looped = int(np.flatnonzero(waiting > 0)[0])
            raise ToolError(f"the netlist has a combinational loop through {self._step(looped).name}")

    def endpoints(self) -> Iterator[tuple[str, str, str]]:
        """Give pin, source line and part of every endpoint, in the order of `arrivals`."""
        for place in self.placements:
            part = self.parts[place.part]
            for pin, source in zip(part.capture_pins, part.capture_sources, strict=True):
                yield place.path + pin, source, place.part
        yield from ((f"{port} (port)", "", self.placements[0].part) for port in self._ports_out)

    def path_to(self, endpoint: int) -> list[Step]:
        """Give the nets of the slowest path to an endpoint, from the register that launches it on."""
        net = int(self.capture_nets[endpoint])
        path = [self._step(net)]
        while True:
            into = self._by_end[self._first_into[net] : self._first_into[net + 1]]
            times = self.settled[self._starts[into]] + self._weights[into]
            if not len(into) or times.max() < self.settled[net]:
                return path[::-1]
            net = int(self._starts[into[np.argmax(times)]])
            path.append(self._step(net))

    def _step(self, net: int) -> Step:
        driving = int(self._driving[net])
        at = net if driving < 0 else driving
        place = self.placements[int(np.searchsorted(self._first_nets, at, side="right")) - 1]
        part = self.parts[place.part]
        index = at - place.first_net
        kind = part.kinds[part.cell_of[index]] if part.cell_of[index] >= 0 else "port"
        name = part.names[index]
        return Step(
            name=place.path + name if name else "",
            source=part.sources[index],
            cell=kind,
            loads=int(self.loads[net]),
            arrival=float(self.settled[net]),
        )


def _root(root: Any, net: int) -> int:
    while root[net] != net:
        root[net] = root[root[net]]
        net = int(root[net])
    return net
