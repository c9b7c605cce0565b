"""Lower bounds of avoidable bytes, by this module's own arithmetic.

While an operator runs, its operands demand room in the scratchpad, and so do tensors needed both before and
after it. A tensor without room is moved again: it is fetched for its next use and, if it was produced on chip
and not used since, written first. Along a chain of operators with a forced order, a move for one operator may
serve the next. So only bytes of other tensors add up.
"""

import bisect
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


class _Demand(NamedTuple):
    """The demand for the scratchpad in a step."""

    moves: dict[str, int]  #: By tensor, how often each of its bytes moves if it has no room.
    fetched_later: set[str]  #: Those of the tensors that are fetched only after the step.
    excess_bytes: int  #: Bytes without room.


def _bound(plan: Plan, before: Sequence[int]) -> int:
    """Bound avoidable bytes; ``before`` is, for each step, a bit mask of the steps that always precede it."""
    alive: list[list[str]] = [[] for _ in before]
    for name, uses in plan.used_at.items():
        touched = sorted({*uses, plan.made_at[name]} - {-1})
        for step in range(touched[0], touched[-1] + 1):
            alive[step].append(name)
    # Most bytes along a chain, its last step and its demand; largest first.
    found: list[tuple[int, int, _Demand]] = []
    for step, mask in enumerate(before):
        demand = _demand(plan, step, before, alive[step])
        if demand.excess_bytes <= 0:
            continue
        alone = most = _moved_bytes(plan, demand, set())
        for chain, earlier, others in found:
            if chain + alone <= most:
                break
            if mask >> earlier & 1:
                most = max(most, chain + _moved_bytes(plan, demand, others.fetched_later))
        bisect.insort(found, (most, step, demand), key=lambda entry: -entry[0])
    return found[0][0] if found else 0


def _demand(plan: Plan, step: int, before: Sequence[int], alive: Sequence[str]) -> _Demand:
    """Return the demand in a step, of the tensors that are alive there in the plan's own order."""
    operator, streams = plan.executed[step], plan.options.streaming != "never"
    moves, fetched_later, free, free_alone = dict[str, int](), set[str](), 0, 0
    for name in alive:
        tensor, made, uses = plan.tensor[name], plan.made_at[name], plan.used_at[name]
        here = made == step or step in uses
        earlier = any(before[step] >> touch & 1 for touch in (made, *uses) if touch >= 0)
        behind = [bool(before[use] >> step & 1) for use in uses]
        later = any(behind)
        if (earlier and later and not here) or (streams and here and (earlier or later)):
            # Written first, unless it is in memory anyway, or an earlier use may have written it.
            unused = all(use == step or after for use, after in zip(uses, behind, strict=True))
            moves[name] = 2 if unused and not tensor.is_source and tensor.kind != "output" else 1
            if not (here and earlier):
                fetched_later.add(name)
        elif here and streams:
            # It moves once anyway, and may do so through a window.
            saved = plan.size[name] - least_window_bytes(plan, operator, name)
            if plan.passes_alone(operator, name):
                free_alone = max(free_alone, saved)
            else:
                free += saved
    wanted = {*moves, *operator.inputs, *operator.outputs}
    taken = sum(plan.size[name] for name in wanted) + plan.whole_words(operator.fifo_bytes)
    room = plan.scratchpad_bytes // plan.word_bytes * plan.word_bytes
    return _Demand(moves, fetched_later, taken - max(free, free_alone) - room)


def _moved_bytes(plan: Plan, demand: _Demand, paid: set[str]) -> int:
    """Return the least bytes that a demand's excess moves; moves of ``paid`` tensors are counted already."""
    once = sum(plan.size[name] for name, times in demand.moves.items() if times == 1 and name not in paid)
    rest = max(0, demand.excess_bytes - sum(plan.size[name] for name in demand.moves if name in paid))
    return min(rest, once) + 2 * max(0, rest - once)
