"""Designs that are larger than others and predicted slower, which mislead a search."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from sim.sweep.points import GATES, PointResult, Value
from sim.sweep.results import SweepResults


@dataclass(frozen=True, kw_only=True)
class Slower:
    """A larger design that is predicted to take more cycles than a smaller one."""

    #: ``smaller``, ``larger``: numbers of the points; they differ in ``parameter``, and in parameters that
    #: follow from it.
    smaller: int
    larger: int
    parameter: str
    values: tuple[Value, Value]  #: The parameter's, of the smaller one and of the larger one.
    workload: str
    #: ``cycles``, ``larger_cycles``: predicted for ``workload``.
    cycles: float
    larger_cycles: float

    @property
    def excess(self) -> float:
        """Excess cycles of the larger design, as a share of the smaller one's."""
        return self.larger_cycles / self.cycles - 1


def slower_though_larger(results: SweepResults) -> list[Slower]:
    """Return the steps to the next value of one parameter that add resources and cycles, the worst first. All
    figures are predictions; no resource shrinks, one grows, and a workload takes more cycles.
    """
    free = [
        f"{engine}.{name}"
        for engine, spec in results.spec.engines.items()
        for name, given in spec.parameters.items()
        if not (isinstance(given, dict) and "expression" in given)
    ]
    found: list[Slower] = []
    for parameter in free:
        alike: dict[tuple[object, ...], list[PointResult]] = {}
        for result in results.points:
            value = result.point.parameters.get(parameter)
            if result.figures and isinstance(value, int | float) and not isinstance(value, bool):
                others = (result.point.parameters.get(name) for name in free if name != parameter)
                alike.setdefault((result.point.board, *others), []).append(result)
        for steps in alike.values():
            steps.sort(key=lambda result: result.point.parameters[parameter])
            for one, other in itertools.pairwise(steps):
                found += _slower(parameter, one, other)
    return sorted(found, key=lambda slower: -slower.excess)


def _slower(parameter: str, one: PointResult, other: PointResult) -> Iterator[Slower]:
    """Compare two designs; their resources decide which is the larger."""
    if larger_than(one, other):
        one, other = other, one
    if larger_than(other, one):
        for outcome in one.outcomes:
            theirs = other.outcome("prediction", engine=outcome.engine, workload=outcome.workload)
            if outcome.fidelity == "prediction" and outcome.workload and theirs:
                cycles, more = outcome.figures["cycles"], theirs.figures["cycles"]
                if more > cycles:
                    yield Slower(
                        smaller=one.number,
                        larger=other.number,
                        parameter=parameter,
                        values=(one.point.parameters[parameter], other.point.parameters[parameter]),
                        workload=outcome.workload,
                        cycles=cycles,
                        larger_cycles=more,
                    )


def larger_than(one: PointResult, other: PointResult) -> bool:
    """Say whether a design is estimated to take no less of any resource, and more of one."""
    needs = [_gates(result) for result in (one, other)]
    return needs[0] != needs[1] and all(a >= b for a, b in zip(*needs, strict=True))


def _gates(result: PointResult) -> list[float]:
    estimates = [
        outcome for outcome in result.outcomes if outcome.fidelity == "prediction" and not outcome.workload
    ]
    return [sum(outcome.figures[name] for outcome in estimates) for name in GATES]
