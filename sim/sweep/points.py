"""The points of a sweep, and their evaluations by each fidelity."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Value = int | float | str | bool
#: Ways to evaluate a point, from the cheapest to the dearest.
Fidelity = Literal["prediction", "control", "full", "synthesis"]
FIDELITIES: tuple[Fidelity, ...] = ("prediction", "control", "full", "synthesis")

#: Figures of a design's gates, and further ones of a synthesis.
GATES = ("lut", "ff", "dsp", "bram36", "uram")
OF_SYNTHESIS = ("endpoints", "endpoints_over", "worst_slack_ps", "logic_depth")
#: Figures of a workload that are added up over all, and all of them.
ADDED = (
    "cycles", "microseconds", "microjoules", "read_bytes", "write_bytes", "bytes", "useful_macs", "mac_slots",
)  # fmt: skip
OF_WORKLOADS = (*ADDED, "utilization", "bound_cycles")


@dataclass(frozen=True, kw_only=True)
class DesignPoint:
    """A design: one configuration of each engine of a sweep, on one board."""

    board: str  #: Name of the board, or path of its file, as the sweep's file has it.
    parameters: Mapping[str, Value]  #: Varied parameters, by ``ENGINE.PARAMETER``.
    #: Configuration of each engine as the plain values of its file; empty for an engine that has none with
    #: these parameters.
    configs: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """The result of one fidelity for one engine of a point: for one workload, or for its gates."""

    #: ``prediction``: analytic model and estimate of resources. ``control``: RTL without the datapath.
    #: ``full``: RTL, compared bit for bit with the golden model. ``synthesis``: Yosys.
    fidelity: Fidelity
    #: ``engine``, ``workload``: names in the sweep's file; of a synthesis the workload is empty.
    engine: str
    workload: str = ""
    #: By name, units in the names: of a workload those of `sim.sweep.figures`, of a synthesis ``lut ff dsp
    #: bram36 uram endpoints endpoints_over worst_slack_ps logic_depth``.
    figures: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""  #: Reason for missing figures; empty otherwise.
    seconds: float = 0.0  #: Wall time it took.
    #: Further content of pages: of a prediction ``cycles`` by cause, ``read_bytes`` and ``write_bytes`` by
    #: stream; of RTL the report (`sim.report.report`) as JSON.
    document: Mapping[str, Any] = field(default_factory=dict)

    @property
    def complaint(self) -> str:
        """The failure, after its workload or engine."""
        of = f"{self.workload or self.engine}: "
        return of + self.failure.removeprefix(of)


@dataclass(frozen=True, kw_only=True)
class PointResult:
    """A point and its evaluations."""

    number: int  #: Of the point in its sweep, from 0.
    point: DesignPoint
    #: By name, from the dearest fidelity that succeeded: ``cycles``, ``microseconds``, ``bytes``, ...
    #: weighted over all workloads; ``WORKLOAD.cycles`` of one; ``dsp`` ... of all engines, ``ENGINE.dsp`` of
    #: one. Empty where it cannot be built or predicted.
    figures: Mapping[str, float]
    failure: str  #: Reason that it has no figures, or the constraint it breaks; empty otherwise.
    #: Whether no other point is better in one objective and as good in all others; of equal ones the first.
    on_front: bool
    outcomes: tuple[Evaluation, ...]  #: Of all evaluated fidelities, workloads and engines.
    #: Number of the point on the front whose board and figures are the same, where that stands for it.
    equal_to: int | None = None

    @property
    def fidelity(self) -> Fidelity:
        """The dearest fidelity that succeeded for any workload; ``prediction`` where none did."""
        known = [FIDELITIES.index(outcome.fidelity) for outcome in self.outcomes if not outcome.failure]
        return FIDELITIES[max(known, default=0)]

    def outcome(self, fidelity: Fidelity, *, engine: str = "", workload: str = "") -> Evaluation | None:
        """Return the evaluation of a workload or an engine's synthesis by a fidelity; None if missing."""
        for outcome in self.outcomes:
            same = workload in ("", outcome.workload) and engine in ("", outcome.engine)
            if outcome.fidelity == fidelity and same:
                return outcome
        return None
