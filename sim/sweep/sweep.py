"""A sweep: every design is predicted, the selected ones are evaluated by dearer fidelities."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hw.errors import InputError
from sim.host.digest import key_of
from sim.host.progress import ProgressLine
from sim.sweep.executor import Answered, Executor
from sim.sweep.figures import (
    DesignFigures,
    first_of_equals,
    judged,
    objective_values,
    pareto_front,
    point_figures,
)
from sim.sweep.points import DesignPoint, Evaluation, Fidelity, Value
from sim.sweep.results import SweepResults, results_of
from sim.sweep.space import BOARD, Place, Space, near
from sim.sweep.spec import Selection, SweepSpec, spec_dict
from sim.sweep.store import Store
from sim.sweep.strategy import batches
from sim.sweep.task import Task, code_digest, evaluate, legal_config

#: Attempts at a task whose worker dies.
_TRIES = 3
#: Most predictions in one chunk; simulations go one by one.
_CHUNK = 32
#: Seconds between renewals of claims, and between reads of other processes' results.
_BEAT_SECONDS = 5.0
_POLL_SECONDS = 1.0


def run_sweep(
    spec: SweepSpec, database: Path, executor: Executor, *, join: bool = False, retry: bool = False
) -> SweepResults:
    """Run a sweep or resume it, and return all results.

    It may be killed at any time and run again: evaluations in the database are reused, failed ones repeated
    with ``retry``.  Any number of processes may ``join`` and share the work.

    Raises `InputError` when the database cannot be used, or no design can be built and keeps the constraints.
    """
    with Store(database, make=True) as store, ProgressLine("Sweeping") as activity:
        store.begin(spec_dict(spec), join=join, code=code_digest())
        try:
            if retry:
                store.forget_failures()
            _Sweep(spec, store, executor, activity).run()
        finally:
            executor.close()
            store.end()
        return results_of(store)


class _Sweep:
    """One process's state of a running sweep."""

    def __init__(self, spec: SweepSpec, store: Store, executor: Executor, activity: ProgressLine) -> None:
        self.spec = spec
        self.store = store
        self.executor = executor
        self.activity = activity
        self.places: dict[Place, int] = {}
        self.points: list[DesignPoint] = []
        self.parts: list[list[str]] = []
        self.outcomes: dict[str, Evaluation] = {}
        self.front: list[int] = []
        self._beat = time.monotonic()

    def run(self) -> None:
        space = Space(self.spec)
        asking = batches(space)
        batch = next(asking)
        try:
            while True:
                self._predict(space, batch)
                values = self._values()
                self.front = self._front(values)
                batch = asking.send([values.get(self.places[place]) for place in batch])
        except StopIteration:
            pass
        if not self.front:
            reasons = Counter(self._figures(number).failure for number in range(len(self.points)))
            reason, count = reasons.most_common(1)[0]
            legal = f"at least one ({count} of {len(self.points)}: '{reason}')"
            raise InputError("designs that can be built and keep the constraints", 0, legal)
        for fidelity, selection in self.spec.stages:
            numbers = self._selected(selection)
            tasks = list(self._tasks(fidelity, numbers, selection))
            self.store.add_parts((number, task.key) for number, task in tasks)
            for number, task in tasks:
                self.parts[number].append(task.key)
            self._complete(fidelity, [task for _, task in tasks])
            self.front = self._front(self._values())

    def _predict(self, space: Space, batch: Iterable[Place]) -> None:
        """Predict each design of a batch; designs that do not fit are not predicted."""
        first = len(self.points)
        new = [place for place in dict.fromkeys(batch) if place not in self.places]
        direct: dict[str, Evaluation] = {}
        fitting: list[int] = []
        for place in new:
            number = self.places[place] = len(self.points)
            chosen = space.parameters(place)
            board = str(chosen.pop(BOARD))
            configs, keys = {}, []
            for name, engine in self.spec.engines.items():
                own = {
                    key.partition(".")[2]: value
                    for key, value in chosen.items()
                    if key.startswith(f"{name}.")
                }
                key, found, configs[name] = self._gates(name, board, {**engine.config, **own})
                direct[key] = found
                keys.append(key)
            self.points.append(DesignPoint(board=board, parameters=chosen, configs=configs))
            self.parts.append(keys)
            if point_figures(self.spec, (direct[key] for key in keys)).pending:
                fitting.append(number)
        self.outcomes |= direct
        self.store.finish(direct)
        tasks = list(self._tasks("prediction", fitting, Selection()))
        for number, task in tasks:
            self.parts[number].append(task.key)
        numbered = enumerate(self.points[first:], first)
        self.store.add_points(numbered)
        self.store.add_parts((n, key) for n in range(first, len(self.points)) for key in self.parts[n])
        self._complete("prediction", [task for _, task in tasks])

    def _gates(
        self, engine: str, board: str, chosen: Mapping[str, Value]
    ) -> tuple[str, Evaluation, dict[str, Value]]:
        """Return the key and evaluation of an engine's resources, and its configuration."""
        try:
            config = legal_config(engine, board, chosen)
        except InputError as error:
            key = key_of(["illegal", engine, board, json.dumps(chosen, sort_keys=True), str(error)])
            return key, Evaluation(fidelity="prediction", engine=engine, failure=str(error)), {}
        task = Task(fidelity="prediction", engine=engine, board=board, config=config)
        return task.key, evaluate(task), config

    def _tasks(
        self, fidelity: Fidelity, numbers: Iterable[int], selection: Selection
    ) -> Iterator[tuple[int, Task]]:
        """Return the tasks of a fidelity for designs, workload by workload."""
        numbers = list(numbers)
        for name, engine in self.spec.engines.items():
            workloads = {"": None} if fidelity == "synthesis" else engine.workloads
            for workload, asked in workloads.items():
                for number in numbers:
                    point = self.points[number]
                    yield (
                        number,
                        Task(
                            fidelity=fidelity,
                            engine=name,
                            board=point.board,
                            config=point.configs[name],
                            workload=workload,
                            asked=asked,
                            seed=self.spec.seed,
                            memory=selection.memory,
                        ),
                    )

    def _figures(self, number: int) -> DesignFigures:
        known = (self.outcomes[key] for key in self.parts[number] if key in self.outcomes)
        return judged(self.spec, self.points[number], known)

    def _values(self) -> dict[int, tuple[float, ...]]:
        """Return the objectives of all designs that can be built and keep the constraints."""
        found = {}
        for number, point in enumerate(self.points):
            design = self._figures(number)
            if not design.failure:
                found[number] = objective_values(self.spec, point, design.figures)
        return found

    def _front(self, values: Mapping[int, tuple[float, ...]]) -> list[int]:
        numbers = list(values)
        front = [numbers[index] for index in pareto_front([values[number] for number in numbers])]
        first = first_of_equals(
            front, lambda number: (self.points[number].board, self._figures(number).figures)
        )
        return [number for number in front if first[number] == number]

    def _selected(self, selection: Selection) -> list[int]:
        values = self._values()
        if selection.of == "all":
            return list(values)
        front = sorted(self.front, key=lambda number: values[number])
        if 0 < selection.at_most < len(front):
            last = max(1, selection.at_most - 1)
            front = [front[n * (len(front) - 1) // last] for n in range(selection.at_most)]
        place_of = {number: place for place, number in self.places.items()}
        around = [
            number
            for number in values
            if any(near(place_of[number], place_of[one], selection.neighbours) for one in front)
        ]
        return sorted({*front, *around})

    def _complete(self, title: str, tasks: Iterable[Task]) -> None:
        """Complete all tasks: from the database, by workers, or by other processes."""
        missing = {task.key: task for task in tasks}
        total, began = len(missing), time.monotonic()
        self._load(missing)
        cached = total - len(missing)
        waiting, under_way = list(missing), 0
        deaths: Counter[str] = Counter()
        polled = time.monotonic()
        while missing:
            while under_way < self.executor.slots and waiting:
                size = max(1, min(_CHUNK, len(waiting) // (4 * self.executor.slots)))
                size = size if title == "prediction" else 1
                chunk, waiting = waiting[:size], waiting[size:]
                if deaths[chunk[0]]:  # one by one, to find the fatal one
                    chunk, waiting = chunk[:1], chunk[1:] + waiting
                if mine := self.store.claim([key for key in chunk if key in missing]):
                    self.executor.submit([missing[key] for key in mine])
                    under_way += 1
            for answered in self.executor.answered(_POLL_SECONDS) if under_way else ():
                under_way -= 1
                waiting = self._store(answered, missing, deaths) + waiting
            self._renew_claims()
            if not waiting and time.monotonic() - polled > _POLL_SECONDS:
                polled = time.monotonic()
                self._load(missing)
                # Claims of an ended process are free again.
                waiting = [] if under_way else list(missing)
            if not under_way and missing:
                time.sleep(_POLL_SECONDS / 5)
            done = total - len(missing)
            self._show_progress(title, done, total, done - cached, time.monotonic() - began)

    def _store(self, answered: Answered, missing: dict[str, Task], deaths: Counter[str]) -> list[str]:
        """Store evaluations; return the keys of lost tasks to repeat."""
        again, found = [], dict(zip((task.key for task in answered.tasks), answered.outcomes, strict=False))
        if answered.death:
            for task in answered.tasks:
                deaths[task.key] += 1
                alone = len(answered.tasks) == 1
                if alone and (answered.final or deaths[task.key] >= _TRIES):
                    found[task.key] = Evaluation(
                        fidelity=task.fidelity,
                        engine=task.engine,
                        workload=task.workload,
                        failure=answered.death,
                    )
                else:
                    again.append(task.key)
        self.store.finish(found)
        self._load(missing, found)
        return again

    def _load(self, missing: dict[str, Task], keys: Iterable[str] | None = None) -> None:
        found = self.store.outcomes(list(missing if keys is None else keys))
        self.outcomes |= found
        for key in found:
            missing.pop(key, None)

    def _renew_claims(self) -> None:
        if time.monotonic() - self._beat > _BEAT_SECONDS:
            self._beat = time.monotonic()
            self.store.beat()

    def _show_progress(self, title: str, done: int, total: int, new: int, seconds: float) -> None:
        left = f", {_spelled(seconds / new * (total - done))} to go" if new and done < total else ""
        self.activity.update(f"{title} {done:,} of {total:,}, {len(self.front)} on the front{left}")


def _spelled(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
