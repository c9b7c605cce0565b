"""Baselines of the planner: replacement policies over a fixed order, and greedy choices.

COSMA (arXiv 2311.18246, section V) compares with {default order, order of least peak} x Belady's replacement
x a linear allocator.  This module has both orders x {LRU, Belady} x {first-fit, no fragmentation}.  Without
fragmentation a tensor may lie in pieces, so no real allocator does better.  The greedy methods keep tensors
in the scratchpad by size, or in order of their uses; they, too, are free of fragmentation.

Costs are avoidable words, as `hw.scheduler` counts them: repeated fetches of a tensor, and the one write of
an activation that is fetched again.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product

from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.residency.stays import events_of, steps_of


class Replacement(enum.StrEnum):
    """The evicted tensor: the least recently used, or that of the farthest next use, then the largest."""

    LRU = "LRU"
    BELADY = "Belady"


class Allocation(enum.StrEnum):
    """Where a tensor may lie: in the lowest hole that is large enough, or in any free words."""

    FIRST_FIT = "first-fit"
    IDEAL = "no fragmentation"


class Greedy(enum.StrEnum):
    """The order in which stays between two uses are granted, while there is room.

    ``BY_SIZE``: the largest tensor first. ``AS_IT_COMES``: by their first step, then the larger first.
    """

    BY_SIZE = "greedy by size"
    AS_IT_COMES = "greedy keep-if-fits"


def method_name(replacement: Replacement, allocation: Allocation) -> str:
    """Name a replacement with an allocation."""
    return f"{replacement.value}, {allocation.value}"


def baselines(problem: Problem, capacity: int, least_peak_order: Sequence[int]) -> dict[str, int]:
    """Return the avoidable words of every possible baseline, in the better of two orders.

    ``capacity``: words of the scratchpad. When an operator does not fit whole, only the greedy methods
    remain, with windows as in a plan. ``least_peak_order``: the second order beside the default one.
    """
    orders = (tuple(range(problem.operator_count)), least_peak_order)
    fits = capacity >= max(problem.working_set)
    found = {}
    for replacement, allocation in product(Replacement, Allocation) if fits else ():
        found[method_name(replacement, allocation)] = min(
            replace(problem, order, capacity, replacement=replacement, allocation=allocation)
            for order in orders
        )
    for rule in Greedy:
        kept = [keep_greedily(problem, order, capacity, rule=rule, streaming=not fits) for order in orders]
        possible = [words for words in kept if words is not None]
        if possible:
            found[rule.value] = min(possible)
    return found


def replace(
    problem: Problem, order: Sequence[int], capacity: int, *, replacement: Replacement, allocation: Allocation
) -> int:
    """Return the avoidable words of a cache: each step fetches its missing operands and evicts by a policy.

    An operator's missing tensors are placed one after the other, inputs first.  When its own operands leave
    no hole, they are moved through memory to the bottom of the scratchpad.  This costs their fetches and any
    writes that they still lack.  Every operator must fit whole.
    """
    walk = _Replay(
        problem=problem,
        capacity=capacity,
        replacement=replacement,
        allocation=allocation,
        events=_events(problem, order),
    )
    for step, operator in enumerate(order):
        walk.execute(step, operator)
    return walk.words


def _events(problem: Problem, order: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the steps that touch each tensor, rising."""
    steps = steps_of(problem, order)
    return [events_of(problem, steps, tensor) for tensor in range(problem.tensor_count)]


@dataclass(kw_only=True)
class _Replay:
    problem: Problem
    capacity: int
    replacement: Replacement
    allocation: Allocation
    events: list[tuple[int, ...]]
    address: dict[int, int] = field(default_factory=dict)
    """Address of each resident tensor, in the order of placement."""
    last_use: dict[int, int] = field(default_factory=dict)
    fetched: set[int] = field(default_factory=set)
    written: set[int] = field(default_factory=set)
    words: int = 0

    def execute(self, step: int, operator: int) -> None:
        """Make all operands resident; afterwards drop the tensors without a further use."""
        problem = self.problem
        operands = (*problem.inputs[operator], *problem.outputs[operator])
        room = self.capacity - problem.fifo[operator]
        for tensor in operands:
            if tensor in self.address:
                continue
            self._place(tensor, operands, step, room)
            if tensor in problem.inputs[operator]:
                self._fetch(tensor)
        for tensor in operands:
            self.last_use[tensor] = step
        for tensor in list(self.address):
            if self.events[tensor][-1] <= step:
                del self.address[tensor]

    def _place(self, tensor: int, operands: tuple[int, ...], step: int, room: int) -> None:
        while (place := self._hole(self.problem.size[tensor], room)) is None:
            victims = [other for other in self.address if other not in operands]
            if victims:
                self._evict(self._victim(victims, step))
            else:
                self._relocate(step)
        self.address[tensor] = place

    def _hole(self, size: int, room: int) -> int | None:
        sizes = self.problem.size
        if self.allocation is Allocation.IDEAL:
            return 0 if sum(sizes[tensor] for tensor in self.address) + size <= room else None
        low = 0
        for address, tensor in sorted((address, tensor) for tensor, address in self.address.items()):
            if address - low >= size:
                return low
            low = address + sizes[tensor]
        return low if low + size <= room else None

    def _victim(self, tensors: list[int], step: int) -> int:
        if self.replacement is Replacement.LRU:
            return min(tensors, key=lambda tensor: self.last_use[tensor])
        next_use = {tensor: next(e for e in self.events[tensor] if e > step) for tensor in tensors}
        return max(tensors, key=lambda tensor: (next_use[tensor], self.problem.size[tensor]))

    def _evict(self, tensor: int) -> None:
        del self.address[tensor]
        problem = self.problem
        if problem.producer[tensor] >= 0 and tensor not in self.written and not problem.written[tensor]:
            self.words += problem.size[tensor]
            self.written.add(tensor)

    def _fetch(self, tensor: int) -> None:
        if self.problem.producer[tensor] >= 0 or tensor in self.fetched:
            self.words += self.problem.size[tensor]
        self.fetched.add(tensor)

    def _relocate(self, step: int) -> None:
        """Move all tensors to the bottom; the step's own results are empty yet and move free."""
        moved, low = list(self.address), 0
        for tensor in moved:
            if self.problem.producer[tensor] < 0 or self.events[tensor][0] < step:
                self._evict(tensor)
                self._fetch(tensor)
        for tensor in moved:
            self.address[tensor] = low
            low += self.problem.size[tensor]


def keep_greedily(
    problem: Problem, order: Sequence[int], capacity: int, *, rule: Greedy, streaming: bool
) -> int | None:
    """Return the avoidable words if tensors stay between two uses while there is room, by preference; None
    if some operator does not fit.

    ``capacity``: in words. ``streaming``: whether operands that do not fit whole pass through windows of the
    scratchpad, as in a plan. A tensor that stays before or after the step needs its whole size there.
    """
    size, used = problem.size, [problem.working_set[operator] for operator in order]
    saved: dict[tuple[int, int], int] = {}
    for step, operator in enumerate(order):
        if streaming and used[step] > capacity:
            for tensor, words in _windows(problem, operator, capacity).items():
                saved[step, tensor] = words
                used[step] -= words
        if used[step] > capacity:
            return None
    events = _events(problem, order)
    gaps = [(tensor, gap) for tensor, steps in enumerate(events) for gap in range(len(steps) - 1)]
    if rule is Greedy.BY_SIZE:
        gaps.sort(key=lambda gap: -size[gap[0]])
    else:
        gaps.sort(key=lambda gap: (events[gap[0]][gap[1]], -size[gap[0]], -gap[0]))
    kept: set[tuple[int, int]] = set()
    for tensor, gap in gaps:
        first, last = events[tensor][gap : gap + 2]
        more = dict.fromkeys(range(first + 1, last), size[tensor])
        more |= {step: saved.get((step, tensor), 0) for step in (first, last)}
        if all(used[step] + words <= capacity for step, words in more.items()):
            kept.add((tensor, gap))
            for step, words in more.items():
                used[step] += words
            for step in (first, last):
                saved.pop((step, tensor), None)
    return sum(_words(problem, tensor, kept, len(events[tensor]) - 1) for tensor in range(len(size)))


def _windows(problem: Problem, operator: int, capacity: int) -> dict[int, int]:
    """Return the operands of an operator that pass through windows, and the words that each saves.

    They are all that can stream together or, if that is not enough, one that can only stream alone.
    """
    saved = {
        tensor: problem.size[tensor] - problem.window(operator, tensor)
        for tensor in problem.operands[operator]
    }
    alone = {tensor for tensor in saved if problem.streams_alone(operator, tensor)}
    together = {tensor: words for tensor, words in saved.items() if tensor not in alone}
    if alone and problem.working_set[operator] - sum(together.values()) > capacity:
        largest = max(alone, key=saved.__getitem__)
        return {largest: saved[largest]}
    return together


def _words(problem: Problem, tensor: int, kept: set[tuple[int, int]], gaps: int) -> int:
    """Avoidable words of a tensor, from the gaps that are kept."""
    reads = sum((tensor, gap) not in kept for gap in range(gaps))
    is_source = problem.producer[tensor] < 0
    writes = bool(reads) and not is_source and not problem.written[tensor]
    return problem.size[tensor] * (reads + writes)
