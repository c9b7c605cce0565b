"""The sections of a report: counts and quotients with their units in their names.

A section in which one figure contradicts another cannot be constructed.
"""

import math
from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from hw.errors import InputError

STRICT = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Ratio = Annotated[float, Field(ge=0)]
Name = Annotated[str, Field(min_length=1)]
MemoryMode = Literal["model", "fast", "jitter"]
Source = Literal["simulation", "testbench", "hardware"]
#: Driver of the packages' test bench, whose memory answers without latency.
TESTBENCH_DRIVER = "cocotb"


def doc(text: str) -> Any:
    """Return a field's description."""
    return Field(description=text)


def require(field: str, value: Any, legal: Any, meaning: str) -> None:
    """Refuse a figure that contradicts those it follows from; quotients may differ by rounding."""
    exact = isinstance(legal, str) or value is None or legal is None
    if value != legal and (exact or not math.isclose(value, legal, rel_tol=1e-9)):
        raise InputError(field, value, f"{meaning} = {legal}")


def total(counts: Iterable[int | None]) -> int | None:
    """Add counts; None when one is unknown."""
    known = list(counts)
    return None if None in known else sum(count for count in known if count is not None)


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Cycles:
    """Clock cycles by cause, from the kernel's counters."""

    cycles_total: Annotated[Positive, doc("Clock cycles of the kernel from start to done.")]
    cycles_busy: Annotated[Count, doc("Cycles in which the compute core advanced.")]
    cycles_stall: Annotated[
        dict[str, Count], doc("Cycles in which the core had work but could not advance, by cause.")
    ]
    cycles_idle: Annotated[Count, doc("Cycles between start and done in which the core had no work.")]
    job_cycles: Annotated[
        dict[str, Count],
        doc("Of a launch of several jobs, cycles from one's end to the next one's, by name."),
    ]
    clock_mhz: Annotated[
        float, Field(gt=0), doc("Kernel clock the board is planned for; turns cycles to time.")
    ]
    kernel_microseconds: Annotated[Ratio, doc("Time from start to done at that clock.")]

    def __post_init__(self) -> None:
        parts = self.cycles_busy + sum(self.cycles_stall.values()) + self.cycles_idle
        require("cycles_total", self.cycles_total, parts, "busy + stalls + idle")
        if (jobs := sum(self.job_cycles.values())) > self.cycles_total:
            raise InputError("job_cycles", jobs, f"at most cycles_total = {self.cycles_total} in all")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class WorkSection:
    """Useful multiplications, and the utilization of the multipliers."""

    useful_macs: Annotated[Count, doc("Multiply-accumulates the result needs; padding is not counted.")]
    mac_slots_per_cycle: Annotated[Count, doc("Multiply-accumulators of the engine.")]
    mac_utilization_ratio: Annotated[
        Ratio, Field(le=1), doc("Useful multiply-accumulates over all slots from start to done; 1 is full.")
    ]
    macs_per_cycle: Annotated[Ratio, doc("Useful multiply-accumulates a cycle, from start to done.")]
    macs_per_second: Annotated[Ratio, doc("Useful multiply-accumulates a second at the planned clock.")]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class UsefulBytes:
    """Bytes that the engine moves on purpose."""

    useful_read_bytes: Annotated[Count, doc("Bytes read that the engine asked for.")]
    useful_write_bytes: Annotated[Count, doc("Bytes written that the engine produced.")]

    @property
    def useful_bytes(self) -> int:
        """Both ways."""
        return self.useful_read_bytes + self.useful_write_bytes


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PortTotals(UsefulBytes):
    """Bytes of a memory port as the kernel's DMA counted them; those of the bus where it counts none."""

    port: Annotated[Name, doc("AXI port of the kernel.")]
    channel: Annotated[Count, doc("Memory channel the port is connected to.")]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class MemoryTraffic(UsefulBytes):
    """Bytes through all channels of one memory."""

    bus_read_bytes: Annotated[
        Count | None,
        doc("Bytes moved by read beats, whole beats counted; null outside of simulation, unknown."),
    ]
    bus_write_bytes: Annotated[
        Count | None,
        doc("Bytes moved by write beats, whole beats counted; null outside of simulation, unknown."),
    ]
    memory: Annotated[Name, doc("Memory of the board.")]

    @property
    def bus_bytes(self) -> int | None:
        """Both ways."""
        if self.bus_read_bytes is None or self.bus_write_bytes is None:
            return None
        return self.bus_read_bytes + self.bus_write_bytes


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ChannelTraffic(MemoryTraffic):
    """Bytes through one memory channel."""

    channel: Annotated[Count, doc("Number of the channel within the memory.")]
    events: Annotated[
        dict[str, Count], doc("Further counters of the memory model: row hits and misses, refreshes, waits.")
    ]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class TrafficSection:
    """Bytes moved, by port, channel and memory, against the bytes that had to move."""

    compulsory_bytes: Annotated[
        Positive,
        doc("Bytes that must cross the memory port whatever the schedule: each input and output once."),
    ]
    useful_bytes: Annotated[Count, doc("Bytes read and written that the engine asked for.")]
    bus_bytes: Annotated[
        Count | None,
        doc("Bytes moved by all beats of all channels; null outside of simulation, unknown."),
    ]
    useful_over_compulsory_ratio: Annotated[
        Ratio | None,
        doc("Useful bytes over compulsory bytes; 1 is the least; null when nobody counts a port's bytes."),
    ]
    ports: Annotated[tuple[PortTotals, ...], doc("Bytes by AXI port.")]
    channels: Annotated[tuple[ChannelTraffic, ...], doc("Bytes by memory channel; idle channels left out.")]
    memories: Annotated[tuple[MemoryTraffic, ...], doc("Bytes by memory.")]

    def __post_init__(self) -> None:
        ports = sum(port.useful_bytes for port in self.ports)
        require("useful_bytes", self.useful_bytes, ports, "the sum over ports")
        for parts in (self.channels, self.memories):
            useful, bus = sum(part.useful_bytes for part in parts), total(part.bus_bytes for part in parts)
            require("useful_bytes", self.useful_bytes, useful, "the sum over channels and over memories")
            if self.bus_bytes is not None or bus is not None:
                require("bus_bytes", self.bus_bytes, bus, "the sum over channels and over memories")
        for memory in self.memories:
            for direction in ("read", "write"):
                moved, most = (getattr(memory, f"{kind}_{direction}_bytes") for kind in ("useful", "bus"))
                if most is not None and moved > most:
                    field = f"useful_{direction}_bytes of {memory.memory}"
                    raise InputError(field, moved, f"at most {most}, the bus's")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Roofline:
    """The least cycles the work could take on these multipliers and this memory."""

    compute_bound_cycles: Annotated[Count, doc("Cycles with every multiply-accumulate slot useful.")]
    memory_bound_cycles: Annotated[
        Positive, doc("Cycles the compulsory bytes take through the engine's ports at realistic bandwidth.")
    ]
    bound_cycles: Annotated[Positive, doc("The larger of the two bounds.")]
    bound_by: Annotated[Literal["compute", "memory"], doc("Which bound is the larger.")]
    cycles_over_bound_ratio: Annotated[
        Ratio, doc("Distance to the roofline: cycles_total over bound_cycles; 1 is on it.")
    ]
    memory_ceiling_bytes_per_cycle: Annotated[
        float,
        Field(gt=0),
        doc("Slope of the roofline: bytes a cycle through the engine's ports at realistic bandwidth."),
    ]
    intensity_macs_per_byte: Annotated[Ratio, doc("Useful multiply-accumulates a useful byte moved.")]
    compulsory_intensity_macs_per_byte: Annotated[
        Ratio, doc("Useful multiply-accumulates a compulsory byte: the highest intensity there can be.")
    ]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class EnergySection:
    """Energy of the kernel, its device and its memories, from start to done."""

    energy_total_picojoules: Annotated[Ratio, doc("Energy of all sources.")]
    energy_low_picojoules: Annotated[Ratio, doc("Low end of its range.")]
    energy_high_picojoules: Annotated[Ratio, doc("High end of its range.")]
    source_picojoules: Annotated[
        dict[str, Ratio],
        doc(
            "Energy by source: macs, logic, block_ram, ultra_ram, memory_activate, memory_read, "
            "memory_write, memory_standby, host_link, clock, leakage."
        ),
    ]
    average_watts: Annotated[Ratio, doc("energy_total_picojoules over kernel_microseconds.")]
    average_low_watts: Annotated[Ratio, doc("energy_low_picojoules over kernel_microseconds.")]
    average_high_watts: Annotated[Ratio, doc("energy_high_picojoules over kernel_microseconds.")]

    def __post_init__(self) -> None:
        parts = math.fsum(self.source_picojoules.values())
        require("energy_total_picojoules", self.energy_total_picojoules, parts, "the sum over sources")
        ends = (self.energy_low_picojoules, self.energy_high_picojoules)
        if not ends[0] <= self.energy_total_picojoules <= ends[1]:
            legal = f"from {ends[0]:g} to {ends[1]:g}, the ends of its range"
            raise InputError("energy_total_picojoules", self.energy_total_picojoules, legal)

    def check_watts(self, kernel_microseconds: float) -> None:
        """Refuse watts that do not follow from the time."""
        for end in ("", "low_", "high_"):
            picojoules = getattr(self, f"energy_{end or 'total_'}picojoules")
            legal = picojoules * 1e-6 / kernel_microseconds
            field = f"average_{end}watts"
            require(field, getattr(self, field), legal, "picojoules over kernel_microseconds")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class PredictionSection:
    """The prediction of the engine's analytic model, and its error."""

    predicted_cycles: Annotated[Count, doc("Cycles from start to done after the analytic model.")]
    predicted_job_cycles: Annotated[dict[str, Count], doc("job_cycles after the analytic model.")]
    predicted_cycles_error_ratio: Annotated[
        float, doc("(predicted - measured) / measured cycles; negative when the model is too fast.")
    ]
    predicted_lower_bound: Annotated[
        bool, doc("Whether values of the inputs, and not shapes alone, add cycles and bytes: gathering does.")
    ] = False
    predicted_read_bytes: Annotated[Count, doc("Useful bytes read after the engine's formula.")]
    predicted_write_bytes: Annotated[Count, doc("Useful bytes written after the engine's formula.")]
    predicted_read_error_bytes: Annotated[
        int, doc("Predicted minus useful bytes read, of ports the kernel counts.")
    ]
    predicted_write_error_bytes: Annotated[
        int, doc("Predicted minus useful bytes written, of ports the kernel counts.")
    ]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Hardware:
    """The run on a card or board that the figures come from."""

    device: Annotated[str, doc("The device, as its driver names it.")]
    driver: Annotated[
        str,
        Field(pattern=r"^[!-~]([ -~]{0,62}[!-~])?$"),
        doc(
            "What the host program reached it by: xrt, pynq, cocotb of the package's testbench, or any other "
            "name of 1 to 64 ASCII characters."
        ),
    ]
    host_wall_seconds: Annotated[
        float,
        Field(gt=0),
        doc("Wall time the host's clock saw from the call to its end; transfers of buffers left out."),
    ]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Simulation:
    """The simulation the figures come from."""

    memory_mode: Annotated[
        MemoryMode, doc("Memory: calibrated model, fast (fixed latency and bandwidth) or jitter by seed.")
    ]
    seed: Annotated[int, doc("Seed of everything random in the run.")]
    cycles_start_to_done: Annotated[
        Count, doc("Cycles the testbench saw from the start bit to the interrupt.")
    ]
    cycles_simulated: Annotated[
        Positive, doc("Clock cycles simulated in all, reset and register access too.")
    ]
    run_seconds: Annotated[float, Field(gt=0), doc("Wall time of the simulation, building left out.")]
    simulated_cycles_per_second: Annotated[Ratio, doc("cycles_simulated over run_seconds.")]
    build_seconds: Annotated[Ratio, doc("Wall time to build the simulator, or to find it in the cache.")]
    build_cached: Annotated[bool, doc("Whether the simulator came from the cache.")]
    control_only: Annotated[
        bool, doc("Whether gates that only compute were left out: cycles and bytes are measured, not data.")
    ] = False
