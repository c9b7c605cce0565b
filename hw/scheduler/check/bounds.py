"""Avoidable bytes that no plan can save, by this module's own arithmetic.

While an operator runs, its operands want to lie in the scratchpad, and so do the tensors that are needed
before it and after it. What finds no room there is moved again: it is fetched for its next use and, if it was
made on chip and not used since, written first. Along a chain of operators, each before the next in any case,
what is moved for one of them may have been moved for the one before, and only the rest adds up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hw.scheduler.check.form import Plan
from hw.scheduler.check.space import least_window_bytes


def order_bound_bytes(plan: Plan) -> int:
    """Bound the avoidable bytes of all plans that execute the operators in this plan's order."""
    return _bound(plan, [(1 << step) - 1 for step in range(len(plan.steps))])


def bound_bytes(plan: Plan) -> int:
    """Bound the avoidable bytes of all plans of this graph in a scratchpad of this size."""
    before: list[int] = []
    for operator in plan.executed:
        makers = {plan.made_at[name] for name in operator.inputs} - {-1}
        before.append(sum(1 << maker for maker in makers))
        for maker in makers:
            before[-1] |= before[maker]
    return _bound(plan, before)


class _Crowd(NamedTuple):
    """What wants to lie in the scratchpad in a step: names and how often each byte moves if it cannot, which
    of them are fetched behind it only; and the bytes that find no room.
    """

    moves: dict[str, int]
    fetched_later: set[str]
    excess_bytes: int


def _bound(plan: Plan, before: Sequence[int]) -> int:
    """Bound avoidable bytes where ``before`` gives, as a bit mask, the steps before each in any case."""
    after = [0] * len(before)
    for step, mask in enumerate(before):
        for earlier in range(step):
            after[earlier] |= (mask >> earlier & 1) << step
    found: list[tuple[int, _Crowd, int]] = []
    for step in range(len(before)):
        crowd = _crowd(plan, step, before[step], after[step])
        if crowd.excess_bytes > 0:
            chains = [
                most + _moved_bytes(plan, crowd, others.fetched_later)
                for earlier, others, most in found
                if before[step] >> earlier & 1
            ]
            found.append((step, crowd, max([_moved_bytes(plan, crowd, set()), *chains])))
    return max((most for *_, most in found), default=0)


def _crowd(plan: Plan, step: int, before: int, after: int) -> _Crowd:
    """Say what wants to lie in the scratchpad in a step, given the steps before and after it in any case."""
    operator, streams = plan.executed[step], plan.options.streaming != "never"
    moves, fetched_later, free, free_alone = dict[str, int](), set[str](), 0, 0
    for name, tensor in plan.tensor.items():
        made, uses = plan.made_at[name], sum(1 << use for use in plan.used_at[name])
        touched = uses | (1 << made if made >= 0 else 0)
        earlier, later, here = touched & before, uses & after, touched >> step & 1
        if (earlier and later and not here) or (streams and here and (earlier or later)):
            # Written first, unless it is in memory in any case, or may have been there for a use before.
            first = not tensor.is_source and tensor.kind != "output" and not uses & ~(after | 1 << step)
            moves[name] = 2 if first else 1
            if not (here and earlier):
                fetched_later.add(name)
        elif here and streams:
            # It moves once in any case, and may do so through a window.
            saved = plan.size[name] - least_window_bytes(plan, operator, name)
            if plan.passes_alone(operator, name):
                free_alone = max(free_alone, saved)
            else:
                free += saved
    wanted = {*moves, *operator.inputs, *operator.outputs}
    taken = sum(plan.size[name] for name in wanted) + plan.whole_words(operator.fifo_bytes)
    room = plan.scratchpad_bytes // plan.word_bytes * plan.word_bytes
    return _Crowd(moves, fetched_later, taken - max(free, free_alone) - room)


def _moved_bytes(plan: Plan, crowd: _Crowd, paid: set[str]) -> int:
    """Give the bytes that a crowd's excess moves at the least, where some tensors were moved before."""
    once = sum(plan.size[name] for name, times in crowd.moves.items() if times == 1 and name not in paid)
    rest = max(0, crowd.excess_bytes - sum(plan.size[name] for name in crowd.moves if name in paid))
    return min(rest, once) + 2 * max(0, rest - once)
