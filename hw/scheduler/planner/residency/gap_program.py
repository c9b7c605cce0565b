"""The integer program of a residency, over the gaps and events that need a decision."""

import itertools
from collections.abc import Iterable, Mapping, Sequence

import pulp

from hw.scheduler.planner.residency.model import Choice, Model


class GapProgram:
    """The decisions at steps that could exceed the capacity; the caller sets the objective.

    ``capacity``: limit of every step, in units. ``floor``: a step that never exceeds it needs no row: the
    capacity when only traffic counts, less when the peak does. ``budget``, ``moves_budget``: limits of
    avoidable units and of avoidable transfers.
    """

    def __init__(
        self,
        model: Model,
        capacity: int,
        *,
        floor: int | None = None,
        budget: int | None = None,
        moves_budget: int | None = None,
    ) -> None:
        self._model = model
        self.lp = pulp.LpProblem("residency", pulp.LpMinimize)
        floor, steps = capacity if floor is None else floor, range(len(model.order))
        #: Steps that could exceed the floor.
        self.tight = tuple(step for step in steps if self._most(step) > floor)
        events = {each for step in self.tight for each in model.events_at[step] if model.events[each].saved}
        gaps = {gap for index in events for gap in model.events[index].gaps}
        gaps |= {gap for step in self.tight for gap in model.over[step]}
        if budget is not None:
            gaps = {gap for gap in gaps if model.cost(gap) <= budget}
        #: ``keep``, ``stream``, ``spill``: the binaries: gaps, events in tight steps, and tensors that may be
        #: spilled.
        self.keep = self._binaries("keep", gaps)
        self.stream = self._binaries("stream", events)
        self.spill = self._binaries("spill", filter(model.spills, {model.gaps[gap].tensor for gap in gaps}))
        #: ``words``, ``moves``: units of avoidable traffic, and avoidable transfers.
        self.words, self.moves = self._weighted(model.size), self._weighted([1] * len(model.size))
        self._constrain(capacity)
        if budget is not None:
            self.lp.addConstraint(self.words <= budget, "budget")
        if moves_budget is not None:
            self.lp.addConstraint(self.moves <= moves_budget, "moves")

    @property
    def decided(self) -> bool:
        """Whether no decision is open."""
        return not self.keep and not self.stream

    def _binaries(self, name: str, indices: Iterable[int]) -> dict[int, pulp.LpVariable]:
        return {index: self.lp.add_variable(f"{name}{index:06d}", cat="Binary") for index in sorted(indices)}

    def _most(self, step: int) -> int:
        """Units in use in a step if every gap over it is kept."""
        model = self._model
        return model.whole[step] + sum(model.size[model.gaps[gap].tensor] for gap in model.over[step])

    def choice(self, values: Mapping[str, int]) -> Choice:
        """Convert a solver's values (empty if no decision is open); gaps without a decision are kept."""
        return Choice(
            lost=frozenset(gap for gap, kept in self.keep.items() if not values[kept.name]),
            streamed=frozenset(index for index, passes in self.stream.items() if values[passes.name]),
        )

    def values(self, choice: Choice) -> dict[str, int]:
        """Convert a choice into values of the variables: a start for a solver."""
        spilled = {self._model.gaps[gap].tensor for gap in choice.lost}
        return {
            **{variable.name: int(gap not in choice.lost) for gap, variable in self.keep.items()},
            **{variable.name: int(index in choice.streamed) for index, variable in self.stream.items()},
            **{variable.name: int(tensor in spilled) for tensor, variable in self.spill.items()},
        }

    def _weighted(self, weight: Sequence[int]) -> pulp.LpAffineExpression:
        """Return the weighted sum of gaps that are not kept and of spills."""
        weights = {gap: weight[self._model.gaps[gap].tensor] for gap in self.keep}
        terms = {variable: -weights[gap] for gap, variable in self.keep.items()}
        terms |= {variable: weight[tensor] for tensor, variable in self.spill.items()}
        return pulp.LpAffineExpression(terms, constant=sum(weights.values()))

    def used(self, step: int) -> pulp.LpAffineExpression:
        """Units in use in a step."""
        model = self._model
        sizes = {gap: model.size[model.gaps[gap].tensor] for gap in model.over[step]}
        kept = sum(size for gap, size in sizes.items() if gap not in self.keep)
        terms = {self.keep[gap]: size for gap, size in sizes.items() if gap in self.keep}
        streams = (index for index in model.events_at[step] if index in self.stream)
        terms |= {self.stream[index]: -model.events[index].saved for index in streams}
        return pulp.LpAffineExpression(terms, constant=model.whole[step] + kept)

    def _constrain(self, capacity: int) -> None:
        """Add the model's rows."""
        model, lp = self._model, self.lp
        for step in self.tight:
            lp.addConstraint(self.used(step) <= capacity, f"step{step:06d}")
            events = [index for index in model.events_at[step] if index in self.stream]
            for one, other in itertools.combinations(events, 2):
                if model.events[one].alone or model.events[other].alone:
                    row = self.stream[one] + self.stream[other] <= 1
                    lp.addConstraint(row, f"alone{one:06d}_{other:06d}")
        for gap, kept in self.keep.items():
            tensor = model.gaps[gap].tensor
            if tensor in self.spill:
                lp.addConstraint(self.spill[tensor] + kept >= 1, f"written{gap:06d}")
        for index, streamed in self.stream.items():
            for gap in model.events[index].gaps:
                if gap in self.keep:
                    lp.addConstraint(streamed + self.keep[gap] <= 1, f"hit{index:06d}_{gap:06d}")
                else:
                    streamed.upBound = 0
