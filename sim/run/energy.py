"""The energy section of reports and forecasts, from an activity."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hw.energy import Activity, energy
from hw.energy.launch import measured_activity

_DIRECTIONS = ("read", "write")


def energy_section(activity: Activity) -> dict[str, Any]:
    """Return the fields of `sim.report.sections.EnergySection`."""
    found = energy(activity)
    sources = {name: span.value for name, span in found.picojoules.items()}
    picojoules = {"total": math.fsum(sources.values()), "low": found.total.low, "high": found.total.high}
    return {
        **{f"energy_{name}_picojoules": value for name, value in picojoules.items()},
        "source_picojoules": sources,
        "average_watts": found.watts.value,
        "average_low_watts": found.watts.low,
        "average_high_watts": found.watts.high,
    }


def counted_activity(
    predicted: Activity, counters: Mapping[str, int], channels: Sequence[Mapping[str, Any]]
) -> Activity:
    """Return the activity of a launch from its counters and the bytes of each memory channel.

    Bytes are those of whole beats, or useful ones where beats are not counted. Rows opened are counted by
    the calibrated memory model alone.
    """
    moved: dict[str, dict[str, float | None]] = {}
    for name in dict.fromkeys(channel["memory"] for channel in channels):
        here = [channel for channel in channels if channel["memory"] == name]
        used = [channel["events"] for channel in here if any(_bytes(channel, way) for way in _DIRECTIONS)]
        counted = all("activates" in events for events in used)
        moved[name] = {
            **{f"{way}_bytes": sum(_bytes(channel, way) for channel in here) for way in _DIRECTIONS},
            "activates": sum(events["activates"] for events in used) if counted else None,
        }
    cycles, busy = counters["cycles_total"], counters["cycles_busy"]
    return measured_activity(predicted, cycles=cycles, busy_cycles=busy, moved=moved)


def _bytes(channel: Mapping[str, Any], way: str) -> int:
    """Return a channel's bytes of the bus, or the useful ones where those are unknown."""
    known = channel[f"bus_{way}_bytes"]
    return int(channel[f"useful_{way}_bytes"] if known is None else known)
