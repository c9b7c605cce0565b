"""From what a run measured to its report: the arithmetic between counters and figures."""

from __future__ import annotations

import functools
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError

from hw.errors import InputError
from hw.prediction import Prediction
from sim.report.report import (
    FORMAT,
    ChannelTraffic,
    Cycles,
    MemoryMode,
    MemoryTraffic,
    PortTraffic,
    Report,
    Roofline,
    Simulation,
    Traffic,
    Work,
    derived,
    refusal,
)
from sim.report.report import Prediction as PredictionFigures

_STALL = "cycles_stall_"
_DIRECTIONS = ("read", "write")
_MEMORY_BYTES = tuple(f"{kind}_{way}_bytes" for kind in ("useful", "bus") for way in _DIRECTIONS)


@dataclass(frozen=True, kw_only=True)
class SimulatorFacts:
    """What the simulator itself knows of a run; `sim.report.report.Simulation` explains each figure."""

    cycles_start_to_done: int
    cycles_simulated: int
    run_seconds: float
    build_seconds: float
    build_cached: bool


@dataclass(frozen=True, kw_only=True)
class ChannelStatistics:
    """What the memory model counted on one channel; `sim.report.report.ChannelTraffic` explains each."""

    memory: str
    channel: int
    bus_read_bytes: int
    bus_write_bytes: int
    events: Mapping[str, int] = field(default_factory=dict)


def build_report(
    *,
    engine: str,
    board: str,
    clock_mhz: float,
    config: Mapping[str, Any],
    config_hash: str,
    tool_versions: Mapping[str, str],
    seed: int,
    memory_mode: str,
    counters: Mapping[str, int],
    placement: Mapping[str, int],
    simulator: SimulatorFacts,
    prediction: Prediction,
    memory: Sequence[ChannelStatistics],
    bit_exact: bool,
    errors: Mapping[str, float],
    label: str = "",
) -> Report:
    """Work out the report of a run; `sim.report.report.Report` explains what is handed on as it is.

    Parameters
    ----------
    counters
        The kernel's counters by register name: ``cycles_total``, ``cycles_busy``, ``cycles_stall_<cause>``,
        ``cycles_idle``, and of each port of ``placement`` its ``<port>_read_bytes``, ``<port>_write_bytes``
        or both (a port that only reads has no counter of writes).  Others go to the report's ``details``.
    placement
        Memory channel of each port, from `hw.engine.Engine.placement`.
    memory
        What the memory model counted, an entry for each channel; channels without traffic may be left out.

    Raises `InputError` when a counter is missing or the figures contradict each other.
    """
    for name, value in (("run_seconds", simulator.run_seconds), ("clock_mhz", clock_mhz)):
        if not value > 0:
            raise InputError(name, value, "greater than 0")
    for name in ("cycles_total", "cycles_busy", "cycles_idle"):
        if name not in counters:
            raise InputError("counters of the kernel", sorted(counters), f"such that {name} is among them")
    if not (total := int(counters["cycles_total"])) > 0:
        raise InputError("cycles_total", total, "greater than 0")
    ports = _ports(counters, placement)
    channels = _channels(ports, memory)
    read_bytes = sum(port.useful_read_bytes for port in ports)
    write_bytes = sum(port.useful_write_bytes for port in ports)
    further = derived(
        cycles_total=total,
        clock_mhz=clock_mhz,
        useful_macs=prediction.useful_macs,
        mac_slots_per_cycle=prediction.mac_slots_per_cycle,
        useful_bytes=read_bytes + write_bytes,
        compulsory_bytes=prediction.compulsory_bytes,
        compute_bound_cycles=prediction.compute_bound_cycles,
        memory_ceiling_bytes_per_cycle=prediction.memory_bytes_per_cycle,
        predicted_cycles=prediction.cycles_total,
        cycles_simulated=simulator.cycles_simulated,
        run_seconds=simulator.run_seconds,
    )
    try:
        return Report(
            format=FORMAT,
            label=label,
            engine=engine,
            board=board,
            config=dict(config),
            config_hash=config_hash,
            tool_versions=dict(tool_versions),
            git_revision=git_revision(),
            bit_exact=bit_exact,
            errors={name: float(value) for name, value in errors.items()},
            details=dict(prediction.details) | _others(counters, placement),
            cycles=Cycles(
                cycles_total=total,
                cycles_busy=int(counters["cycles_busy"]),
                cycles_stall={
                    name.removeprefix(_STALL): int(value)
                    for name, value in counters.items()
                    if name.startswith(_STALL)
                },
                cycles_idle=int(counters["cycles_idle"]),
                clock_mhz=float(clock_mhz),
                **further["cycles"],
            ),
            work=Work(
                useful_macs=int(prediction.useful_macs),
                mac_slots_per_cycle=int(prediction.mac_slots_per_cycle),
                **further["work"],
            ),
            traffic=Traffic(
                compulsory_bytes=int(prediction.compulsory_bytes),
                useful_bytes=read_bytes + write_bytes,
                bus_bytes=sum(channel.bus_bytes for channel in channels),
                ports=ports,
                channels=tuple(c for c in channels if c.useful_bytes + c.bus_bytes),
                memories=tuple(
                    MemoryTraffic(
                        memory=name,
                        **{
                            key: sum(getattr(c, key) for c in channels if c.memory == name)
                            for key in _MEMORY_BYTES
                        },
                    )
                    for name in dict.fromkeys(c.memory for c in channels)
                ),
                **further["traffic"],
            ),
            roofline=Roofline(
                compute_bound_cycles=int(prediction.compute_bound_cycles),
                memory_ceiling_bytes_per_cycle=prediction.memory_bytes_per_cycle,
                **further["roofline"],
            ),
            prediction=PredictionFigures(
                predicted_cycles=int(prediction.cycles_total),
                predicted_read_bytes=int(prediction.read_bytes_total),
                predicted_write_bytes=int(prediction.write_bytes_total),
                predicted_read_error_bytes=int(prediction.read_bytes_total) - read_bytes,
                predicted_write_error_bytes=int(prediction.write_bytes_total) - write_bytes,
                **further["prediction"],
            ),
            simulation=Simulation(
                memory_mode=cast(MemoryMode, memory_mode),
                seed=seed,
                **asdict(simulator),
                **further["simulation"],
            ),
        )
    except ValidationError as error:
        raise InputError("report", engine, f"consistent ({refusal(error)})") from error


@functools.cache
def git_revision() -> str | None:
    """Give the revision of the checkout this module is in, ``-dirty`` when it has changes, or None."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _ports(counters: Mapping[str, int], placement: Mapping[str, int]) -> tuple[PortTraffic, ...]:
    for port in placement:
        if not any(f"{port}_{direction}_bytes" in counters for direction in _DIRECTIONS):
            raise InputError(
                "counters of the kernel", sorted(counters), f"such that {port}'s bytes are among them"
            )
    return tuple(
        PortTraffic(
            port=port,
            channel=channel,
            useful_read_bytes=int(counters.get(f"{port}_read_bytes", 0)),
            useful_write_bytes=int(counters.get(f"{port}_write_bytes", 0)),
        )
        for port, channel in placement.items()
    )


def _channels(
    ports: Sequence[PortTraffic], memory: Sequence[ChannelStatistics]
) -> tuple[ChannelTraffic, ...]:
    return tuple(
        ChannelTraffic(
            **asdict(statistics),
            useful_read_bytes=sum(p.useful_read_bytes for p in ports if p.channel == statistics.channel),
            useful_write_bytes=sum(p.useful_write_bytes for p in ports if p.channel == statistics.channel),
        )
        for statistics in memory
    )


def _others(counters: Mapping[str, int], placement: Mapping[str, int]) -> dict[str, int]:
    """Give the counters that no section of the report takes."""
    taken = {f"{port}_{direction}_bytes" for port in placement for direction in _DIRECTIONS}
    return {
        name: int(value)
        for name, value in counters.items()
        if name not in taken and not name.startswith("cycles_")
    }
