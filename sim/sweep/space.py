"""The space of a sweep: all designs, before any evaluation."""

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hw.errors import InputError
from sim.sweep.expression import Expression
from sim.sweep.figures import evaluated
from sim.sweep.points import Value
from sim.sweep.spec import SweepSpec, values_of

#: Name of the board among the axes.
BOARD = "board"
#: Most designs of a grid, and most that are drawn to find one that the constraints allow.
MOST_DESIGNS = 1_000_000

#: Indices of a design's values on each axis.
Place = tuple[int, ...]


@dataclass(frozen=True)
class Space:
    """Designs of a sweep.

    Raises `InputError` for an expression over names that nothing has.
    """

    spec: SweepSpec

    @cached_property
    def axes(self) -> Mapping[str, tuple[Value, ...]]:
        """Values of each parameter by ``ENGINE.PARAMETER``, and the boards."""
        found = {name: given for name, given in self._parameters.items() if isinstance(given, tuple)}
        return {BOARD: self.spec.boards, **found}

    @cached_property
    def _parameters(self) -> Mapping[str, tuple[Value, ...] | Expression]:
        return {
            f"{name}.{parameter}": values_of(given)
            for name, engine in self.spec.engines.items()
            for parameter, given in engine.parameters.items()
        }

    @cached_property
    def _derived(self) -> Mapping[str, Expression]:
        return {name: given for name, given in self._parameters.items() if isinstance(given, Expression)}

    @cached_property
    def _constraints(self) -> list[str]:
        """Constraints that need no figure."""
        names = {BOARD, *self.spec.scope(self._parameters)}
        return [text for text in self.spec.constraints if Expression(text).names <= names]

    @property
    def size(self) -> int:
        """Designs, before constraints."""
        return math.prod(len(values) for values in self.axes.values())

    def parameters(self, place: Place) -> dict[str, Value]:
        """Return the parameters of a design, and its board."""
        chosen: dict[str, Any] = {
            name: values[index] for (name, values), index in zip(self.axes.items(), place, strict=True)
        }
        for name, expression in self._derived.items():
            engine = f"{name.partition('.')[0]}."
            own = {k.removeprefix(engine): value for k, value in chosen.items() if k.startswith(engine)}
            chosen[name] = evaluated(expression.text, {**self.spec.scope(chosen), **own})
        return chosen

    def allowed(self, place: Place) -> bool:
        """Say whether a design keeps the constraints over parameters."""
        chosen = self.parameters(place)
        names = self.spec.scope(chosen) | chosen
        return all(evaluated(text, names) for text in self._constraints)

    def grid(self) -> list[Place]:
        """Return all designs that are allowed.

        Raises `InputError` when there are too many, or none.
        """
        if self.size > MOST_DESIGNS:
            legal = f"at most {MOST_DESIGNS:,} of a grid; the strategy random takes any number"
            raise InputError("designs", f"{self.size:,}", legal)
        every = itertools.product(*(range(len(values)) for values in self.axes.values()))
        found = [place for place in every if self.allowed(place)]
        return found or self._none()

    def drawn(self, count: int, seed: int) -> list[Place]:
        """Return ``count`` different designs that are allowed, or all where there are fewer.

        Raises `InputError` when there is none.
        """
        rng = random.Random(seed)
        found: dict[Place, None] = {}
        lengths = [len(values) for values in self.axes.values()]
        for number in _numbers(rng, self.size):
            place = tuple(_digits(number, lengths))
            if self.allowed(place):
                found[place] = None
            if len(found) == count:
                break
        return list(found) or self._none()

    def _none(self) -> list[Place]:
        texts = " and ".join(self._constraints) or "none"
        raise InputError("constraints", texts, "such that a design keeps them")


def _numbers(rng: random.Random, size: int) -> Iterator[int]:
    if size <= MOST_DESIGNS:
        yield from rng.sample(range(size), size)
    else:
        yield from (rng.randrange(size) for _ in range(MOST_DESIGNS))


def _digits(number: int, lengths: Sequence[int]) -> Iterator[int]:
    for length in lengths:
        number, digit = divmod(number, length)
        yield digit


def near(place: Place, other: Place, steps: int) -> bool:
    """Say whether designs of one board differ in one parameter only, by so many values at the most."""
    far = [abs(a - b) for a, b in zip(place, other, strict=True) if a != b]
    return place[0] == other[0] and len(far) == 1 and far[0] <= steps
