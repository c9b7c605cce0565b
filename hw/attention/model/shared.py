"""Models of streams that are alike so far: one object stands for all of them until their inputs differ."""

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

T = TypeVar("T")


def split_shared(models: list[T], inputs: Sequence[Hashable], copy: Callable[[T], T]) -> None:
    """Replace a model that several streams share by copies, one for each different input of these streams."""
    split: dict[tuple[int, Hashable], T] = {}
    used: set[int] = set()
    for n, (model, given) in enumerate(zip(models, inputs, strict=True)):
        key = id(model), given
        if key not in split:
            split[key] = copy(model) if id(model) in used else model
            used.add(id(model))
        models[n] = split[key]
