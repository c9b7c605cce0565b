"""COSMA's integer program as published: order, residency and addresses in one, for small graphs.

Source: COSMA (arXiv 2311.18246), equations 1 to 17.  It is the reference that the planner's stages are tested
against; its size grows with steps times tensors squared, so it is not how the planner works.

What the publication leaves open is added, and marked below: one operator a step, nothing preserved or spilled
in step 0, and tensors that lie off chip from the start.  The first fetch of such a tensor takes the place of
its creation, in any step, and it need not be spilled to be retrieved; an output's spill is free, for it must
be written anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import pulp

from hw.errors import InputError
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.address.blocks import Block, live_words
from hw.scheduler.planner.residency.model import Model
from hw.scheduler.planner.residency.stays import Stay, events_of, measure, steps_of
from hw.scheduler.planner.solvers import milp

#: Operators up to which the program is built.
MAX_OPERATORS = 12


@dataclass(frozen=True, kw_only=True)
class LiteralPlan:
    """What COSMA's program found.

    Members
    -------
    order : tuple of int
        Operators by step.
    stays : tuple of Stay
        By tensor, then step.
    addresses : tuple of int
        Words, of the stays; empty for the minimum peak.
    avoidable_words, bound_words : int
        COSMA's non-compulsory traffic, and what no plan is below.
    peak_words, peak_bound_words : int
        Most words in use in one step; the bound is 0 unless the peak was minimised.
    status : str
        ``optimal``, ``feasible``, ``infeasible`` or ``unknown``; the other members say nothing for the last
        two.
    solver, note : str
    """

    order: tuple[int, ...]
    stays: tuple[Stay, ...]
    addresses: tuple[int, ...]
    avoidable_words: int
    bound_words: int
    peak_words: int
    peak_bound_words: int
    status: str
    solver: str
    note: str = ""


def solve_literal(
    problem: Problem,
    capacity: int,
    *,
    order: Sequence[int] | None = None,
    limits: milp.Limits | None = None,
    solvers: Sequence[str] = ("highs", "cbc"),
) -> LiteralPlan:
    """Minimise avoidable traffic: COSMA's equations 1 to 12.

    Parameters
    ----------
    problem : Problem
        Without pipelined groups; of at most `MAX_OPERATORS` operators.
    capacity : int
        Words of the scratchpad.
    order : sequence of int or None
        Operators by step: "COSMA FS", equations 16 and 17. None: the order is free.
    limits, solvers
        See `hw.scheduler.planner.solvers.milp.solve`.

    Raises
    ------
    InputError
        When the problem is too large or has groups, or the order is not topological.
    SolverError
        When no solver answers.
    """
    program = _Program(problem, capacity, order)
    program.traffic()
    return program.solve(limits, solvers)


def minimum_peak_literal(
    problem: Problem, *, limits: milp.Limits | None = None, solvers: Sequence[str] = ("highs", "cbc")
) -> LiteralPlan:
    """Minimise the peak of a plan without avoidable traffic: "MPMF", equations 13 to 15.

    Parameters and errors are as for `solve_literal`.
    """
    program = _Program(problem, sum(problem.size), None)
    program.peak()
    return program.solve(limits, solvers)


class _Program:
    """The variables of the publication, by its names; ``t`` counts steps."""

    def __init__(self, problem: Problem, capacity: int, order: Sequence[int] | None) -> None:
        count = problem.operator_count
        if count > MAX_OPERATORS:
            legal = f"at most {MAX_OPERATORS} for COSMA's program"
            raise InputError("operators of the graph", count, legal)
        if any(problem.fifo):
            raise InputError("graph", problem.graph.name, "without pipelined groups for COSMA's program")
        self.problem = problem
        self.unit = Model(problem=problem, order=tuple(range(count)), streaming=False).unit
        self.capacity = capacity // self.unit
        self.size = [size // self.unit for size in problem.size]
        self.lp = pulp.LpProblem("cosma", pulp.LpMinimize)
        self.minimises_peak = False
        self.steps = range(count)
        self.tensors = range(problem.tensor_count)
        self.created, self.preserved, self.spilled, self.retrieved = (
            {(a, t): self._binary(f"{name}_{a}_{t}") for a in self.tensors for t in self.steps}
            for name in "CPSR"
        )
        self.address: dict[tuple[int, int], pulp.LpVariable] = {}
        self._life()
        self._operators(order)

    def traffic(self) -> None:
        """Add addresses, and minimise what moves (equations 9 to 12)."""
        self._addresses()
        self.lp.setObjective(
            pulp.lpSum(
                self.size[a] * (self.retrieved[a, t] + (0 if self.problem.written[a] else self.spilled[a, t]))
                for a in self.tensors
                for t in self.steps
            )
        )

    def peak(self) -> None:
        """Let nothing move, and minimise the words in use (equations 13 to 15)."""
        self.minimises_peak = True
        top = self.lp.add_variable("peak", 0, sum(self.size), "Integer")
        for t in self.steps:
            for a in self.tensors:
                self.lp += self.spilled[a, t] == 0
                self.lp += self.retrieved[a, t] == 0
            self.lp += pulp.lpSum(self.size[a] * self._resident(a, t) for a in self.tensors) <= top
        self.lp.setObjective(pulp.LpAffineExpression({top: 1}))

    def _binary(self, name: str) -> pulp.LpVariable:
        return self.lp.add_variable(name, cat="Binary")

    def _resident(self, a: int, t: int) -> pulp.LpAffineExpression:
        return self.created[a, t] + self.preserved[a, t] + self.retrieved[a, t]

    def _life(self) -> None:
        """Equations 1 to 4, 7 and 8: what can happen to a tensor, one after the other."""
        for a in self.tensors:
            source = self.problem.producer[a] < 0
            for t in self.steps:
                self.lp += self._resident(a, t) + self.spilled[a, t] <= 1
                if t == 0:  # not in the publication: there is no step before
                    self.lp += self.preserved[a, 0] == 0
                    self.lp += self.spilled[a, 0] == 0
                else:
                    self.lp += self.preserved[a, t] <= self._resident(a, t - 1)
                    self.lp += self.spilled[a, t] <= self.created[a, t - 1] + self.preserved[a, t - 1]
                copies = self.created if source else self.spilled  # not in the publication: sources
                self.lp += self.retrieved[a, t] <= pulp.lpSum(copies[a, k] for k in range(t + 1))
            self.lp += pulp.lpSum(self.created[a, t] for t in self.steps) == 1
            self.lp += pulp.lpSum(self.spilled[a, t] for t in self.steps) <= 1

    def _operators(self, order: Sequence[int] | None) -> None:
        """Equations 5 and 6, one operator a step, and a given order (16 and 17)."""
        leads = [outputs[0] for outputs in self.problem.outputs]
        for t in self.steps:
            for operator, outputs in enumerate(self.problem.outputs):
                for b in self.problem.inputs[operator]:
                    ready = self.preserved[b, t] + self.retrieved[b, t]
                    if self.problem.producer[b] < 0:  # not in the publication: sources
                        ready += self.created[b, t]
                    self.lp += ready >= self.created[leads[operator], t]
                for sibling in outputs[1:]:
                    self.lp += self.created[sibling, t] == self.created[outputs[0], t]
            # Not in the publication: one operator a step.
            self.lp += pulp.lpSum(self.created[lead, t] for lead in leads) <= 1
        for operator, (early, late) in enumerate(_windows(self.problem)):
            # Not in the publication, and cuts nothing off: a step for each ancestor first, for each
            # descendant after.
            for t in self.steps:
                if not early <= t <= late:
                    for a in self.problem.outputs[operator]:
                        self.lp += self.created[a, t] == 0
        if order is not None:
            for operator, step in enumerate(steps_of(self.problem, order)):
                self.lp += self.created[leads[operator], step] == 1

    def _addresses(self) -> None:
        """Equations 9 to 11: inside the scratchpad, apart from each other, and fixed while preserved."""
        for a in self.tensors:
            if self.size[a] > self.capacity:
                # Its equation 9 has no solution; PuLP would refuse the variable's bounds.
                self.lp += self.created[a, 0] >= 2
                return
        for a in self.tensors:
            for t in self.steps:
                top = self.capacity - self.size[a]
                self.address[a, t] = self.lp.add_variable(f"L_{a}_{t}", 0, top, "Integer")
                if t > 0:
                    free = self.capacity * (1 - self.preserved[a, t])
                    self.lp += self.address[a, t] - self.address[a, t - 1] <= free
                    self.lp += self.address[a, t - 1] - self.address[a, t] <= free
        for a, b in combinations(self.tensors, 2):
            for t in self.steps:
                above, below = self._binary(f"u_{a}_{b}_{t}"), self._binary(f"d_{a}_{b}_{t}")
                low_a, low_b = self.address[a, t], self.address[b, t]
                self.lp += low_a >= low_b + self.size[b] - self.capacity * (1 - above)
                self.lp += low_b >= low_a + self.size[a] - self.capacity * (1 - below)
                self.lp += above + below >= self._resident(a, t) + self._resident(b, t) - 1

    def solve(self, limits: milp.Limits | None, solvers: Sequence[str]) -> LiteralPlan:
        """Solve, and read the plan off the variables."""
        result = milp.solve(self.lp, limits=limits, solvers=solvers)
        if not result.values:
            return LiteralPlan(
                order=(),
                stays=(),
                addresses=(),
                avoidable_words=0,
                bound_words=0,
                peak_words=0,
                peak_bound_words=0,
                status=result.status,
                solver=result.solver,
                note=result.note,
            )
        values = result.values
        begun = {
            operator: next(t for t in self.steps if values[f"C_{outputs[0]}_{t}"])
            for operator, outputs in enumerate(self.problem.outputs)
        }
        order = tuple(sorted(begun, key=lambda operator: begun[operator]))
        stays, addresses = [], []
        for a in self.tensors:
            events = events_of(self.problem, [begun[operator] for operator in self.steps], a)
            for first, last in self._runs(values, a):
                touched = [step for step in events if first <= step <= last]
                if touched:  # what lies there before its first use and after its last one serves nothing
                    stays.append(Stay(tensor=a, first_step=touched[0], last_step=touched[-1]))
                    if self.address:
                        addresses.append(values[f"L_{a}_{touched[0]}"] * self.unit)
        measured = measure(self.problem, order, stays, ())
        bound = milp.integer_bound(result.bound) * self.unit
        blocks = [
            Block(first=s.first_step, last=s.last_step, size=self.problem.size[s.tensor]) for s in stays
        ]
        return LiteralPlan(
            order=order,
            stays=tuple(stays),
            addresses=tuple(addresses),
            avoidable_words=measured.avoidable_words,
            bound_words=0 if self.minimises_peak else bound,
            peak_words=live_words(blocks),
            peak_bound_words=bound if self.minimises_peak else 0,
            status=result.status,
            solver=result.solver,
            note=result.note,
        )

    def _runs(self, values: Mapping[str, int], a: int) -> list[tuple[int, int]]:
        """Give the first and last steps in which a tensor lies at one address."""
        runs: list[tuple[int, int]] = []
        for t in self.steps:
            if values[f"P_{a}_{t}"]:
                runs[-1] = (runs[-1][0], t)
            elif values[f"C_{a}_{t}"] or values[f"R_{a}_{t}"]:
                runs.append((t, t))
        return runs


def _windows(problem: Problem) -> list[tuple[int, int]]:
    """Give the first and last step each operator can have."""
    count = problem.operator_count
    before, after = [0] * count, [0] * count
    for operator in range(count):
        for earlier in range(operator):
            if problem.predecessors[operator] >> earlier & 1:
                before[operator] |= before[earlier] | 1 << earlier
    for operator in reversed(range(count)):
        for later in range(operator + 1, count):
            if problem.successors[operator] >> later & 1:
                after[operator] |= after[later] | 1 << later
    return [
        (ahead.bit_count(), count - 1 - behind.bit_count())
        for ahead, behind in zip(before, after, strict=True)
    ]
