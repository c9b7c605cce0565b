"""What an engine's analytic model says of a workload: cycles by cause, bytes by stream, work, bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from hw.errors import InputError


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The answer of `hw.engine.Engine.predict`.

    Raises
    ------
    InputError
        For a cause that no counter has, a negative figure, or bounds that are not above 0.
    """

    #: Clock cycles from start to done by cause, under the names of the kernel's counters
    #: (`hw.lib.counters.counter_names`) without their sum: ``cycles_busy``, ``cycles_stall_<cause>``,
    #: ``cycles_idle``.  Each cycle counts once.
    cycles: Mapping[str, int]
    #: ``read_bytes``, ``write_bytes``: bytes the engine asks for and produces, by stream (``"queries"``,
    #: ``"keys"`` ...).
    read_bytes: Mapping[str, int]
    write_bytes: Mapping[str, int]
    useful_macs: int  #: Multiply-accumulates the result needs.
    mac_slots_per_cycle: int  #: Multiply-accumulators of the engine.
    #: Bytes that must cross the memory ports whatever the schedule: every input once, every output once.
    compulsory_bytes: int
    #: What the engine's memory ports get from the memory at its realistic bandwidth.
    memory_bytes_per_cycle: float
    #: Cycles the work takes at least, other than for want of multipliers in the engine.
    least_compute_cycles: int = 0
    #: Of a launch of several jobs, the cycles of each, in order: from the end of the one before it to its
    #: end.
    job_cycles: tuple[int, ...] = ()
    #: Whether values that a workload does not have add to cycles and bytes: these are lower bounds then.
    open_ended: bool = False
    #: Further figures for reports, units in the names.
    details: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, count in self.cycles.items():
            if name not in ("cycles_busy", "cycles_idle") and not name.startswith("cycles_stall_"):
                raise InputError("cause of cycles", name, "cycles_busy, cycles_stall_<cause> or cycles_idle")
            if count < 0:
                raise InputError(name, count, "at least 0")
        for name in ("compulsory_bytes", "memory_bytes_per_cycle"):
            if not getattr(self, name) > 0:
                raise InputError(name, getattr(self, name), "greater than 0")

    @property
    def cycles_total(self) -> int:
        """Clock cycles from start to done."""
        return sum(self.cycles.values())

    @property
    def read_bytes_total(self) -> int:
        """Bytes read by all streams."""
        return sum(self.read_bytes.values())

    @property
    def write_bytes_total(self) -> int:
        """Bytes written by all streams."""
        return sum(self.write_bytes.values())

    @property
    def moved_bytes(self) -> int:
        """Bytes read and written."""
        return self.read_bytes_total + self.write_bytes_total

    @property
    def mac_slots(self) -> int:
        """Multiply-accumulates the engine could do from start to done."""
        return self.cycles_total * self.mac_slots_per_cycle

    @property
    def compute_bound_cycles(self) -> int:
        """Cycles the useful multiply-accumulates need with every slot filled, or what else is the least."""
        slots = -(-self.useful_macs // self.mac_slots_per_cycle) if self.useful_macs else 0
        return max(slots, self.least_compute_cycles)

    @property
    def memory_bound_cycles(self) -> int:
        """Cycles the compulsory bytes need through the memory ports."""
        return math.ceil(self.compulsory_bytes / self.memory_bytes_per_cycle)

    @property
    def bound_cycles(self) -> int:
        """Roofline: the larger of the compute bound and the memory bound."""
        return max(self.compute_bound_cycles, self.memory_bound_cycles)
