"""COSMA's integer program as published: order, residency and addresses in one, for small graphs.

Source: COSMA (arXiv 2311.18246), equations 1 to 12.  It is the reference of the planner's stages.  Its size
grows with steps times tensors squared, so the planner does not use it.

Additions to the publication are marked below: one operator a step, no tensor preserved or spilled in step 0,
and sources off chip.  The first fetch of a source replaces its creation, in any step, and it need not be
spilled to be retrieved.  An output's spill is free, because it must be written anyway.
"""

import math
from functools import reduce
from itertools import combinations, product
from operator import or_

import pulp

from hw.errors import InputError
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.solvers import milp

#: Operators up to which the program is built.
MAX_OPERATORS = 12


def solve_published(
    problem: Problem, capacity: int, *, nodes: int = milp.NODE_LIMIT, seconds: float | None = None
) -> tuple[tuple[int, ...], milp.MilpResult]:
    """Minimise avoidable traffic.

    ``problem``: without pipelined groups; of at most `MAX_OPERATORS` operators. ``capacity``: words of the
    scratchpad. ``nodes``, ``seconds``: see `hw.scheduler.planner.solvers.milp.solve`.

    Returns operators by step, empty without a solution, and HiGHS's result: its objective is COSMA's
    non-compulsory traffic in words.

    Raises `InputError` when the problem is too large or has groups. Raises `SolverError` when HiGHS returns
    no answer.
    """
    if problem.operator_count > MAX_OPERATORS:
        legal = f"at most {MAX_OPERATORS} for COSMA's program"
        raise InputError("operators of the graph", problem.operator_count, legal)
    if any(problem.fifo):
        raise InputError("graph", problem.graph.name, "without pipelined groups for COSMA's program")
    result = milp.solve(_Program(problem, capacity).lp, nodes=nodes, seconds=seconds)
    if not result.values:
        return (), result
    steps = range(problem.operator_count)
    created = ([result.values[f"C_{outputs[0]}_{t}"] for t in steps] for outputs in problem.outputs)
    step = [row.index(1) for row in created]
    return tuple(sorted(steps, key=lambda operator: step[operator])), result


class _Program:
    """The variables of the publication, by its names; ``t`` counts steps."""

    def __init__(self, problem: Problem, capacity: int) -> None:
        self.problem = problem
        unit = math.gcd(*problem.size)
        self.capacity = capacity // unit
        self.size = [size // unit for size in problem.size]
        self.lp = pulp.LpProblem("cosma", pulp.LpMinimize)
        self.steps, self.tensors = range(problem.operator_count), range(problem.tensor_count)
        self.created, self.preserved, self.spilled, self.retrieved = (
            {(a, t): self._binary(f"{name}_{a}_{t}") for a in self.tensors for t in self.steps}
            for name in "CPSR"
        )
        self._life()
        self._operators()
        self._addresses()
        moved = [
            problem.size[a] * (self.retrieved[a, t] + (0 if problem.written[a] else self.spilled[a, t]))
            for a, t in product(self.tensors, self.steps)
        ]
        self.lp.setObjective(pulp.lpSum(moved))  # equation 12

    def _binary(self, name: str) -> pulp.LpVariable:
        return self.lp.add_variable(name, cat="Binary")

    def _resident(self, a: int, t: int) -> pulp.LpAffineExpression:
        return self.created[a, t] + self.preserved[a, t] + self.retrieved[a, t]

    def _life(self) -> None:
        """Equations 1 to 4, 7 and 8: the legal events of a tensor, one after the other."""
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

    def _operators(self) -> None:
        """Equations 5 and 6, and one operator a step."""
        for t in self.steps:
            for inputs, (lead, *siblings) in zip(self.problem.inputs, self.problem.outputs, strict=True):
                for b in inputs:
                    ready = self.preserved[b, t] + self.retrieved[b, t]
                    if self.problem.producer[b] < 0:  # not in the publication: sources
                        ready += self.created[b, t]
                    self.lp += ready >= self.created[lead, t]
                for sibling in siblings:
                    self.lp += self.created[sibling, t] == self.created[lead, t]
            # Not in the publication: one operator a step.
            self.lp += pulp.lpSum(self.created[outputs[0], t] for outputs in self.problem.outputs) <= 1
        # Not in the publication, and loses no solution: ancestors need earlier steps, descendants later ones.
        before: list[int] = []
        for mask in self.problem.predecessors:
            earlier = (ancestors for o, ancestors in enumerate(before) if mask >> o & 1)
            before.append(reduce(or_, earlier, mask))
        for operator, outputs in enumerate(self.problem.outputs):
            first = before[operator].bit_count()
            last = len(before) - 1 - sum(ancestors >> operator & 1 for ancestors in before)
            for a, t in product(outputs, self.steps):
                if not first <= t <= last:
                    self.lp += self.created[a, t] == 0

    def _addresses(self) -> None:
        """Equations 9 to 11: inside the scratchpad, apart from each other, and fixed while preserved."""
        if max(self.size) > self.capacity:
            # Its equation 9 has no solution; PuLP would refuse the variable's bounds.
            self.lp += self.created[0, 0] >= 2
            return
        address = {}
        for a, t in product(self.tensors, self.steps):
            top = self.capacity - self.size[a]
            address[a, t] = self.lp.add_variable(f"L_{a}_{t}", 0, top, "Integer")
            if t > 0:
                free = self.capacity * (1 - self.preserved[a, t])
                self.lp += address[a, t] - address[a, t - 1] <= free
                self.lp += address[a, t - 1] - address[a, t] <= free
        for (a, b), t in product(combinations(self.tensors, 2), self.steps):
            above, below = self._binary(f"u_{a}_{b}_{t}"), self._binary(f"d_{a}_{b}_{t}")
            low_a, low_b = address[a, t], address[b, t]
            self.lp += low_a >= low_b + self.size[b] - self.capacity * (1 - above)
            self.lp += low_b >= low_a + self.size[a] - self.capacity * (1 - below)
            self.lp += above + below >= self._resident(a, t) + self._resident(b, t) - 1
