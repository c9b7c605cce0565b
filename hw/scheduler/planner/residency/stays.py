"""A residency as plain data (tensors in the scratchpad by step, for one order of operators), and its costs.

`measure` computes traffic and peak from the stays alone, independent of the solver.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hw.scheduler.plan.plan import Direction
from hw.scheduler.plan.problem import Problem


@dataclass(frozen=True, kw_only=True, order=True)
class Stay:
    """A tensor whole in the scratchpad from ``first_step`` to ``last_step``, both included.

    It begins at the tensor's writer, or at a use after a fetch, and ends at a use.
    """

    tensor: int
    first_step: int
    last_step: int


@dataclass(frozen=True, kw_only=True, order=True)
class StreamUse:
    """A tensor passing through a window in one step: ``READ`` by its user, ``WRITE`` by its producer."""

    tensor: int
    step: int
    direction: Direction


@dataclass(frozen=True, kw_only=True)
class Residency:
    """The tensors in the scratchpad in each step, for one order of operators."""

    order: tuple[int, ...]
    #: ``stays``, ``streams``: by tensor, then step.
    stays: tuple[Stay, ...]
    streams: tuple[StreamUse, ...]
    #: ``avoidable_words``, ``bound_words``: off-chip words beyond the compulsory ones, and a lower bound of
    #: all residencies of this order.
    avoidable_words: int
    bound_words: int
    #: ``peak_words``, ``transfers``: most words in use in one step; reads and writes, compulsory ones
    #: included.
    peak_words: int
    transfers: int
    status: str  #: Of the words: ``optimal`` when they equal the bound, else ``feasible``.
    #: ``solver``, ``note``: the solver with its version; a fallback, a limit that stopped it.
    solver: str
    note: str = ""


class StayCosts(NamedTuple):
    """Costs of stays and streams, as of a `Residency`."""

    avoidable_words: int
    peak_words: int
    transfers: int


def steps_of(problem: Problem, order: Sequence[int]) -> tuple[int, ...]:
    """Return each operator's step."""
    return tuple(sorted(range(len(order)), key=order.__getitem__))


def events_of(problem: Problem, steps: Sequence[int], tensor: int) -> tuple[int, ...]:
    """Return the steps that touch a tensor, rising: the one that writes it, if any, then its uses."""
    uses = sorted(steps[operator] for operator in problem.consumers[tensor])
    writer = problem.producer[tensor]
    return (steps[writer], *uses) if writer >= 0 else tuple(uses)


def measure(
    problem: Problem, order: Sequence[int], stays: Sequence[Stay], streams: Sequence[StreamUse]
) -> StayCosts:
    """Compute the costs of stays and streams."""
    steps = steps_of(problem, order)
    used = [problem.fifo[operator] for operator in order]
    begins: list[list[int]] = [[] for _ in problem.size]
    for stay in stays:
        begins[stay.tensor].append(stay.first_step)
        for step in range(stay.first_step, stay.last_step + 1):
            used[step] += problem.size[stay.tensor]
    for stream in streams:
        begins[stream.tensor].append(stream.step)
        used[stream.step] += problem.window(order[stream.step], stream.tensor)
    words = transfers = 0
    for tensor, size in enumerate(problem.size):
        is_source = problem.producer[tensor] < 0
        first = events_of(problem, steps, tensor)[0]
        reads = sum(is_source or step != first for step in begins[tensor])
        must_write = not is_source and reads > 0
        writes = must_write or problem.written[tensor]
        transfers += reads + writes
        words += size * (reads - is_source)
        if must_write and not problem.written[tensor]:
            words += size
    return StayCosts(words, max(used), transfers)
