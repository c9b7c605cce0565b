"""The gap-variable integer program of residency, which decides the tensors that stay between their uses.

For a given order each tensor has **events** (the step that writes it, the steps that use it) and **gaps**
between neighbouring events.  Keeping a tensor over a part of a gap saves nothing, so one binary for each gap
suffices: kept, or not.  A gap that is not kept costs a fetch at its end and, once for the tensor, a spill.

    minimise    sum size (1 - keep[gap]) + sum size spill[tensor]
    subject to  spill[tensor] >= 1 - keep[gap]                            for the gaps of an activation
                sum size keep[gaps over step] - sum saved stream[event]
                    <= capacity - whole operands of the step              for each step
                stream[event] <= 1 - keep[gap]                            for the gaps beside the event

COSMA's model (arXiv 2311.18246, equations 2 to 9 and 12) with a fixed schedule has a binary for each tensor
and step instead.  The optima are the same, and this program is thirty times smaller.
"""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hw.scheduler.plan.plan import Direction
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.residency.stays import Stay, StreamUse, events_of, steps_of


class Gap(NamedTuple):
    """Two neighbouring events of a tensor."""

    tensor: int
    begin: int
    end: int


class Event(NamedTuple):
    """A tensor that a step writes or uses, with the gaps beside it.

    ``saved``: units that streaming it saves, or 0. ``alone``: as of `Problem.streams_alone`.
    """

    tensor: int
    step: int
    gaps: tuple[int, ...]
    saved: int
    alone: bool
    writes: bool


@dataclass(frozen=True, kw_only=True)
class Model:
    """One problem in one order, independent of the capacity.

    Words are counted in ``unit``, the greatest common divisor of all sizes, for tighter rows in the solver.
    """

    problem: Problem
    order: tuple[int, ...]
    streaming: bool

    @cached_property
    def unit(self) -> int:
        """Words of a unit; every size is a multiple of it."""
        return math.gcd(*self.problem.size, *self.problem.fifo, *self._saved.values())

    @cached_property
    def _saved(self) -> dict[tuple[int, int], int]:
        """Words that streaming saves, by operator and operand; empty if it is not allowed."""
        problem = self.problem
        return {
            (operator, tensor): problem.size[tensor] - problem.window(operator, tensor)
            for operator in (self.order if self.streaming else ())
            for tensor in problem.operands[operator]
        }

    @cached_property
    def size(self) -> tuple[int, ...]:
        """Units of each tensor."""
        return tuple(size // self.unit for size in self.problem.size)

    @cached_property
    def gaps(self) -> tuple[Gap, ...]:
        """All gaps, by tensor, then step."""
        steps = steps_of(self.problem, self.order)
        return tuple(
            Gap(tensor, begin, end)
            for tensor in range(self.problem.tensor_count)
            for begin, end in itertools.pairwise(events_of(self.problem, steps, tensor))
        )

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """All events, by step."""
        beside: dict[tuple[int, int], list[int]] = {}
        for index, gap in enumerate(self.gaps):
            beside.setdefault((gap.tensor, gap.begin), []).append(index)
            beside.setdefault((gap.tensor, gap.end), []).append(index)
        return tuple(
            Event(
                tensor=tensor,
                step=step,
                gaps=tuple(beside.get((tensor, step), ())),
                saved=self._saved.get((operator, tensor), 0) // self.unit,
                alone=self.streaming and self.problem.streams_alone(operator, tensor),
                writes=tensor in self.problem.outputs[operator],
            )
            for step, operator in enumerate(self.order)
            for tensor in self.problem.operands[operator]
        )

    @cached_property
    def events_at(self) -> tuple[tuple[int, ...], ...]:
        """Events of each step."""
        found: list[list[int]] = [[] for _ in self.order]
        for index, event in enumerate(self.events):
            found[event.step].append(index)
        return tuple(map(tuple, found))

    @cached_property
    def over(self) -> tuple[tuple[int, ...], ...]:
        """Gaps that span each step without touching it."""
        found: list[list[int]] = [[] for _ in self.order]
        for index, gap in enumerate(self.gaps):
            for step in range(gap.begin + 1, gap.end):
                found[step].append(index)
        return tuple(map(tuple, found))

    @cached_property
    def whole(self) -> tuple[int, ...]:
        """Units each step needs with its operands whole."""
        return tuple(self.problem.working_set[operator] // self.unit for operator in self.order)

    def cost(self, gap: int) -> int:
        """Units paid for a gap that is not kept, if it is the only one of its tensor."""
        tensor = self.gaps[gap].tensor
        return self.size[tensor] * (2 if self.spills(tensor) else 1)

    def spills(self, tensor: int) -> bool:
        """Whether writing the tensor to memory is avoidable."""
        return self.problem.producer[tensor] >= 0 and not self.problem.written[tensor]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A decision on every gap and event: the gaps that are not kept, and the streamed events."""

    lost: frozenset[int]
    streamed: frozenset[int]

    def plain(self, model: Model) -> tuple[tuple[Stay, ...], tuple[StreamUse, ...]]:
        """Convert the decision into stays and streams."""
        stays: list[Stay] = []
        streams: list[StreamUse] = []
        opened: dict[int, int] = {}
        kept = {(gap.tensor, gap.begin) for index, gap in enumerate(model.gaps) if index not in self.lost}
        for index, event in enumerate(model.events):
            if index in self.streamed:
                direction = Direction.WRITE if event.writes else Direction.READ
                streams.append(StreamUse(tensor=event.tensor, step=event.step, direction=direction))
                continue
            first = opened.pop(event.tensor, event.step)
            if (event.tensor, event.step) in kept:
                opened[event.tensor] = first
            else:
                stays.append(Stay(tensor=event.tensor, first_step=first, last_step=event.step))
        return tuple(sorted(stays)), tuple(sorted(streams))
