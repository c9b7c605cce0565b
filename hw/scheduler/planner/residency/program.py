"""The integer program of a residency: what is left of the model once the obvious is decided."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import pulp

from hw.scheduler.planner.residency.model import Choice, Model


class Program:
    """What is left for a solver once the obvious is decided; the objective is to be set.

    Parameters
    ----------
    model : Model
    capacity : int
        Units that no step may exceed.
    floor : int
        Steps that cannot exceed it whatever is decided need no row: the capacity when only traffic counts,
        less when the peak does.
    budget, moves_budget : int or None
        Units of avoidable traffic, and avoidable transfers, that may not be exceeded.

    Members
    -------
    tight : tuple of int
        Steps that could exceed the floor.
    keep, stream, spill : dict of int to pulp.LpVariable
        What is to be decided: gaps, events in tight steps or forbidden sets, and tensors that may be spilled.
    """

    def __init__(
        self,
        model: Model,
        capacity: int,
        *,
        floor: int,
        budget: int | None = None,
        moves_budget: int | None = None,
    ) -> None:
        self._model, self._capacity = model, capacity
        self.lp = pulp.LpProblem("residency", pulp.LpMinimize)
        self._dropped = self._find_dropped()
        self.tight = tuple(step for step in range(len(model.order)) if self._most(step) > floor)
        forbidden = {index for _, events in model.forbidden for index in events}
        events = forbidden | {index for step in self.tight for index in model.events_at[step]}
        events = {index for index in events if model.events[index].saved > 0}
        gaps = {gap for index in events for gap in model.events[index].gaps}
        gaps |= {gap for step in self.tight for gap in model.over[step]}
        gaps |= {gap for named, _ in model.forbidden for gap in named}
        if budget is not None:
            gaps = {gap for gap in gaps if model.cost(gap) <= budget}
        gaps -= self._dropped
        # What has a gap that is dropped is spilled anyway.
        spilled = {model.gaps[gap].tensor for gap in gaps} - {model.gaps[gap].tensor for gap in self._dropped}
        self.keep = self._binaries("keep", gaps)
        self.stream = self._binaries("stream", events)
        self.spill = self._binaries("spill", filter(model.spills, spilled))
        self.undecided = bool(self.keep or self.stream)
        self.decided = not self.undecided and not model.forbidden
        self.words, self.moves = self._weighted(model.size), self._weighted([1] * len(model.size))
        if not self.decided:
            self._constrain(budget, moves_budget)

    def _binaries(self, name: str, indices: Iterable[int]) -> dict[int, pulp.LpVariable]:
        return {index: self.lp.add_variable(f"{name}{index:06d}", cat="Binary") for index in sorted(indices)}

    def _find_dropped(self) -> frozenset[int]:
        """Give gaps that cannot be kept: their tensor does not fit into a step they pass over or end in."""
        model, found = self._model, set[int]()
        for step, passing in enumerate(model.over):
            room = self._capacity - model.least(step)
            found.update(gap for gap in passing if model.size[model.gaps[gap].tensor] > room)
            for event in (model.events[index] for index in model.events_at[step]):
                if event.gaps and event.saved and model.least(step, without=event.tensor) > self._capacity:
                    found.update(event.gaps)
        return frozenset(found)

    def _most(self, step: int) -> int:
        """Units in use when everything that may be kept over a step is."""
        model = self._model
        passing = (model.gaps[gap].tensor for gap in model.over[step] if gap not in self._dropped)
        return model.whole[step] + sum(model.size[tensor] for tensor in passing)

    def choice(self, values: Mapping[str, int]) -> Choice:
        """Read a solver's values, or none when everything is decided; what needs no decision is kept."""
        gaps, events = range(len(self._model.gaps)), range(len(self._model.events))
        return Choice(
            kept=tuple(
                bool(values[self.keep[gap].name]) if gap in self.keep else gap not in self._dropped
                for gap in gaps
            ),
            streamed=tuple(
                index in self.stream and bool(values[self.stream[index].name]) for index in events
            ),
        )

    def values(self, choice: Choice) -> dict[str, int]:
        """Give the variables' values of a choice: a start for a solver."""
        lost = {gap.tensor for gap, kept in zip(self._model.gaps, choice.kept, strict=True) if not kept}
        return {
            **{variable.name: int(choice.kept[gap]) for gap, variable in self.keep.items()},
            **{variable.name: int(choice.streamed[index]) for index, variable in self.stream.items()},
            **{variable.name: int(tensor in lost) for tensor, variable in self.spill.items()},
        }

    def _weighted(self, weight: Sequence[int]) -> pulp.LpAffineExpression:
        """Weigh what is avoidable: each gap that is not kept, and each spill."""
        model, dropped = self._model, self._dropped
        sure = {model.gaps[gap].tensor for gap in dropped}
        constant = sum(weight[model.gaps[gap].tensor] for gap in (*self.keep, *dropped))
        constant += sum(weight[tensor] for tensor in sure if model.spills(tensor))
        terms = {variable: -weight[model.gaps[gap].tensor] for gap, variable in self.keep.items()}
        terms |= {variable: weight[tensor] for tensor, variable in self.spill.items()}
        return pulp.LpAffineExpression(terms, constant=constant)

    def used(self, step: int) -> pulp.LpAffineExpression:
        """Units in use in a step."""
        model = self._model
        sizes = {gap: model.size[model.gaps[gap].tensor] for gap in model.over[step]}
        kept = sum(size for gap, size in sizes.items() if gap not in self.keep and gap not in self._dropped)
        terms = {self.keep[gap]: size for gap, size in sizes.items() if gap in self.keep}
        streams = (index for index in model.events_at[step] if index in self.stream)
        terms |= {self.stream[index]: -model.events[index].saved for index in streams}
        return pulp.LpAffineExpression(terms, constant=model.whole[step] + kept)

    def _constrain(self, budget: int | None, moves_budget: int | None) -> None:
        """Add every row."""
        model, lp = self._model, self.lp
        for step in self.tight:
            lp.addConstraint(self.used(step) <= self._capacity, f"step{step:06d}")
        for gap, kept in self.keep.items():
            tensor = model.gaps[gap].tensor
            if tensor in self.spill:
                lp.addConstraint(self.spill[tensor] + kept >= 1, f"written{gap:06d}")
        for index, streamed in self.stream.items():
            for gap in model.events[index].gaps:
                if gap in self.keep:
                    lp.addConstraint(streamed + self.keep[gap] <= 1, f"hit{index:06d}_{gap:06d}")
                elif gap not in self._dropped:
                    streamed.upBound = 0
        for step in sorted({model.events[index].step for index in self.stream}):
            events = [index for index in model.events_at[step] if index in self.stream]
            for one, other in itertools.combinations(events, 2):
                if model.events[one].alone or model.events[other].alone:
                    row = self.stream[one] + self.stream[other] <= 1
                    lp.addConstraint(row, f"alone{one:06d}_{other:06d}")
        for number, (gaps, named) in enumerate(model.forbidden):
            free = [1 - self.keep[gap] for gap in gaps if gap in self.keep]
            free += [self.stream[index] for index in named if index in self.stream]
            if self._dropped.isdisjoint(gaps):
                lp.addConstraint(pulp.lpSum(free) >= 1, f"forbidden{number:06d}")
        if budget is not None:
            lp.addConstraint(self.words <= budget, "budget")
        if moves_budget is not None:
            lp.addConstraint(self.moves <= moves_budget, "moves")
