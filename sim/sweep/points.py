"""What a sweep looks at and what it finds: points, and what each fidelity says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Value = int | float | str | bool
#: How something is known of a point, from the cheapest to the dearest.
Fidelity = Literal["prediction", "control", "full", "synthesis"]
FIDELITIES: tuple[Fidelity, ...] = ("prediction", "control", "full", "synthesis")

#: Figures of a design's gates, and those of a synthesis beside them.
GATES = ("lut", "ff", "dsp", "bram36", "uram")
OF_SYNTHESIS = ("endpoints", "endpoints_over", "worst_slack_ps", "logic_depth")
#: Figures of a workload that are added up over all, and all of them.
ADDED = ("cycles", "microseconds", "read_bytes", "write_bytes", "bytes", "useful_macs", "mac_slots")
OF_WORKLOADS = (*ADDED, "utilization", "bound_cycles")


@dataclass(frozen=True, kw_only=True)
class DesignPoint:
    """A design: one configuration of each engine of a sweep, on one board."""

    board: str  #: Name of the board, or path of its file, as the sweep's file has it.
    parameters: Mapping[str, Value]  #: What the sweep varies, by ``ENGINE.PARAMETER``.
    #: Configuration of each engine as the plain values of its file; empty for an engine that has none with
    #: these parameters.
    configs: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What one fidelity says of one engine of a point: of one workload on it, or of its gates."""

    #: ``prediction`` (the analytic model and the estimate of resources), ``control`` (RTL without the
    #: datapath), ``full`` (RTL, compared bit for bit with the golden model), ``synthesis`` (Yosys).
    fidelity: Fidelity
    #: ``engine``, ``workload``: names in the sweep's file; of a synthesis the workload is empty.
    engine: str
    workload: str = ""
    #: By name, units in the names: of a workload as `sim.sweep.figures.workload_figures` gives them, of a
    #: synthesis ``lut ff dsp bram36 uram endpoints endpoints_over worst_slack_ps logic_depth``.
    figures: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""  #: Why there are no figures; empty where there are.
    seconds: float = 0.0  #: Wall time it took.
    #: What a page may show further: of a prediction its ``cycles`` by cause, ``read_bytes`` and
    #: ``write_bytes`` by stream; of RTL the whole report (`sim.report.report`), as JSON has it.
    document: Mapping[str, Any] = field(default_factory=dict)

    @property
    def complaint(self) -> str:
        """The failure, and what it is of."""
        of = f"{self.workload or self.engine}: "
        return of + self.failure.removeprefix(of)


@dataclass(frozen=True, kw_only=True)
class PointResult:
    """A point and all that is known of it."""

    number: int  #: Of the point in its sweep, from 0.
    point: DesignPoint
    #: By name, from the dearest fidelity that succeeded: ``cycles``, ``microseconds``, ``bytes``, ...
    #: weighted over all workloads; ``WORKLOAD.cycles`` of one; ``dsp`` ... of all engines, ``ENGINE.dsp`` of
    #: one. Empty where it cannot be built or predicted.
    figures: Mapping[str, float]
    failure: str  #: Why not, or which constraint it does not keep; empty otherwise.
    on_front: bool  #: Whether no other point is better in one objective and as good in all others.
    outcomes: tuple[Evaluation, ...]  #: Of all fidelities, workloads and engines that were looked at.

    @property
    def fidelity(self) -> Fidelity:
        """The dearest one that succeeded of any workload; ``prediction`` where none did."""
        known = [FIDELITIES.index(outcome.fidelity) for outcome in self.outcomes if not outcome.failure]
        return FIDELITIES[max(known, default=0)]

    def outcome(self, fidelity: Fidelity, *, engine: str = "", workload: str = "") -> Evaluation | None:
        """Return what a fidelity says of a workload or, of a synthesis, of an engine; None if nothing."""
        for outcome in self.outcomes:
            same = workload in ("", outcome.workload) and engine in ("", outcome.engine)
            if outcome.fidelity == fidelity and same:
                return outcome
        return None
