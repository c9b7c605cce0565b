"""All results of a sweep's database, for pages and notebooks."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hw.errors import InputError
from sim.sweep.figures import first_of_equals, judged, objective_values, pareto_front
from sim.sweep.points import PointResult
from sim.sweep.spec import SweepSpec, spec_of
from sim.sweep.store import Store


@dataclass(frozen=True, kw_only=True)
class SweepResults:
    """A sweep and its points by number, finished or not."""

    spec: SweepSpec
    points: tuple[PointResult, ...]

    @property
    def front(self) -> list[PointResult]:
        """The points on the front, by number."""
        return [point for point in self.points if point.on_front]

    def objectives(self, point: PointResult) -> tuple[float, ...]:
        """Return the objectives of a point without a failure, those to be maximized negated."""
        return objective_values(self.spec, point.point, point.figures)


def load_sweep(path: Path) -> SweepResults:
    """Load all results of a database.

    Raises `InputError` when the file is missing, no database of a sweep, or of another version.
    """
    with Store(path) as store:
        return results_of(store)


def results_of(store: Store) -> SweepResults:
    """Return all results of an open database."""
    if store.spec is None:
        raise InputError("database", str(store.path), "of a sweep that has begun")
    spec = spec_of(store.spec)
    found = []
    for number, point, outcomes in store.points():
        design = judged(spec, point, outcomes)
        found.append(
            PointResult(
                number=number,
                point=point,
                figures=design.figures,
                failure=design.failure,
                on_front=False,
                outcomes=outcomes,
            )
        )
    sound = [result for result in found if not result.failure]
    front = pareto_front([objective_values(spec, result.point, result.figures) for result in sound])
    best = {sound[index].number: sound[index] for index in front}
    first = first_of_equals(best, lambda number: (best[number].point.board, best[number].figures))
    points = (
        replace(
            result,
            on_front=first.get(result.number) == result.number,
            equal_to=one if (one := first.get(result.number, result.number)) != result.number else None,
        )
        for result in found
    )
    return SweepResults(spec=spec, points=tuple(points))


@dataclass(frozen=True, kw_only=True)
class PredictionError:
    """A simulation beside its prediction, both in cycles."""

    number: int  #: Of the point.
    workload: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """Relative error of the prediction."""
        return self.predicted / self.measured - 1

    @property
    def words(self) -> str:
        """Both figures and the error, as text."""
        return f"{self.predicted:,.0f} cycles predicted, {self.measured:,.0f} measured, {self.error:+.2%}"


def compared(result: PointResult) -> Iterator[PredictionError]:
    """Return every simulation of a point beside its prediction."""
    for outcome in result.outcomes:
        if outcome.fidelity in ("control", "full") and not outcome.failure:
            predicted = result.outcome("prediction", engine=outcome.engine, workload=outcome.workload)
            if predicted is not None:
                yield PredictionError(
                    number=result.number,
                    workload=outcome.workload,
                    predicted=predicted.figures["cycles"],
                    measured=outcome.figures["cycles"],
                )


def worst_prediction(results: SweepResults) -> PredictionError | None:
    """Return the simulation that a prediction was farthest from; None where nothing was simulated."""
    found = (each for point in results.points for each in compared(point))
    return max(found, key=lambda each: abs(each.error), default=None)
