"""The integer program of a residency: what is left of the model once the obvious is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pulp

from hw.scheduler.planner.residency.model import Choice, Model


@dataclass(frozen=True, kw_only=True)
class Program:
    """What is left for a solver once the obvious is decided.

    Parameters
    ----------
    model : Model
    capacity : int
        Units that no step may exceed.
    floor : int
        Steps that cannot exceed it whatever is decided need no row: the capacity when only traffic counts,
        less when the peak does.
    budget : int or None
        Units of avoidable traffic that may not be exceeded.
    moves_budget : int or None
        Avoidable transfers that may not be exceeded.
    """

    model: Model
    capacity: int
    floor: int
    budget: int | None = None
    moves_budget: int | None = None

    @cached_property
    def dropped(self) -> frozenset[int]:
        """Gaps that cannot be kept: their tensor would not fit into a step they pass over or end in."""
        model = self.model
        found = set()
        for step in range(len(model.order)):
            room = self.capacity - model.least(step)
            found |= {index for index in model.over[step] if model.size[model.gaps[index].tensor] > room}
            for event in (model.events[index] for index in model.events_at[step]):
                if event.gaps and event.saved and model.least(step, without=event.tensor) > self.capacity:
                    found |= set(event.gaps)
        return frozenset(found)

    @cached_property
    def tight(self) -> tuple[int, ...]:
        """Steps that could exceed the floor."""
        model = self.model
        return tuple(
            step
            for step, passing in enumerate(model.over)
            if model.whole[step]
            + sum(model.size[model.gaps[index].tensor] for index in passing if index not in self.dropped)
            > self.floor
        )

    @cached_property
    def open_events(self) -> tuple[int, ...]:
        """Events that may be streamed, in tight steps and in forbidden sets."""
        events = self.model.events
        wanted = {index for step in self.tight for index in self.model.events_at[step]}
        wanted |= {index for _, named in self.model.forbidden for index in named}
        return tuple(sorted(index for index in wanted if events[index].saved > 0))

    @cached_property
    def open_gaps(self) -> tuple[int, ...]:
        """Gaps that a solver has to decide; every other one is kept, or is among ``dropped``."""
        model = self.model
        wanted = {index for step in self.tight for index in model.over[step]}
        wanted |= {gap for index in self.open_events for gap in model.events[index].gaps}
        wanted |= {gap for gaps, _ in model.forbidden for gap in gaps}
        if self.budget is not None:
            wanted = {index for index in wanted if model.cost(index) <= self.budget}
        return tuple(sorted(wanted - self.dropped))

    @property
    def decided(self) -> bool:
        """Whether nothing is left to decide."""
        return not self.open_gaps and not self.open_events and not self.model.forbidden

    def choice(self, values: dict[str, int]) -> Choice:
        """Read a solver's values, or none when everything is decided."""
        open_gaps, open_events = set(self.open_gaps), set(self.open_events)
        return Choice(
            kept=tuple(
                bool(values[f"keep{index:06d}"]) if index in open_gaps else index not in self.dropped
                for index in range(len(self.model.gaps))
            ),
            streamed=tuple(
                index in open_events and bool(values[f"stream{index:06d}"])
                for index in range(len(self.model.events))
            ),
        )

    def values(self, choice: Choice) -> dict[str, int]:
        """Give the variables' values of a choice: a start for a solver."""
        kept = {f"keep{index:06d}": int(choice.kept[index]) for index in self.open_gaps}
        streamed = {f"stream{index:06d}": int(choice.streamed[index]) for index in self.open_events}
        gaps = self.model.gaps
        lost = {gap.tensor for gap, keep in zip(gaps, choice.kept, strict=True) if not keep}
        spilled = {f"spill{tensor:06d}": int(tensor in lost) for tensor in self.spill}
        return {**kept, **streamed, **spilled}

    @cached_property
    def keep(self) -> dict[int, pulp.LpVariable]:
        """Variables of the open gaps."""
        return {index: self._binary(f"keep{index:06d}") for index in self.open_gaps}

    @cached_property
    def stream(self) -> dict[int, pulp.LpVariable]:
        """Variables of the open events."""
        return {index: self._binary(f"stream{index:06d}") for index in self.open_events}

    @cached_property
    def spill(self) -> dict[int, pulp.LpVariable]:
        """Variables of the activations with an open gap and none that is dropped: those are spilled."""
        tensors = {self.model.gaps[index].tensor for index in self.open_gaps}
        sure = {self.model.gaps[index].tensor for index in self.dropped}
        return {
            tensor: self._binary(f"spill{tensor:06d}")
            for tensor in sorted(tensors - sure)
            if self.model.spills(tensor)
        }

    @cached_property
    def words(self) -> pulp.LpAffineExpression:
        """Units of avoidable traffic."""
        return self._weighted(self.model.size)

    @cached_property
    def moves(self) -> pulp.LpAffineExpression:
        """Avoidable transfers."""
        return self._weighted([1] * len(self.model.size))

    def _weighted(self, weight: Sequence[int]) -> pulp.LpAffineExpression:
        gaps, dropped = self.model.gaps, self.dropped
        constant = sum(weight[gaps[index].tensor] for index in (*self.open_gaps, *dropped))
        sure = {gaps[index].tensor for index in dropped}
        constant += sum(weight[tensor] for tensor in sure if self.model.spills(tensor))
        terms = {variable: -weight[gaps[index].tensor] for index, variable in self.keep.items()}
        terms |= {variable: weight[tensor] for tensor, variable in self.spill.items()}
        return pulp.LpAffineExpression(terms, constant=constant)

    def used(self, step: int) -> pulp.LpAffineExpression:
        """Units in use in a step."""
        model = self.model
        constant = model.whole[step]
        terms: dict[pulp.LpVariable, int] = {}
        for index in model.over[step]:
            size = model.size[model.gaps[index].tensor]
            if index in self.keep:
                terms[self.keep[index]] = size
            elif index not in self.dropped:
                constant += size
        for index in model.events_at[step]:
            if index in self.stream:
                terms[self.stream[index]] = -model.events[index].saved
        return pulp.LpAffineExpression(terms, constant=constant)

    @cached_property
    def _lp(self) -> pulp.LpProblem:
        return pulp.LpProblem("residency", pulp.LpMinimize)

    def _binary(self, name: str) -> pulp.LpVariable:
        return self._lp.add_variable(name, cat="Binary")

    def problem(self) -> pulp.LpProblem:
        """Give the problem with every row but no objective; to be called once."""
        lp = self._lp
        for step in self.tight:
            lp.addConstraint(self.used(step) <= self.capacity, f"step{step:06d}")
        self._link(lp)
        self._forbid(lp)
        if self.budget is not None:
            lp.addConstraint(self.words <= self.budget, "budget")
        if self.moves_budget is not None:
            lp.addConstraint(self.moves <= self.moves_budget, "moves")
        return lp

    def _link(self, lp: pulp.LpProblem) -> None:
        model = self.model
        for index, variable in self.keep.items():
            tensor = model.gaps[index].tensor
            if tensor in self.spill:
                lp.addConstraint(self.spill[tensor] + variable >= 1, f"written{index:06d}")
        for index, variable in self.stream.items():
            for gap in model.events[index].gaps:
                if gap in self.keep:
                    lp.addConstraint(variable + self.keep[gap] <= 1, f"hit{index:06d}_{gap:06d}")
                elif gap not in self.dropped:
                    variable.upBound = 0
        for step in sorted({model.events[index].step for index in self.stream}):
            events = [index for index in model.events_at[step] if index in self.stream]
            for one in events:
                for other in events:
                    both = model.events[one].alone and model.events[other].alone
                    if one != other and model.events[one].alone and (one < other or not both):
                        row = self.stream[one] + self.stream[other] <= 1
                        lp.addConstraint(row, f"alone{one:06d}_{other:06d}")

    def _forbid(self, lp: pulp.LpProblem) -> None:
        for number, (gaps, events) in enumerate(self.model.forbidden):
            free = [1 - self.keep[index] for index in gaps if index in self.keep]
            free += [self.stream[index] for index in events if index in self.stream]
            if not any(index in self.dropped for index in gaps):
                lp.addConstraint(pulp.lpSum(free) >= 1, f"forbidden{number:06d}")
