"""The report of a run from its counters."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hw.energy import Activity
from hw.errors import InputError
from hw.prediction import Prediction
from sim.host.process import output_of
from sim.report.report import ADAPTER, FORMAT, Report, derived, refusal
from sim.report.sections import TESTBENCH_DRIVER, Source, total
from sim.run.energy import counted_activity, energy_section

_STALL = "cycles_stall_"
_DIRECTIONS = ("read", "write")
_MEMORY_BYTES = tuple(f"{kind}_{way}_bytes" for kind in ("useful", "bus") for way in _DIRECTIONS)


def build_report(
    *,
    clock_mhz: float,
    counters: Mapping[str, int],
    job_cycles: Mapping[str, int],
    prediction: Prediction,
    simulation: Mapping[str, Any] | None = None,
    hardware: Mapping[str, Any] | None = None,
    memory: Sequence[Mapping[str, Any]],
    activity: Activity | None = None,
    **given: Any,
) -> Report:
    """Work out the report of a run.

    * ``counters``: the kernel's counters by register name: ``cycles_total``, ``cycles_busy``,
      ``cycles_stall_<cause>``, ``cycles_idle``, and of each port ``<port>_read_bytes``,
      ``<port>_write_bytes`` or both (a port that only reads has no counter of writes).  A port without a
      counter moved the bytes that the memory model counted.  On hardware these are unknown: the kernel keeps
      them secret, and the prediction is not held to them.  Other counters go to the report's ``details``.
    * ``job_cycles``: cycles of each job by name, as many as were predicted; empty for an engine without jobs.
    * ``simulation``: `sim.report.sections.Simulation` without its rate; None of a run on hardware.
    * ``hardware``: `sim.report.sections.Hardware`; None of a simulation.  The driver ``cocotb`` is a
      testbench.
    * ``memory``: the memory model's counts, an entry for each channel, from
      `sim.run.memories.channel_traffic`, or of hardware from `sim.run.memories.uncounted_traffic`; channels
      without traffic may be left out.
    * ``activity``: of the predicted launch; without it, where some bytes are unknown, or in a testbench, the
      report has no energy.
    * ``given``: other fields of `sim.report.report.Report`, unchanged.

    Raises `InputError` when a counter is missing or figures contradict each other.
    """
    _check_given(clock_mhz, counters, simulation)
    bytes_moved = _Bytes.of(memory, counters)
    sections: dict[str, Any] = {
        "cycles": _cycles(clock_mhz, counters, job_cycles),
        "work": {
            "useful_macs": prediction.useful_macs,
            "mac_slots_per_cycle": prediction.mac_slots_per_cycle,
        },
        "traffic": _traffic(bytes_moved, prediction),
        "roofline": {
            "compute_bound_cycles": prediction.compute_bound_cycles,
            "memory_ceiling_bytes_per_cycle": prediction.memory_bytes_per_cycle,
        },
        "prediction": _prediction(bytes_moved, counters, job_cycles, prediction),
        "simulation": None if simulation is None else dict(simulation),
    }
    for section, further in derived(sections).items():
        if further:
            sections[section] |= further
    counted = bytes_moved.counter_names
    others = {n: value for n, value in counters.items() if n not in counted and not n.startswith("cycles_")}
    energy = None
    # The report refuses other counters.
    sound = 0 <= counters["cycles_busy"] <= counters["cycles_total"]
    source = _source(hardware)
    # Without the memory's latency a launch takes fewer cycles: its power would be that of no board.
    if activity is not None and bytes_moved.complete and sound and source != "testbench":
        energy = energy_section(counted_activity(activity, counters, bytes_moved.channels))
    document = {
        "format": FORMAT,
        "energy": energy,
        "git_revision": git_revision(),
        "details": {**prediction.details, **others},
        "measured_on": source,
        "hardware": None if hardware is None else dict(hardware),
        **given,
        **sections,
    }
    try:
        return ADAPTER.validate_json(json.dumps(document))
    except ValidationError as error:
        raise InputError("report", given["engine"], f"consistent ({refusal(error)})") from error


def _source(hardware: Mapping[str, Any] | None) -> Source:
    if hardware is None:
        return "simulation"
    return "testbench" if hardware["driver"] == TESTBENCH_DRIVER else "hardware"


def _check_given(clock_mhz: float, counters: Mapping[str, int], simulation: Mapping[str, Any] | None) -> None:
    if simulation is not None and not simulation["run_seconds"] > 0:
        raise InputError("run_seconds", simulation["run_seconds"], "greater than 0")
    if not clock_mhz > 0:
        raise InputError("clock_mhz", clock_mhz, "greater than 0")
    for name in ("cycles_total", "cycles_busy", "cycles_idle"):
        if name not in counters:
            raise InputError("counters of the kernel", sorted(counters), f"such that {name} is among them")
    if not counters["cycles_total"] > 0:
        raise InputError("cycles_total", counters["cycles_total"], "greater than 0")


@dataclass(frozen=True, kw_only=True)
class _Bytes:
    """Bytes of each port and channel."""

    ports: Sequence[Mapping[str, Any]]
    channels: Sequence[Mapping[str, Any]]
    complete: bool  #: Whether the bytes of every port are known.

    @classmethod
    def of(cls, memory: Sequence[Mapping[str, Any]], counters: Mapping[str, int]) -> _Bytes:
        ports, channels, complete = [], [], True
        for entry in memory:
            channel = {name: value for name, value in entry.items() if name != "ports"}
            found = (
                _port(name, channel["channel"], moved, counters) for name, moved in entry["ports"].items()
            )
            known = [port for port in found if port is not None]
            complete &= len(known) == len(entry["ports"])
            ports += known
            channels.append(channel | {name: sum(port[name] for port in known) for name in _MEMORY_BYTES[:2]})
        return cls(ports=ports, channels=channels, complete=complete)

    @property
    def counter_names(self) -> set[str]:
        """Names that counters of these ports have."""
        return {f"{port['port']}_{way}_bytes" for port in self.ports for way in _DIRECTIONS}


def _cycles(clock_mhz: float, counters: Mapping[str, int], job_cycles: Mapping[str, int]) -> dict[str, Any]:
    stalls = {name.removeprefix(_STALL): n for name, n in counters.items() if name.startswith(_STALL)}
    return {
        **{name: counters[name] for name in ("cycles_total", "cycles_busy", "cycles_idle")},
        "cycles_stall": stalls,
        "job_cycles": dict(job_cycles),
        "clock_mhz": clock_mhz,
    }


def _traffic(moved: _Bytes, prediction: Prediction) -> dict[str, Any]:
    channels = moved.channels
    return {
        "compulsory_bytes": prediction.compulsory_bytes,
        "useful_bytes": sum(port[name] for name in _MEMORY_BYTES[:2] for port in moved.ports),
        "bus_bytes": total(channel[name] for channel in channels for name in _MEMORY_BYTES[2:]),
        "useful_over_compulsory_ratio": 0.0 if moved.complete else None,
        "ports": moved.ports,
        "channels": [channel for channel in channels if any(channel[name] for name in _MEMORY_BYTES)],
        "memories": [
            {"memory": memory_name}
            | {
                name: total(channel[name] for channel in channels if channel["memory"] == memory_name)
                for name in _MEMORY_BYTES
            }
            for memory_name in dict.fromkeys(channel["memory"] for channel in channels)
        ],
    }


def _prediction(
    moved: _Bytes, counters: Mapping[str, int], job_cycles: Mapping[str, int], prediction: Prediction
) -> dict[str, Any]:
    counted = moved.counter_names & counters.keys()
    read_bytes, write_bytes = (
        sum(counters[name] for name in counted if name.endswith(f"_{way}_bytes")) for way in _DIRECTIONS
    )
    return {
        "predicted_cycles": prediction.cycles_total,
        "predicted_lower_bound": prediction.open_ended,
        "predicted_job_cycles": dict(zip(job_cycles, prediction.job_cycles, strict=True)),
        "predicted_read_bytes": prediction.read_bytes_total,
        "predicted_write_bytes": prediction.write_bytes_total,
        "predicted_read_error_bytes": prediction.read_bytes_total - read_bytes,
        "predicted_write_error_bytes": prediction.write_bytes_total - write_bytes,
    }


@functools.cache
def git_revision() -> str | None:
    """Return the revision of this checkout, ``-dirty`` when it has changes; None outside of a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    described = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    return output_of("git", "-C", str(root), *described, seconds=10)


def _port(
    name: str, channel: int, moved: Mapping[str, int] | None, counters: Mapping[str, int]
) -> dict[str, Any] | None:
    """Return a port's useful bytes by the kernel's counters, else by the memory model; None without both."""
    counted = {way: counters[key] for way in _DIRECTIONS if (key := f"{name}_{way}_bytes") in counters}
    if not counted:
        if moved is None:
            return None
        counted = {way: moved[f"{way}_bytes"] for way in _DIRECTIONS}
    return {"port": name, "channel": channel} | {
        f"useful_{way}_bytes": counted.get(way, 0) for way in _DIRECTIONS
    }
