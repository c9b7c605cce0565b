"""Residency, decided exactly for one order: the tensors that stay in the scratchpad between their uses.

Criteria are minimised one after the other (avoidable words, then peak words and transfers in either order),
each under the best values of those before it.  At the fewest transfers, streams are the fewest.  A program
without open decisions needs no solver.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pulp

from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.evaluate import IMPOSSIBLE, Scratch, evaluate
from hw.scheduler.planner.order.lattice import Lattice
from hw.scheduler.planner.residency.gap_program import GapProgram
from hw.scheduler.planner.residency.model import Choice, Model
from hw.scheduler.planner.residency.stays import Residency, Stay, StayCosts, StreamUse, measure
from hw.scheduler.planner.solvers import milp
from hw.scheduler.planner.watch import STOPPED, current

#: The criteria: the first one always comes first, the others in any order.
CRITERIA = ("bytes", "peak", "transfers")

#: Divisor of the node limit for the criteria after the first: a tie-break is not worth minutes.
_TIE_BREAK_SHARE = 20


def solve_residency(
    problem: Problem,
    order: Sequence[int],
    capacity: int,
    *,
    streaming: bool = True,
    time_limit_s: float | None = None,
    node_limit: int = milp.NODE_LIMIT,
    minimise: Sequence[str] = CRITERIA,
) -> Residency:
    """Decide which tensors stay in the scratchpad in which steps, for one order of operators.

    * ``order``: operators by step, topological. ``capacity``: words of the scratchpad, at least
      `least_capacity`.
    * ``streaming``: whether an operand may pass through a window; COSMA's model has no windows.
    * ``time_limit_s``: safety net for each solver call. ``node_limit``: branch-and-bound nodes for the words,
      twenty times as many as for each criterion after them.
    * ``minimise``: ``bytes``, then ``peak``, ``transfers``, or both, the weightier first.

    Raises `SolverError` when HiGHS returns no answer.
    """
    model = Model(problem=problem, order=tuple(order), streaming=streaming)
    return _ResidencySearch(model, node_limit, time_limit_s).run(capacity // model.unit, minimise)


def keep_nothing(
    problem: Problem, order: Sequence[int], capacity: int, *, streaming: bool = True
) -> Residency:
    """Return the residency that keeps no tensor between two uses: the most words, and always placeable.

    Parameters are as for `solve_residency`.
    """
    model = Model(problem=problem, order=tuple(order), streaming=streaming)
    search = _ResidencySearch(model)
    return search.residency(search.found(_nothing(model, capacity // model.unit)), 0)


def keep_greedily(
    problem: Problem, order: Sequence[int], capacity: int, *, streaming: bool = True
) -> Residency:
    """Return the greedy residency that judges orders: fast, without a bound.

    Parameters are as for `solve_residency`.
    """
    model = Model(problem=problem, order=tuple(order), streaming=streaming)
    search = _ResidencySearch(model)
    choice = _written_at_once(model, _replayed(model, capacity // model.unit))
    return search.residency(search.found(choice), 0)


def least_capacity(problem: Problem, order: Sequence[int], *, streaming: bool = True) -> int:
    """Words of the smallest scratchpad in which every operator fits alone."""
    return max(problem.least_words(operator, streaming=streaming) for operator in order)


class _Found(NamedTuple):
    """A choice, its stays and streams, and its costs."""

    choice: Choice
    stays: tuple[Stay, ...]
    streams: tuple[StreamUse, ...]
    measured: StayCosts


class _ResidencySearch:
    """The criteria one after the other; capacities and bounds are in units."""

    def __init__(self, model: Model, nodes: int = 0, seconds: float | None = None) -> None:
        self._model, self._nodes, self._seconds = model, nodes, seconds
        self._notes: list[str] = []
        self._solver = "inspection"

    def run(self, capacity: int, minimise: Sequence[str]) -> Residency:
        """Minimise the criteria for a capacity."""
        found, bound = self._words(capacity)
        moves: int | None = None
        for criterion in minimise[1:]:
            if self._stopped():
                break
            if criterion == "peak":
                found = self._peak(found, moves)
                capacity = self._units(found.measured.peak_words)
            else:
                found = self._transfers(found, capacity)
                moves = found.measured.transfers - self._model.problem.compulsory_transfers
        return self.residency(found, bound)

    def residency(self, found: _Found, bound: int) -> Residency:
        """Convert a result from units to words."""
        words, measured = bound * self._model.unit, found.measured
        return Residency(
            order=self._model.order,
            stays=found.stays,
            streams=found.streams,
            avoidable_words=measured.avoidable_words,
            bound_words=words,
            peak_words=measured.peak_words,
            transfers=measured.transfers,
            status="optimal" if measured.avoidable_words == words else "feasible",
            solver=self._solver,
            note="; ".join(dict.fromkeys(self._notes)),
        )

    def found(self, choice: Choice) -> _Found:
        """Add stays, streams and costs to a choice."""
        stays, streams = choice.plain(self._model)
        return _Found(choice, stays, streams, measure(self._model.problem, self._model.order, stays, streams))

    def _units(self, words: int) -> int:
        return words // self._model.unit

    def _solve(
        self, program: GapProgram, what: str, start: Mapping[str, int] | None = None
    ) -> milp.MilpResult:
        nodes = self._nodes if what == "words" else max(1, self._nodes // _TIE_BREAK_SHARE)
        result = milp.solve(program.lp, nodes=nodes, seconds=self._seconds, start=start)
        self._solver = result.solver
        if result.note:
            self._notes.append(f"{what}: {result.note}")
        return result

    def _stopped(self) -> bool:
        """Whether the run should end without another solver call, which is then noted."""
        self._notes += [STOPPED] * current().stopped
        return current().stopped

    def _words(self, capacity: int) -> tuple[_Found, int]:
        """Minimise the avoidable words; also return their bound, in units."""
        if self._stopped():
            return self.found(_written_at_once(self._model, _replayed(self._model, capacity))), 0
        program = GapProgram(self._model, capacity)
        if program.decided:
            return self.found(program.choice({})), 0
        program.lp.setObjective(program.words)
        known = _replayed(self._model, capacity)
        result = self._solve(program, "words", program.values(known))
        choice = program.choice(result.values) if result.values else known
        return self.found(_written_at_once(self._model, choice)), result.bound

    def _peak(self, found: _Found, moves: int | None) -> _Found:
        """Minimise the peak, with at most ``moves`` avoidable transfers unless that is None."""
        model, budget = self._model, self._units(found.measured.avoidable_words)
        peak = self._units(found.measured.peak_words)
        floor = self._units(least_capacity(model.problem, model.order, streaming=model.streaming))
        if peak == floor:
            return found
        program = GapProgram(model, peak - 1, floor=floor, budget=budget, moves_budget=moves)
        if program.decided:
            return found
        top = program.lp.add_variable("top", floor, peak - 1, "Integer")
        for step in program.tight:
            program.lp.addConstraint(program.used(step) <= top, f"top{step:06d}")
        program.lp.setObjective(pulp.LpAffineExpression({top: 1}))
        result = self._solve(program, "peak")
        return self.found(program.choice(result.values)) if result.values else found

    def _transfers(self, found: _Found, capacity: int) -> _Found:
        """Minimise the transfers."""
        budget = self._units(found.measured.avoidable_words)
        program = GapProgram(self._model, capacity, budget=budget)
        if program.decided:
            return found
        streams = pulp.lpSum(program.stream.values())
        program.lp.setObjective(program.moves * (len(program.stream) + 1) + streams)
        result = self._solve(program, "transfers", program.values(found.choice))
        return self.found(program.choice(result.values)) if result.values else found


def _written_at_once(model: Model, choice: Choice) -> Choice:
    """Stream the results that a step writes and does not keep: same words, and they leave during the step."""
    alone = {model.events[index].step for index in choice.streamed if model.events[index].alone}
    leave = {
        index
        for index, event in enumerate(model.events)
        if event.writes and event.gaps and event.saved and event.step not in alone
        if choice.lost.issuperset(event.gaps)
    }
    return Choice(lost=choice.lost, streamed=choice.streamed | leave)


def _replayed(model: Model, capacity: int) -> Choice:
    """Decide greedily, by the replay that judges orders; the capacity is in units."""
    lattice, order = Lattice.of(model.problem, streaming=model.streaming), np.array(model.order)
    work = Scratch.of(lattice)
    if evaluate(order, capacity * model.unit // lattice.unit, lattice, work) == IMPOSSIBLE:
        return _nothing(model, capacity)  # always possible: each step fits alone
    slots = [slot for o in order for slot in range(lattice.first[o], lattice.first[o + 1])]
    kept = {
        (event.tensor, event.step) for event, slot in zip(model.events, slots, strict=True) if work.kept[slot]
    }
    return Choice(
        lost=frozenset(index for index, gap in enumerate(model.gaps) if gap[:2] not in kept),
        streamed=frozenset(index for index, slot in enumerate(slots) if work.streamed[slot]),
    )


def _nothing(model: Model, capacity: int) -> Choice:
    """Keep no gap, and stream only operands that do not fit; the capacity is in units."""
    streamed: set[int] = set()
    for step, indices in enumerate(model.events_at):
        if model.whole[step] > capacity:
            saved = {index: model.events[index].saved for index in indices}
            alone = [index for index in indices if model.events[index].alone]
            together = [index for index in indices if index not in alone and saved[index]]
            enough = model.whole[step] - sum(saved[index] for index in together) <= capacity
            streamed.update(together if enough else [max(alone, key=lambda index: saved[index])])
    return Choice(lost=frozenset(range(len(model.gaps))), streamed=frozenset(streamed))
