"""Figures of designs: from evaluations to constraints, objectives and pages."""

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hw.errors import InputError
from hw.prediction import Prediction
from sim.report.report import Report
from sim.sweep.expression import Expression
from sim.sweep.points import ADDED, FIDELITIES, GATES, OF_SYNTHESIS, DesignPoint, Evaluation
from sim.sweep.spec import SweepSpec


def predicted_figures(prediction: Prediction, clock_mhz: float) -> dict[str, float]:
    """Return a workload's figures by its prediction; ``utilization`` is 0 without a multiplier."""
    cycles = prediction.cycles_total
    return _workload_figures(
        cycles=cycles,
        microseconds=cycles / clock_mhz,
        read_bytes=prediction.read_bytes_total,
        write_bytes=prediction.write_bytes_total,
        useful_macs=prediction.useful_macs,
        mac_slots=prediction.mac_slots,
        bound_cycles=prediction.bound_cycles,
    )


def measured_figures(report: Report) -> dict[str, float]:
    """Return the figures of a workload by its simulation; bytes are of the predicted ports.

    The oblivious map's bytes are the host's: its HBM reads depend on the operations.
    """
    cycles, of = report.cycles.cycles_total, report.prediction
    return _workload_figures(
        cycles=cycles,
        microseconds=report.cycles.kernel_microseconds,
        microjoules=1e-6 * report.energy.energy_total_picojoules if report.energy else 0.0,
        read_bytes=of.predicted_read_bytes - of.predicted_read_error_bytes,
        write_bytes=of.predicted_write_bytes - of.predicted_write_error_bytes,
        useful_macs=report.work.useful_macs,
        mac_slots=report.work.mac_slots_per_cycle * cycles,
        bound_cycles=report.roofline.bound_cycles,
    )


def _workload_figures(**counted: float) -> dict[str, float]:
    slots = counted["mac_slots"]
    return counted | {
        "bytes": counted["read_bytes"] + counted["write_bytes"],
        "utilization": counted["useful_macs"] / slots if slots else 0.0,
    }


@dataclass(frozen=True, kw_only=True)
class DesignFigures:
    """The figures of a design, or the reason that it has none."""

    figures: Mapping[str, float] = field(default_factory=dict)
    failure: str = ""  #: Reason that it has no figures, or that it does not count.
    pending: bool = False  #: Whether a prediction is still missing, which ``failure`` says.


def point_figures(spec: SweepSpec, outcomes: Iterable[Evaluation]) -> DesignFigures:
    """Return the figures of a design from all of its outcomes.

    The dearest fidelity that succeeded counts.  A design that cannot be built or predicted has no figures.
    """
    best: dict[tuple[str, str], Evaluation] = {}
    for outcome in outcomes:
        place = (outcome.engine, outcome.workload)
        before = best.get(place)
        if outcome.failure:
            if outcome.fidelity == "prediction":
                return DesignFigures(failure=outcome.complaint)
        elif before is None or FIDELITIES.index(before.fidelity) < FIDELITIES.index(outcome.fidelity):
            best[place] = outcome
    if spec.engines.keys() <= {engine for engine, workload in best if not workload}:
        user = best[next(iter(spec.engines)), ""].document["user"]
        for name in GATES:
            need = sum(best[engine, ""].figures[name] for engine in spec.engines)
            if need > user[name]:
                legal = f"at most {user[name]}, not {need:.0f}"
                return DesignFigures(failure=f"{name} of all engines must be {legal}")
    asked = {(name, key) for name, engine in spec.engines.items() for key in ("", *engine.workloads)}
    if asked - best.keys():
        return DesignFigures(failure="not predicted yet", pending=True)
    figures: dict[str, float] = {}
    gates = [best[name, ""] for name in spec.engines]
    for outcome in gates:
        figures |= {f"{outcome.engine}.{name}": value for name, value in outcome.figures.items()}
    for name in GATES:
        figures[name] = sum(outcome.figures[name] for outcome in gates)
    if all(outcome.fidelity == "synthesis" for outcome in gates):
        for name in OF_SYNTHESIS[:2]:
            figures[name] = sum(outcome.figures[name] for outcome in gates)
        for name, worst in zip(OF_SYNTHESIS[2:], (min, max), strict=True):
            figures[name] = worst(outcome.figures[name] for outcome in gates)
    total = dict.fromkeys((*ADDED, "bound_cycles"), 0.0)
    for (_, workload), outcome in best.items():
        if workload:
            figures |= {f"{workload}.{name}": value for name, value in outcome.figures.items()}
            weight = spec.workloads[workload].weight
            for name in total:
                total[name] += weight * outcome.figures[name]
    figures |= total
    figures["utilization"] = total["useful_macs"] / total["mac_slots"] if total["mac_slots"] else 0.0
    return DesignFigures(figures=figures)


def judged(spec: SweepSpec, point: DesignPoint, outcomes: Iterable[Evaluation]) -> DesignFigures:
    """Return the figures of a design; one that breaks a constraint has a failure beside its figures."""
    found = point_figures(spec, outcomes)
    if found.figures and (constraint := violated(spec, point, found.figures)):
        return replace(found, failure=f"does not keep {constraint}")
    return found


def violated(spec: SweepSpec, point: DesignPoint, figures: Mapping[str, float]) -> str:
    """Return the first constraint that a design does not keep; empty when it keeps all."""
    names = {**spec.scope(point.parameters), **figures, "board": point.board}
    for text in spec.constraints:
        if not evaluated(text, names):
            return text
    return ""


def objective_values(spec: SweepSpec, point: DesignPoint, figures: Mapping[str, float]) -> tuple[float, ...]:
    """Return the objectives of a design, those to be maximized negated: the less the better."""
    names = {**spec.scope(point.parameters), **figures}
    signs = {"min": 1.0, "max": -1.0}
    return tuple(signs[way] * float(evaluated(text, names)) for text, way in spec.objectives.items())


def evaluated(text: str, names: Mapping[str, Any]) -> Any:
    """Evaluate an expression of the sweep's file; `InputError` where that cannot be done."""
    try:
        return _parsed(text).value(names)
    except (ValueError, KeyError) as error:
        raise InputError("expression", text, f"one that can be evaluated ({error})") from error


@functools.cache
def _parsed(text: str) -> Expression:
    return Expression(text)


def first_of_equals(
    numbers: Iterable[int], design: Callable[[int], tuple[str, Mapping[str, float]]]
) -> dict[int, int]:
    """Return for each number the first one whose design is on the same board and has the same figures.

    ``design`` returns board and figures by number: of resources, and of every workload.
    """
    first: dict[tuple[str, tuple[tuple[str, float], ...]], int] = {}
    found = {}
    for number in sorted(numbers):
        board, figures = design(number)
        found[number] = first.setdefault((board, tuple(sorted(figures.items()))), number)
    return found


def pareto_front(values: Sequence[tuple[float, ...]]) -> list[int]:
    """Return the indexes of those that no other dominates; of equal ones all."""
    front: list[int] = []
    # In this order no later one dominates an earlier one.
    for index in sorted(range(len(values)), key=lambda index: values[index]):
        mine = values[index]
        dominated = any(
            other != mine and all(a <= b for a, b in zip(other, mine, strict=True))
            for other in (values[n] for n in front)
        )
        if not dominated:
            front.append(index)
    return sorted(front)
