"""The report of one run: every figure with its unit in its name, checked against the others, saved as JSON.

The dataclasses below are the format; `sim.report.schema` makes the JSON schema and the glossary from them.  A
figure that contradicts another cannot be constructed, so neither can it be loaded.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from hw.errors import InputError
from sim.host.files import write_text
from sim.host.paths import check_readable

FORMAT: Literal["loomwork-report-1"] = "loomwork-report-1"

#: Most cycles by which the testbench's view (start bit to interrupt) exceeds the kernel's (start to done).
REGISTER_CYCLES = 64

_STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Ratio = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]
MemoryMode = Literal["model", "fast", "jitter"]
Source = Literal["simulation", "hardware"]


def _doc(text: str) -> Any:
    return Field(description=text)


def _require(field: str, value: Any, legal: Any, meaning: str) -> None:
    """Refuse a figure that contradicts the ones it follows from; quotients may differ by rounding alone."""
    exact = isinstance(legal, str) or value is None or legal is None
    if value != legal and (exact or not math.isclose(value, legal, rel_tol=1e-9)):
        raise InputError(field, value, f"{meaning} = {legal}")


def total(counts: Iterable[int | None]) -> int | None:
    """Add counts up; None when one of them is not known."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Cycles:
    """Where the clock cycles went, as the kernel's own counters saw it."""

    cycles_total: Annotated[Positive, _doc("Clock cycles of the kernel from start to done.")]
    cycles_busy: Annotated[Count, _doc("Cycles in which the compute core advanced.")]
    cycles_stall: Annotated[
        dict[str, Count], _doc("Cycles in which the core had work but could not advance, by cause.")
    ]
    cycles_idle: Annotated[Count, _doc("Cycles between start and done in which the core had no work.")]
    job_cycles: Annotated[
        dict[str, Count],
        _doc("Of a launch of several jobs, cycles from one's end to the next one's, by name."),
    ]
    clock_mhz: Annotated[
        float, Field(gt=0), _doc("Kernel clock the board is planned for; turns cycles to time.")
    ]
    kernel_microseconds: Annotated[Ratio, _doc("Time from start to done at that clock.")]

    def __post_init__(self) -> None:
        parts = self.cycles_busy + sum(self.cycles_stall.values()) + self.cycles_idle
        _require("cycles_total", self.cycles_total, parts, "busy + stalls + idle")
        if (jobs := sum(self.job_cycles.values())) > self.cycles_total:
            raise InputError("job_cycles", jobs, f"at most cycles_total = {self.cycles_total} in all")


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Work:
    """What was computed, and how full the multipliers were."""

    useful_macs: Annotated[Count, _doc("Multiply-accumulates the result needs; padding is not counted.")]
    mac_slots_per_cycle: Annotated[Count, _doc("Multiply-accumulators of the engine.")]
    mac_utilization_ratio: Annotated[
        Ratio, Field(le=1), _doc("Useful multiply-accumulates over all slots from start to done; 1 is full.")
    ]
    macs_per_cycle: Annotated[Ratio, _doc("Useful multiply-accumulates a cycle, from start to done.")]
    macs_per_second: Annotated[Ratio, _doc("Useful multiply-accumulates a second at the planned clock.")]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class UsefulBytes:
    """Bytes that the engine moves on purpose."""

    useful_read_bytes: Annotated[Count, _doc("Bytes read that the engine asked for.")]
    useful_write_bytes: Annotated[Count, _doc("Bytes written that the engine produced.")]

    @property
    def useful_bytes(self) -> int:
        """Both ways."""
        return self.useful_read_bytes + self.useful_write_bytes


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class PortTraffic(UsefulBytes):
    """Bytes of a memory port as the kernel's DMA counted them; those of the bus where it counts none."""

    port: Annotated[Name, _doc("AXI port of the kernel.")]
    channel: Annotated[Count, _doc("Memory channel the port is connected to.")]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class MemoryTraffic(UsefulBytes):
    """Bytes through all channels of one memory."""

    bus_read_bytes: Annotated[
        Count | None, _doc("Bytes moved by read beats, whole beats counted; null on hardware, unknown.")
    ]
    bus_write_bytes: Annotated[
        Count | None, _doc("Bytes moved by write beats, whole beats counted; null on hardware, unknown.")
    ]
    memory: Annotated[Name, _doc("Memory of the board.")]

    @property
    def bus_bytes(self) -> int | None:
        """Both ways."""
        if self.bus_read_bytes is None or self.bus_write_bytes is None:
            return None
        return self.bus_read_bytes + self.bus_write_bytes


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class ChannelTraffic(MemoryTraffic):
    """Bytes through one memory channel."""

    channel: Annotated[Count, _doc("Number of the channel within the memory.")]
    events: Annotated[
        dict[str, Count], _doc("Further counters of the memory model: row hits and misses, refreshes, waits.")
    ]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Traffic:
    """Bytes moved, by port, channel and memory, against the bytes that had to move."""

    compulsory_bytes: Annotated[
        Positive,
        _doc("Bytes that must cross the memory port whatever the schedule: each input and output once."),
    ]
    useful_bytes: Annotated[Count, _doc("Bytes read and written that the engine asked for.")]
    bus_bytes: Annotated[
        Count | None, _doc("Bytes moved by all beats of all channels; null on hardware, unknown.")
    ]
    useful_over_compulsory_ratio: Annotated[
        Ratio | None,
        _doc("Useful bytes over compulsory bytes; 1 is the least; null when nobody counts a port's bytes."),
    ]
    ports: Annotated[tuple[PortTraffic, ...], _doc("Bytes by AXI port.")]
    channels: Annotated[tuple[ChannelTraffic, ...], _doc("Bytes by memory channel; idle channels left out.")]
    memories: Annotated[tuple[MemoryTraffic, ...], _doc("Bytes by memory.")]

    def __post_init__(self) -> None:
        ports = sum(port.useful_bytes for port in self.ports)
        _require("useful_bytes", self.useful_bytes, ports, "the sum over ports")
        for parts in (self.channels, self.memories):
            useful, bus = sum(part.useful_bytes for part in parts), total(part.bus_bytes for part in parts)
            _require("useful_bytes", self.useful_bytes, useful, "the sum over channels and over memories")
            if self.bus_bytes is not None or bus is not None:
                _require("bus_bytes", self.bus_bytes, bus, "the sum over channels and over memories")
        for memory in self.memories:
            for direction in ("read", "write"):
                moved, most = (getattr(memory, f"{kind}_{direction}_bytes") for kind in ("useful", "bus"))
                if most is not None and moved > most:
                    field = f"useful_{direction}_bytes of {memory.memory}"
                    raise InputError(field, moved, f"at most {most}, the bus's")


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Roofline:
    """The least cycles the work could take on these multipliers and this memory."""

    compute_bound_cycles: Annotated[Count, _doc("Cycles with every multiply-accumulate slot useful.")]
    memory_bound_cycles: Annotated[
        Positive, _doc("Cycles the compulsory bytes take through the engine's ports at realistic bandwidth.")
    ]
    bound_cycles: Annotated[Positive, _doc("The larger of the two bounds.")]
    bound_by: Annotated[Literal["compute", "memory"], _doc("Which bound is the larger.")]
    cycles_over_bound_ratio: Annotated[
        Ratio, _doc("Distance to the roofline: cycles_total over bound_cycles; 1 is on it.")
    ]
    memory_ceiling_bytes_per_cycle: Annotated[
        float,
        Field(gt=0),
        _doc("Slope of the roofline: bytes a cycle through the engine's ports at realistic bandwidth."),
    ]
    intensity_macs_per_byte: Annotated[Ratio, _doc("Useful multiply-accumulates a useful byte moved.")]
    compulsory_intensity_macs_per_byte: Annotated[
        Ratio, _doc("Useful multiply-accumulates a compulsory byte: the highest intensity there can be.")
    ]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Prediction:
    """What the engine's analytic model said before the run."""

    predicted_cycles: Annotated[Count, _doc("Cycles from start to done after the analytic model.")]
    predicted_job_cycles: Annotated[dict[str, Count], _doc("job_cycles after the analytic model.")]
    predicted_cycles_error_ratio: Annotated[
        float, _doc("(predicted - measured) / measured cycles; negative when the model is too fast.")
    ]
    predicted_lower_bound: Annotated[
        bool,
        _doc("Whether values of the inputs, and not shapes alone, add cycles and bytes: gathering does."),
    ] = False
    predicted_read_bytes: Annotated[Count, _doc("Useful bytes read after the engine's formula.")]
    predicted_write_bytes: Annotated[Count, _doc("Useful bytes written after the engine's formula.")]
    predicted_read_error_bytes: Annotated[
        int, _doc("Predicted minus useful bytes read, of ports the kernel counts.")
    ]
    predicted_write_error_bytes: Annotated[
        int, _doc("Predicted minus useful bytes written, of ports the kernel counts.")
    ]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Hardware:
    """The run on a card or board that the figures come from."""

    device: Annotated[str, _doc("The device, as its driver names it.")]
    driver: Annotated[
        str,
        Field(pattern=r"^[!-~]([ -~]{0,62}[!-~])?$"),
        _doc(
            "What the host program reached it by: xrt, pynq, or any other name of 1 to 64 ASCII characters."
        ),
    ]
    host_wall_seconds: Annotated[
        float,
        Field(gt=0),
        _doc("Wall time the host's clock saw from the call to its end; transfers of buffers left out."),
    ]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Simulation:
    """The simulation the figures come from."""

    memory_mode: Annotated[
        MemoryMode, _doc("Memory: calibrated model, fast (fixed latency and bandwidth) or jitter by seed.")
    ]
    seed: Annotated[int, _doc("Seed of everything random in the run.")]
    cycles_start_to_done: Annotated[
        Count, _doc("Cycles the testbench saw from the start bit to the interrupt.")
    ]
    cycles_simulated: Annotated[
        Positive, _doc("Clock cycles simulated in all, reset and register access too.")
    ]
    run_seconds: Annotated[float, Field(gt=0), _doc("Wall time of the simulation, building left out.")]
    simulated_cycles_per_second: Annotated[Ratio, _doc("cycles_simulated over run_seconds.")]
    build_seconds: Annotated[Ratio, _doc("Wall time to build the simulator, or to find it in the cache.")]
    build_cached: Annotated[bool, _doc("Whether the simulator came from the cache.")]
    control_only: Annotated[
        bool, _doc("Whether gates that only compute were left out: cycles and bytes are measured, not data.")
    ] = False


def derived(figures: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Give, by section of the report, what follows from other ``figures``, by section too."""
    cycles, work, traffic = figures["cycles"], figures["work"], figures["traffic"]
    total, useful_macs = cycles["cycles_total"], work["useful_macs"]
    useful_bytes, compulsory_bytes = traffic["useful_bytes"], traffic["compulsory_bytes"]
    roofline, simulation = figures["roofline"], figures["simulation"]
    counted = traffic["useful_over_compulsory_ratio"] is not None
    compute_bound_cycles = roofline["compute_bound_cycles"]
    slots, per_cycle = total * work["mac_slots_per_cycle"], useful_macs / total
    memory_bound_cycles = math.ceil(compulsory_bytes / roofline["memory_ceiling_bytes_per_cycle"])
    bound_cycles = max(compute_bound_cycles, memory_bound_cycles)
    return {
        "cycles": {"kernel_microseconds": total / cycles["clock_mhz"]},
        "work": {
            "mac_utilization_ratio": useful_macs / slots if slots else 0.0,
            "macs_per_cycle": per_cycle,
            "macs_per_second": per_cycle * cycles["clock_mhz"] * 1e6,
        },
        "traffic": {
            "useful_over_compulsory_ratio": useful_bytes / compulsory_bytes if counted else None,
        },
        "roofline": {
            "memory_bound_cycles": memory_bound_cycles,
            "bound_cycles": bound_cycles,
            "bound_by": "compute" if compute_bound_cycles >= memory_bound_cycles else "memory",
            "cycles_over_bound_ratio": total / bound_cycles,
            "intensity_macs_per_byte": useful_macs / useful_bytes if useful_bytes else 0.0,
            "compulsory_intensity_macs_per_byte": useful_macs / compulsory_bytes,
        },
        "prediction": {
            "predicted_cycles_error_ratio": (figures["prediction"]["predicted_cycles"] - total) / total
        },
        "simulation": {
            "simulated_cycles_per_second": simulation["cycles_simulated"] / simulation["run_seconds"]
        }
        if simulation is not None
        else {},
    }


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Report:
    """Everything known of one run; made from measurements by `sim.run.accounting.build_report`.

    Consistent by construction: parts add up to totals and quotients equal what they are made of.
    """

    format: Annotated[Literal["loomwork-report-1"], _doc("Format and its version.")]
    label: Annotated[str, _doc("The user's name for the run; may be empty.")]
    engine: Annotated[Name, _doc("Engine that was run.")]
    board: Annotated[Name, _doc("Board it was generated for.")]
    config: Annotated[dict[str, Any], _doc("The engine's configuration, every key.")]
    config_hash: Annotated[
        str, Field(pattern="^[0-9a-f]{12}$"), _doc("Hash of engine, configuration and board.")
    ]
    tool_versions: Annotated[dict[str, str], _doc("Versions of the tools that made the figures.")]
    git_revision: Annotated[str | None, _doc("Revision of the Loomwork checkout, if it is one.")]
    bit_exact: Annotated[
        bool | None,
        _doc("Whether every output bit equals the golden model's; null where no data were computed."),
    ]
    errors: Annotated[
        dict[str, Ratio],
        _doc(
            "Distance of the outputs from float64, by measure, and shares of inputs, logits and results that "
            "saturated, if any."
        ),
    ]
    details: Annotated[dict[str, float | int], _doc("Further figures of the engine.")]
    cycles: Annotated[Cycles, _doc("Where the clock cycles went.")]
    work: Annotated[Work, _doc("What was computed.")]
    traffic: Annotated[Traffic, _doc("Bytes moved.")]
    roofline: Annotated[Roofline, _doc("The least cycles the work could take.")]
    prediction: Annotated[Prediction, _doc("What the analytic model said.")]
    measured_on: Annotated[Source, _doc("What ran: the gates in simulation, or hardware.")] = "simulation"
    simulation: Annotated[
        Simulation | None, _doc("How the figures were obtained in simulation; null on hardware.")
    ]
    hardware: Annotated[
        Hardware | None, _doc("How the figures were obtained on hardware; null in simulation.")
    ] = None

    def __post_init__(self) -> None:
        for source in ("simulation", "hardware"):
            if (getattr(self, source) is not None) != (source == self.measured_on):
                raise InputError(
                    source, getattr(self, source), f"given as measured_on says: {self.measured_on}"
                )
        control_only = self.simulation is not None and self.simulation.control_only
        if (self.bit_exact is None) != control_only or (control_only and self.errors):
            legal = f"{'null, without errors,' if control_only else 'given'} as control_only says"
            raise InputError("bit_exact", self.bit_exact, legal)
        if self.simulation is not None:
            counted, seen = self.cycles.cycles_total, self.simulation.cycles_start_to_done
            if not counted <= seen <= counted + REGISTER_CYCLES:
                legal = f"from {counted}, what the kernel counted, to {counted + REGISTER_CYCLES}"
                raise InputError("cycles_start_to_done", seen, legal)
        for section, figures in derived(asdict(self)).items():
            for field, legal in figures.items():
                _require(field, getattr(getattr(self, section), field), legal, "what the counters give")

    @property
    def simulated(self) -> Simulation:
        """The simulation of a run that was one."""
        if self.simulation is None:
            raise InputError("measured_on", self.measured_on, "simulation where its figures are asked for")
        return self.simulation


#: Checks, reads and writes reports.
ADAPTER: TypeAdapter[Report] = TypeAdapter(Report)


def refusal(error: ValidationError) -> str:
    """Say the first thing wrong with a report in one line: where, and what."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(step) for step in first["loc"]) or "report"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}"


def save(report: Report, path: Path) -> None:
    """Write ``report`` to ``path`` as JSON, whole or not at all.

    Raises `InputError` when the path cannot be written.
    """
    write_text(path, json.dumps(ADAPTER.dump_python(report, mode="json"), indent=2) + "\n")


def load(path: Path) -> Report:
    """Read a report.

    Raises `InputError` when the file is missing, is not a report of this format, or its figures contradict
    each other.
    """
    check_readable("report file", path)
    try:
        return ADAPTER.validate_json(path.read_bytes())
    except ValidationError as error:
        legal = f"a report of format {FORMAT} ({refusal(error)})"
        raise InputError("report file", str(path), legal) from error
