"""The prediction of an engine's analytic model: cycles by cause, bytes by stream, work, bounds."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from hw.errors import InputError, check_range


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The answer of `hw.engine.Engine.predict`.

    Raises `InputError` for a cause without a counter, a negative figure, or a bound that is not above 0.
    """

    #: Clock cycles from start to done by cause, under the kernel's counter names without the total:
    #: ``cycles_busy``, ``cycles_stall_<cause>``, ``cycles_idle``.  Each cycle counts once.
    cycles: Mapping[str, int]
    #: ``read_bytes``, ``write_bytes``: bytes read and written, by stream (``"queries"``, ``"keys"`` ...).
    read_bytes: Mapping[str, int]
    write_bytes: Mapping[str, int]
    useful_macs: int  #: Multiply-accumulates of the result.
    mac_slots_per_cycle: int  #: Multiply-accumulators of the engine.
    #: Bytes that any schedule moves: every input once, every output once.
    compulsory_bytes: int
    #: Bandwidth of the engine's memory ports at the memory's realistic peak.
    memory_bytes_per_cycle: float
    #: Least cycles of the work for other reasons than the number of multipliers.
    least_compute_cycles: int = 0
    #: Cycles of each job of a launch, in order: from the end of the previous job to its end.
    job_cycles: tuple[int, ...] = ()
    #: Whether tensor values add to cycles and bytes: these are lower bounds then.
    open_ended: bool = False
    #: Further figures for reports, with units in their names.
    details: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, count in self.cycles.items():
            if name not in ("cycles_busy", "cycles_idle") and not name.startswith("cycles_stall_"):
                raise InputError("cause of cycles", name, "cycles_busy, cycles_stall_<cause> or cycles_idle")
            check_range(name, count, 0)
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
        """Multiply-accumulates of all multipliers from start to done."""
        return self.cycles_total * self.mac_slots_per_cycle

    @property
    def compute_bound_cycles(self) -> int:
        """Cycles of the useful work with every slot filled, at least ``least_compute_cycles``."""
        slots = -(-self.useful_macs // self.mac_slots_per_cycle) if self.useful_macs else 0
        return max(slots, self.least_compute_cycles)

    @property
    def memory_bound_cycles(self) -> int:
        """Cycles of the compulsory bytes through the memory ports."""
        return math.ceil(self.compulsory_bytes / self.memory_bytes_per_cycle)

    @property
    def bound_cycles(self) -> int:
        """Roofline: the larger of the compute bound and the memory bound."""
        return max(self.compute_bound_cycles, self.memory_bound_cycles)
