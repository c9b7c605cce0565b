"""COSMA's problem by exhaustive search: every order, residency and address; for a handful of operators.

Nothing is shared with the integer program.  States are explored cheapest first: which operators are done, who
lies at which word, and which activations and sources have a copy in memory.
"""

import heapq
from itertools import chain, combinations


def least_placed_words(problem, capacity, order=None):
    """Fewest avoidable words of all plans that can also be placed, or None when there is none.

    Tensors lie whole.  One that is dropped has left before the step in which it is fetched again, unless
    memory has a copy already.
    """
    count = problem.operator_count
    last_users = [sum(1 << user for user in users) for users in problem.consumers]
    start = (0, (), frozenset())
    best, queue = {start: 0}, [(0, 0, 0, start)]
    numbered = 0
    while queue:
        # Among equally cheap states the furthest, of those the latest: the answer is the same, but sooner.
        words, _, _, state = heapq.heappop(queue)
        if words > best[state]:
            continue
        done, lying, copies = state
        if done == (1 << count) - 1:
            return words
        for operator in range(count) if order is None else (order[done.bit_count()],):
            if done >> operator & 1 or problem.predecessors[operator] & ~done:
                continue
            after = done | 1 << operator
            for cost, placed, copied in _steps(problem, operator, lying, copies, capacity):
                kept = tuple(sorted((t, at) for t, at in placed.items() if last_users[t] & ~after))
                useful = frozenset(t for t in copied if last_users[t] & ~after)
                following = (after, kept, useful)
                total = words + cost
                if total < best.get(following, total + 1):
                    best[following] = total
                    numbered += 1
                    heapq.heappush(queue, (total, -after.bit_count(), -numbered, following))
    return None


def _steps(problem, operator, lying, copies, capacity):
    """Ways to execute an operator: cost, tensors and addresses in its step, and copies."""
    size, inputs, outputs = problem.size, problem.inputs[operator], problem.outputs[operator]
    for dropped in _subsets(lying):
        kept = dict(lying)
        cost, copied = 0, set(copies)
        for t, _ in dropped:
            del kept[t]
            if t in copied:
                continue
            if t in inputs:
                break  # it leaves in this step, so it cannot be there
            copied.add(t)
            cost += 0 if problem.written[t] else size[t]
        else:
            missing = [t for t in inputs if t not in kept]
            for t in missing:
                if problem.producer[t] < 0 and t not in copied:
                    copied.add(t)  # the first fetch of a source
                else:
                    cost += size[t]
            for placed in _places(size, kept, (*missing, *outputs), capacity):
                yield cost, placed, copied


def _places(size, kept, coming, capacity):
    """All addresses of the new tensors, beside the kept ones."""
    if sum(size[t] for t in (*kept, *coming)) > capacity:
        return
    taken = sum((1 << size[t]) - 1 << at for t, at in kept.items())

    def place(rest, taken, placed):
        if not rest:
            yield placed
            return
        wanted = (1 << size[rest[0]]) - 1
        for at in range(capacity - size[rest[0]] + 1):
            if not taken & wanted << at:
                yield from place(rest[1:], taken | wanted << at, placed | {rest[0]: at})

    yield from place(coming, taken, kept)


def _subsets(items):
    return chain.from_iterable(combinations(items, count) for count in range(len(items) + 1))


def least_peak_words(problem, orders):
    """Least peak of any order without spills: each tensor lies in the scratchpad from its write or first read
    to its last use.
    """
    return min(_peak(problem, order) for order in orders)


def _peak(problem, order):
    step = {operator: number for number, operator in enumerate(order)}
    used = [0] * len(order)
    for t, users in enumerate(problem.consumers):
        touched = [step[user] for user in users]
        if problem.producer[t] >= 0:
            touched.append(step[problem.producer[t]])
        for number in range(min(touched), max(touched) + 1):
            used[number] += problem.size[t]
    return max(used)
