"""Calibration points (``points.yaml``): published figures, and the traffic that should reproduce them."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter

from hw.board import load_board
from hw.edge import read_document, validate
from sim.calibration.experiment import Bench, Experiment, ExperimentResult
from sim.calibration.program import TrafficProgram
from sim.memory.config import MemoryConfig

#: Largest relative deviation of a required point from the published figure.
TOLERANCE = 0.10

#: A port of the memory itself, in its own clock; the 512-bit ports of Vitis kernels.
NATIVE = Bench(ports=1, data_bits=256)
VITIS = Bench(ports=32, data_bits=512)

#: Overhead of an HLS kernel in a pass over a buffer of several bursts.  The published passes exceed their
#: bytes at 12.77 GB/s by 1.17 us (write) and about 1.2 us (read, 16 and 64 KiB), including the memory's
#: latency.  The published pass of one burst, 4 KiB, is too fast for this overhead and counts without it.
#: Longer passes than the longest are in steady state and are simulated only up to that length.
_WRITE_PASS_NS, _READ_PASS_NS = 420.0, 750.0
_BURST_BYTES, _LONGEST_PASS_BYTES = 4096, 1 << 21


@dataclass(frozen=True, kw_only=True)
class TrafficPattern(TrafficProgram):
    """The same program on several ports."""

    first: int = 0  #: The first port.
    ports: int = 1  #: Number of ports.
    port_step: int = 1  #: From one port to the next.
    base_step: int = 0  #: Bytes from one port's window to the next.

    def programs(self) -> dict[int, TrafficProgram]:
        """Return the program of each port."""
        own = {field.name: getattr(self, field.name) for field in fields(TrafficProgram)}
        return {
            self.first + n * self.port_step: TrafficProgram(**own | {"base": self.base + n * self.base_step})
            for n in range(self.ports)
        }


@dataclass(frozen=True, kw_only=True)
class CalibrationPoint:
    """One published figure."""

    key: str  #: Number in the table; points with a letter share an experiment's kind.
    title: str  #: The pattern.
    published: float
    unit: str
    source: str  #: Author of the measurement, and the device.
    measure: Literal[
        "rate",
        "rate_a_direction",
        "host_rate",
        "read_latency",
        "write_latency",
        "last_latency",
        "time_a_burst",
    ]
    memory: str  #: One of `memories`.
    #: A second memory for the same traffic: the result is that of `memory` divided by that of `over`.
    over: str = ""
    reads: TrafficPattern | None = None
    writes: TrafficPattern | None = None
    working_set_bytes: int = 0  #: Of the buffers, see `sim.memory.config.MemoryConfig`.
    held_out: bool = False  #: Not required to hold.
    at_least: bool = False  #: A lower bound: the measurement was limited by something else.
    #: Origin of the figure: published, computed by a formula fitted to published ones, or recalled without an
    #: accessible source.
    origin: Literal["published", "formula", "recalled"] = "published"
    note: str = ""  #: Explanation of a deviation, or the parameter that the figure influenced.

    @property
    def kind(self) -> str:
        """Kind of the figure: "published", "bound", "formula" or "recalled"."""
        return "bound" if self.at_least else self.origin

    @property
    def experiments(self) -> dict[str, Experiment]:
        """The experiments, by memory."""
        return {name: self._experiment(name) for name in (self.memory, self.over) if name}

    def _experiment(self, name: str) -> Experiment:
        bench, memory = memories()[name]
        return Experiment(
            bench=bench,
            memory=replace(memory, working_set_bytes=self.working_set_bytes),
            reads=self.reads.programs() if self.reads else {},
            writes=self.writes.programs() if self.writes else {},
        )

    def value(self, outcomes: Mapping[str, ExperimentResult]) -> float:
        """Compute the figure from the results of `experiments`."""
        figure = _measured(self.measure, outcomes[self.memory])
        return figure / _measured(self.measure, outcomes[self.over]) if self.over else figure


def _measured(measure: str, outcome: ExperimentResult) -> float:
    if measure == "last_latency":
        return float(outcome.reads[0].latency_last)
    if measure in ("read_latency", "write_latency"):
        return outcome.mean_latency_ns(measure.removesuffix("_latency"))
    if measure == "time_a_burst":
        return (
            outcome.ns(outcome.reads[0].cycles) * _BURST_BYTES / (outcome.reads[0].beats * outcome.beat_bytes)
        )
    extra_ns = 0.0
    if measure == "host_rate":
        moved = max(result.beats for result in outcome.results) * outcome.beat_bytes
        if _BURST_BYTES < moved < _LONGEST_PASS_BYTES:
            extra_ns = _READ_PASS_NS * bool(outcome.reads) + _WRITE_PASS_NS * bool(outcome.writes)
    return outcome.gb_per_s(extra_ns=extra_ns) / (2 if measure == "rate_a_direction" else 1)


@dataclass(frozen=True, kw_only=True)
class MeasuredPoint:
    """A point with the model's figure."""

    point: CalibrationPoint
    value: float

    @property
    def deviation(self) -> float:
        """Relative to the published figure; 0 for a lower bound that is exceeded."""
        deviation = self.value / self.point.published - 1
        return 0.0 if self.point.at_least and deviation > 0 else deviation

    @property
    def within(self) -> bool:
        """Whether it is within `TOLERANCE`."""
        return abs(self.deviation) <= TOLERANCE


@functools.cache
def memories() -> dict[str, tuple[Bench, MemoryConfig]]:
    """Return the measured memories, each with its bench, by the names of ``points.yaml``."""
    bare = {"fabric_request_ns": 0.0, "fabric_response_ns": 0.0}
    return {
        "u280_channel": _memory("u280", "hbm", NATIVE, 450.0, **bare),
        "u280_unswitched": _memory("u280", "hbm", NATIVE, 450.0, **bare, switch_axi_cycles=0),
        # Bank, row, column from the top: accesses 1 KiB apart are in different rows of one bank.
        "u280_bank_row_column": _memory("u280", "hbm", NATIVE, 450.0, **bare, address_map="C5 R14 B2 G2"),
        "u280_ddr": _memory("u280", "ddr", VITIS),
        "u280": _memory("u280", "hbm", VITIS),
        "u50": _memory("u50", "hbm", VITIS),
        "u55c": _memory("u55c", "hbm", VITIS),
        "u55c_host": _memory("u55c", "host", VITIS),
    }


def _memory(
    board: str, name: str, bench: Bench, clock_mhz: float = 300.0, **timing: Any
) -> tuple[Bench, MemoryConfig]:
    """Return a bench and its memory: a board's, with ports at channels 0, 1, 2..."""
    memory = next(memory for memory in load_board(board).memories if memory.name == name)
    config = MemoryConfig(
        name=memory.name,
        timing=replace(memory.timing, **timing),
        channels=memory.channels,
        channel_bytes=memory.channel_bytes,
        port_channels=tuple(port % memory.channels for port in range(bench.ports)),
        kernel_clock_mhz=clock_mhz,
        max_burst_beats=256,
    )
    return bench, config


def all_points() -> list[CalibrationPoint]:
    """Return every calibration point, those that must hold first."""
    form = TypeAdapter(dict[Literal["points"], tuple[CalibrationPoint, ...]])
    found = validate(read_document(Path(__file__).with_name("points.yaml")), form)["points"]
    must = [point for point in found if not point.held_out]
    return sorted(must, key=lambda point: float(point.key.rstrip("abc"))) + [p for p in found if p.held_out]
