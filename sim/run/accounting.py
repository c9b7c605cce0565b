"""From what a run measured to its report: the arithmetic between counters and figures."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hw.errors import InputError
from hw.prediction import Prediction
from sim.report.report import ADAPTER, FORMAT, Report, derived, refusal, total

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
    **given: Any,
) -> Report:
    """Work out the report of a run.

    * ``counters``: the kernel's counters by register name: ``cycles_total``, ``cycles_busy``,
      ``cycles_stall_<cause>``, ``cycles_idle``, and of each port its ``<port>_read_bytes``,
      ``<port>_write_bytes`` or both (a port that only reads has no counter of writes).  A port without either
      moved what the memory model counted, or on hardware nobody knows: its bytes are a secret of the
      kernel's, and the prediction is not held to them.  Others go to the report's ``details``.
    * ``job_cycles``: cycles of each job by name, as many as were predicted; none of an engine that has no
      jobs.
    * ``simulation``: what the simulator knows: `sim.report.report.Simulation` without its rate; None of a run
      on hardware.
    * ``hardware``: what the host knows of a run on hardware: `sim.report.report.Hardware`.
    * ``memory``: what the memory model counted, an entry for each channel, as
      `sim.run.memories.channel_traffic` gives them, or of hardware `sim.run.memories.uncounted_traffic`;
      channels without traffic may be left out.
    * ``given``: what the report has as it is; `sim.report.report.Report` explains it.

    Raises `InputError` when a counter is missing or the figures contradict each other.
    """
    if simulation is not None and not simulation["run_seconds"] > 0:
        raise InputError("run_seconds", simulation["run_seconds"], "greater than 0")
    if not clock_mhz > 0:
        raise InputError("clock_mhz", clock_mhz, "greater than 0")
    for name in ("cycles_total", "cycles_busy", "cycles_idle"):
        if name not in counters:
            raise InputError("counters of the kernel", sorted(counters), f"such that {name} is among them")
    if not counters["cycles_total"] > 0:
        raise InputError("cycles_total", counters["cycles_total"], "greater than 0")
    ports, channels, complete = [], [], True
    for entry in memory:
        channel = {name: value for name, value in entry.items() if name != "ports"}
        found = (_port(name, channel["channel"], moved, counters) for name, moved in entry["ports"].items())
        here = [port for port in found if port is not None]
        complete &= len(here) == len(entry["ports"])
        ports += here
        channels.append(channel | {name: sum(port[name] for port in here) for name in _MEMORY_BYTES[:2]})
    taken = {f"{port['port']}_{way}_bytes" for port in ports for way in _DIRECTIONS}
    read_bytes, write_bytes = (sum(port[name] for port in ports) for name in _MEMORY_BYTES[:2])
    counted_read_bytes, counted_write_bytes = (
        sum(counters[name] for name in taken & counters.keys() if name.endswith(f"_{way}_bytes"))
        for way in _DIRECTIONS
    )
    stalls = {name.removeprefix(_STALL): n for name, n in counters.items() if name.startswith(_STALL)}
    sections: dict[str, Any] = {
        "cycles": {
            **{name: counters[name] for name in ("cycles_total", "cycles_busy", "cycles_idle")},
            "cycles_stall": stalls,
            "job_cycles": dict(job_cycles),
            "clock_mhz": clock_mhz,
        },
        "work": {
            "useful_macs": prediction.useful_macs,
            "mac_slots_per_cycle": prediction.mac_slots_per_cycle,
        },
        "traffic": {
            "compulsory_bytes": prediction.compulsory_bytes,
            "useful_bytes": read_bytes + write_bytes,
            "bus_bytes": total(channel[name] for channel in channels for name in _MEMORY_BYTES[2:]),
            "useful_over_compulsory_ratio": 0.0 if complete else None,
            "ports": ports,
            "channels": [channel for channel in channels if any(channel[name] for name in _MEMORY_BYTES)],
            "memories": [
                {"memory": memory_name}
                | {
                    name: total(channel[name] for channel in channels if channel["memory"] == memory_name)
                    for name in _MEMORY_BYTES
                }
                for memory_name in dict.fromkeys(channel["memory"] for channel in channels)
            ],
        },
        "roofline": {
            "compute_bound_cycles": prediction.compute_bound_cycles,
            "memory_ceiling_bytes_per_cycle": prediction.memory_bytes_per_cycle,
        },
        "prediction": {
            "predicted_cycles": prediction.cycles_total,
            "predicted_lower_bound": prediction.open_ended,
            "predicted_job_cycles": dict(zip(job_cycles, prediction.job_cycles, strict=True)),
            "predicted_read_bytes": prediction.read_bytes_total,
            "predicted_write_bytes": prediction.write_bytes_total,
            "predicted_read_error_bytes": prediction.read_bytes_total - counted_read_bytes,
            "predicted_write_error_bytes": prediction.write_bytes_total - counted_write_bytes,
        },
        "simulation": None if simulation is None else dict(simulation),
    }
    for section, further in derived(sections).items():
        if further:
            sections[section] |= further
    others = {n: value for n, value in counters.items() if n not in taken and not n.startswith("cycles_")}
    details = {**prediction.details, **others}
    document = {
        "format": FORMAT,
        "git_revision": git_revision(),
        "details": details,
        "measured_on": "simulation" if hardware is None else "hardware",
        "hardware": None if hardware is None else dict(hardware),
        **given,
        **sections,
    }
    try:
        return ADAPTER.validate_json(json.dumps(document))
    except ValidationError as error:
        raise InputError("report", given["engine"], f"consistent ({refusal(error)})") from error


@functools.cache
def git_revision() -> str | None:
    """Return the revision of the checkout this module is in, ``-dirty`` when it has changes, or None."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def _port(
    name: str, channel: int, moved: Mapping[str, int] | None, counters: Mapping[str, int]
) -> dict[str, Any] | None:
    """Return a port's useful bytes: as the kernel counted them, else as the memory model did, if one did."""
    counted = {way: counters[key] for way in _DIRECTIONS if (key := f"{name}_{way}_bytes") in counters}
    if not counted:
        if moved is None:
            return None
        counted = {way: moved[f"{way}_bytes"] for way in _DIRECTIONS}
    return {"port": name, "channel": channel} | {
        f"useful_{way}_bytes": counted.get(way, 0) for way in _DIRECTIONS
    }
