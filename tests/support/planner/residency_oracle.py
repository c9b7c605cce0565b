"""Residency by exhaustive search, step by step, independent of the integer program."""

import itertools


def least_words(problem, order, capacity, *, streaming):
    """Fewest avoidable words of an order, or None when a step does not fit.

    A state after a step is who lies in the scratchpad and who has a copy in memory; every subset is tried.
    """
    steps = {operator: step for step, operator in enumerate(order)}
    last = [max((steps[user] for user in users), default=-1) for users in problem.consumers]
    sources = frozenset(t for t, writer in enumerate(problem.producer) if writer < 0)
    states: dict = {(frozenset(), frozenset()): 0}
    for step, operator in enumerate(order):
        following: dict = {}
        for (resident, copied), words in states.items():
            for present, copies, cost in _executions(
                problem, operator, resident, copied, sources, capacity, streaming
            ):
                wanted = [t for t in sorted(present) if last[t] > step]
                for count in range(len(wanted) + 1):
                    for kept in itertools.combinations(wanted, count):
                        saved, spent = set(copies), cost
                        for t in set(wanted) - set(kept) - sources:
                            if t not in saved:
                                saved.add(t)
                                spent += 0 if problem.written[t] else problem.size[t]
                        state = frozenset(kept), frozenset(saved)
                        total = words + spent
                        if total < following.get(state, total + 1):
                            following[state] = total
        states = following
    return min(states.values(), default=None)


def _executions(problem, operator, resident, copied, sources, capacity, streaming):
    """Ways to execute an operator: resident tensors afterwards, copies, and cost."""
    size = problem.size
    missing = [t for t in problem.inputs[operator] if t not in resident]
    made = list(problem.outputs[operator])
    for passing in itertools.product((False, True), repeat=len(missing) + len(made)):
        streamed = [t for t, through in zip(missing + made, passing, strict=True) if through]
        if streamed and not streaming:
            continue
        if len(streamed) > 1 and any(problem.streams_alone(operator, t) for t in streamed):
            continue
        present = (set(resident) | set(missing) | set(made)) - set(streamed)
        used = problem.fifo[operator] + sum(size[t] for t in present)
        if used + sum(problem.window(operator, t) for t in streamed) > capacity:
            continue
        copies = set(copied)
        cost = 0
        for t in missing:
            if t in sources:
                cost += size[t] if t in copies else 0
                copies.add(t)
            elif t in copies:
                cost += size[t]
            else:
                break
        else:
            for t in set(made) & set(streamed):
                copies.add(t)
                cost += 0 if problem.written[t] else size[t]
            yield present, copies, cost
