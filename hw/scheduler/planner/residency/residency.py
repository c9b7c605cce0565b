"""Residency: which tensors stay in the scratchpad between their uses, decided exactly for one order.

Criteria are minimised one after the other (avoidable words, then peak words and transfers in either order),
each under the best values of those before it; at the fewest transfers, streams are the fewest.  What can be
decided without a solver is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pulp

from hw.errors import InputError
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.residency.model import Choice, Model
from hw.scheduler.planner.residency.program import Program
from hw.scheduler.planner.residency.stays import Measured, Residency, Stay, StreamUse, measure
from hw.scheduler.planner.solvers import milp

__all__ = [
    "CRITERIA",
    "Measured",
    "Residency",
    "Stay",
    "StreamUse",
    "keep_nothing",
    "least_capacity",
    "measure",
    "solve_residency",
]

#: What can be minimised: the first one first, the others in any order.
CRITERIA = ("bytes", "peak", "transfers")

#: Nodes for the criteria after the first, as a share of the limit: a tie-break is not worth minutes.
_TIE_BREAK_SHARE = 20


def solve_residency(
    problem: Problem,
    order: Sequence[int],
    capacity: int,
    *,
    streaming: bool = True,
    time_limit_s: float | None = None,
    node_limit: int = milp.DEFAULT_NODE_LIMIT,
    minimise: Sequence[str] = CRITERIA,
    forbid: Sequence[Sequence[Stay]] = (),
    solvers: Sequence[str] = ("highs", "cbc"),
) -> Residency:
    """Decide which tensors stay in the scratchpad when, for one order of operators.

    Parameters
    ----------
    problem : Problem
    order : sequence of int
        Operators by step, topological.
    capacity : int
        Words of the scratchpad.
    streaming : bool
        Whether an operand may pass through a window where that helps; COSMA's model has none of it.
    time_limit_s : float or None
        Safety net for each solver call.
    node_limit : int
        Branch-and-bound nodes for the words; a twentieth for each criterion after them.
    minimise : sequence of str
        ``bytes``, then ``peak`` and ``transfers`` as far as wanted, the weightier first.
    forbid : sequence of sequence of Stay
        Sets of stays that have no addresses together: at least one of each set must not be wholly covered.
    solvers : sequence of str
        See `milp.solve`.

    Raises
    ------
    InputError
        When an operator does not fit alone, or the order is not topological.
    SolverError
        When no solver answers.
    """
    if tuple(minimise[:1]) != CRITERIA[:1] or not set(minimise) <= set(CRITERIA):
        raise InputError("minimise", tuple(minimise), "bytes, then peak and transfers as far as wanted")
    if len(set(minimise)) < len(minimise):
        raise InputError("minimise", tuple(minimise), "each criterion once")
    model = _model(problem, order, streaming, tuple(tuple(stays) for stays in forbid))
    _check_fits(model, capacity)
    limits = milp.Limits(nodes=node_limit, seconds=time_limit_s)
    search = _Search(model=model, limits=limits, solvers=tuple(solvers))
    return search.run(capacity // model.unit, minimise)


def keep_nothing(
    problem: Problem, order: Sequence[int], capacity: int, *, streaming: bool = True
) -> Residency:
    """Give the residency that keeps nothing between two uses: the most words, and always placeable.

    Parameters and errors are as for `solve_residency`.
    """
    model = _model(problem, order, streaming)
    _check_fits(model, capacity)
    search = _Search(model=model, limits=milp.Limits(), solvers=())
    return search.residency(_Found.of(model, _nothing(model, capacity // model.unit), 0), 0, 0)


def least_capacity(problem: Problem, order: Sequence[int], *, streaming: bool = True) -> int:
    """Words of the smallest scratchpad in which every operator fits alone."""
    model = _model(problem, order, streaming)
    return max(map(model.least, range(len(model.order)))) * model.unit


def _model(
    problem: Problem, order: Sequence[int], streaming: bool, forbid: tuple[tuple[Stay, ...], ...] = ()
) -> Model:
    return Model(problem=problem, order=tuple(order), streaming=streaming, forbid=forbid)


def _check_fits(model: Model, capacity: int) -> None:
    needed = max(range(len(model.order)), key=model.least)
    least = model.least(needed) * model.unit
    if least > capacity:
        problem = model.problem
        operator = problem.graph.operators[model.order[needed]].name
        legal = f"at least {least * problem.word_bytes} bytes, which operator {operator!r} needs"
        raise InputError("scratchpad", f"{capacity * problem.word_bytes} bytes", legal)


@dataclass
class _Found:
    """A choice, what it costs in words, and the bound of the criterion it was found for, in units."""

    choice: Choice
    measured: Measured
    bound: int

    @classmethod
    def of(cls, model: Model, choice: Choice, bound: int) -> _Found:
        stays, streams = choice.plain(model)
        return cls(choice, measure(model.problem, model.order, stays, streams), bound)


@dataclass
class _Search:
    """The criteria one after the other."""

    model: Model
    limits: milp.Limits
    solvers: tuple[str, ...]
    notes: list[str] = field(default_factory=list)
    used_solvers: list[str] = field(default_factory=list)

    def run(self, capacity: int, minimise: Sequence[str]) -> Residency:
        """Minimise the criteria for a capacity in units."""
        found = self._words(capacity)
        words_bound = found.bound
        peak_bound = 0
        moves: int | None = None
        for criterion in minimise[1:]:
            if criterion == "peak":
                found = self._peak(found, moves)
                peak_bound, capacity = found.bound, self._units(found.measured)[1]
            else:
                found = self._transfers(found, capacity)
                moves = found.measured.transfers - self._compulsory_transfers
        return self.residency(found, words_bound, peak_bound)

    @property
    def _compulsory_transfers(self) -> int:
        problem = self.model.problem
        read = sum(
            writer < 0 and bool(users)
            for writer, users in zip(problem.producer, problem.consumers, strict=True)
        )
        return read + sum(problem.written)

    def residency(self, found: _Found, words_bound: int, peak_bound: int) -> Residency:
        """Say in words what was found; the bounds are in units."""
        unit, measured = self.model.unit, found.measured
        stays, streams = found.choice.plain(self.model)
        return Residency(
            order=self.model.order,
            stays=stays,
            streams=streams,
            spilled=measured.spilled,
            avoidable_words=measured.avoidable_words,
            bound_words=words_bound * unit,
            peak_words=measured.peak_words,
            peak_bound_words=peak_bound * unit,
            transfers=measured.transfers,
            status="optimal" if measured.avoidable_words == words_bound * unit else "feasible",
            solver=", ".join(dict.fromkeys(self.used_solvers)) or "by inspection",
            note="; ".join(dict.fromkeys(self.notes)),
        )

    def _found(self, choice: Choice, bound: int) -> _Found:
        return _Found.of(self.model, choice, bound)

    def _units(self, measured: Measured) -> tuple[int, int]:
        return measured.avoidable_words // self.model.unit, measured.peak_words // self.model.unit

    def _solve(
        self, lp: pulp.LpProblem, what: str, start: Mapping[str, int] | None = None
    ) -> milp.MilpResult:
        limits = self.limits
        if what != "words":
            limits = replace(limits, nodes=max(1, limits.nodes // _TIE_BREAK_SHARE))
        result = milp.solve(lp, limits=limits, solvers=self.solvers, start=start)
        self.used_solvers.append(result.solver)
        if result.note:
            self.notes.append(f"{what}: {result.note}")
        return result

    def _words(self, capacity: int) -> _Found:
        program = Program(model=self.model, capacity=capacity, floor=capacity)
        if program.decided:
            found = self._found(program.choice({}), 0)
            return _Found(choice=found.choice, measured=found.measured, bound=self._units(found.measured)[0])
        lp = program.problem()
        lp.setObjective(program.words)
        result = self._solve(lp, "words")
        if result.status == "infeasible":
            raise InputError("forbid", "these sets of stays", "such that a residency is left")
        if not result.values:
            # Nothing kept is always possible: each step was checked to fit alone.
            return self._found(_nothing(self.model, capacity), milp.integer_bound(result.bound))
        return self._found(program.choice(dict(result.values)), milp.integer_bound(result.bound))

    def _peak(self, found: _Found, moves: int | None) -> _Found:
        """Lower the peak, at no more avoidable transfers than given, if any."""
        budget, peak = self._units(found.measured)
        floor = max(map(self.model.least, range(len(self.model.order))))
        if peak == floor:
            return _Found(choice=found.choice, measured=found.measured, bound=floor)
        program = Program(model=self.model, capacity=peak - 1, floor=floor, budget=budget, moves_budget=moves)
        if not program.open_gaps and not program.open_events:
            return _Found(choice=found.choice, measured=found.measured, bound=peak)
        lp = program.problem()
        top = lp.add_variable("top", floor, peak - 1, "Integer")
        for step in program.tight:
            lp.addConstraint(program.used(step) <= top, f"top{step:06d}")
        lp.setObjective(pulp.LpAffineExpression({top: 1}))
        result = self._solve(lp, "peak")
        if result.status == "infeasible":
            return _Found(choice=found.choice, measured=found.measured, bound=peak)
        bound = max(floor, min(peak, milp.integer_bound(result.bound)))
        if not result.values:
            return _Found(choice=found.choice, measured=found.measured, bound=bound)
        return self._found(program.choice(dict(result.values)), bound)

    def _transfers(self, found: _Found, capacity: int) -> _Found:
        """Lower the transfers within a capacity in units."""
        budget = self._units(found.measured)[0]
        program = Program(model=self.model, capacity=capacity, floor=capacity, budget=budget)
        if program.decided:
            return found
        lp = program.problem()
        streams = pulp.lpSum(program.stream.values())
        lp.setObjective(program.moves * (len(program.stream) + 1) + streams)
        result = self._solve(lp, "transfers", program.values(found.choice))
        return self._found(program.choice(dict(result.values)), 0) if result.values else found


def _nothing(model: Model, capacity: int) -> Choice:
    """Keep nothing, and stream what each step must; the capacity is in units."""
    streamed = [False] * len(model.events)
    for step, indices in enumerate(model.events_at):
        if model.whole[step] <= capacity:
            continue
        together = [index for index in indices if model.events[index].saved and not model.events[index].alone]
        alone = [index for index in indices if model.events[index].saved and model.events[index].alone]
        best = max(alone, key=lambda index: model.events[index].saved, default=-1)
        enough = model.whole[step] - sum(model.events[index].saved for index in together) <= capacity
        for index in together if enough else [best]:
            streamed[index] = True
    return Choice(kept=(False,) * len(model.gaps), streamed=tuple(streamed))
