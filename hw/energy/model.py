"""Energy by source: the activity of a launch times coefficients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from hw.energy.activity import Activity
from hw.energy.coefficients import Coefficients, load_coefficients
from hw.energy.span import Span

#: Sources, in the order of tables and charts.  ``memory_...`` is the memory of the kernels' data,
#: ``host_link`` the link to the host's memory.
SOURCES = (
    "macs", "logic", "block_ram", "ultra_ram", "memory_activate", "memory_read", "memory_write",
    "memory_standby", "host_link", "clock", "leakage",
)  # fmt: skip
_CELLS = ("ff", "dsp", "bram36", "uram")


@dataclass(frozen=True, kw_only=True)
class Energy:
    """Energy of a launch."""

    picojoules: Mapping[str, Span]  #: By source, in the order of `SOURCES`.
    seconds: float  #: Time of the launch.

    @cached_property
    def total(self) -> Span:
        """Picojoules of all sources."""
        return sum(self.picojoules.values(), Span())

    @property
    def watts(self) -> Span:
        """Average power over the launch; 0 for a launch without a cycle."""
        return self.total * (1e-12 / self.seconds) if self.seconds else Span()


def energy(activity: Activity, coefficients: Coefficients | None = None) -> Energy:
    """Return the energy of an activity, by default with the coefficients of ``coefficients.yaml``.

    * ``macs``: data of DSPs, in the cycles of useful multiply-accumulates.
    * ``logic``: data of LUTs, LUT RAM and flip-flops, in busy cycles.
    * ``block_ram``, ``ultra_ram``: words read or written, in busy cycles.
    * ``memory_...``: rows opened, bytes read and written, and readiness with refresh over the whole time.
    * ``host_link``: bytes to and from the host's memory.
    * ``clock``: the kernel's clock, in all cycles. ``leakage``: of the whole device, over the whole time.
    """
    found = coefficients or load_coefficients()
    busy, words, kernel = activity.busy_cycles, activity.words, dict(activity.kernel.items())
    picoseconds = activity.seconds * 1e12
    parts = {
        "macs": activity.multiply_cycles * kernel["dsp"] * found.working("dsp"),
        "logic": busy * kernel["lut"] * found.working("lut") + busy * kernel["ff"] * found.working("ff"),
        "block_ram": busy * words.bram36 * (found.steady("bram36", "access") + found.working("bram36")),
        "ultra_ram": busy * words.uram * (found.steady("uram", "access") + found.working("uram")),
        "clock": sum(
            (activity.cycles * kernel[cell] * found.steady(cell, "clock") for cell in _CELLS), Span()
        ),
        "leakage": activity.device_luts / 1e6 * picoseconds * found.leakage,
    }
    for memory in activity.memories:
        of = found.memories[memory.kind]
        moved = {"read": memory.read_bytes * of["read"], "write": memory.write_bytes * of["write"]}
        if memory.kind == "host":
            further = {"host_link": moved["read"] + moved["write"]}
        else:
            further = {
                "memory_activate": memory.rows * of["activate"],
                "memory_read": moved["read"],
                "memory_write": moved["write"],
                "memory_standby": memory.channels * picoseconds * of["standby"],
            }
        for name, span in further.items():
            parts[name] = parts.get(name, Span()) + span
    return Energy(picojoules={name: parts.get(name, Span()) for name in SOURCES}, seconds=activity.seconds)
