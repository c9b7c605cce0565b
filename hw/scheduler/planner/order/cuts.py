"""What must be alive while an operator runs, in whatever order: one minimum cut for each operator.

While operator ``o`` runs, the operators executed before form a down-set that contains all that ``o`` depends
on, and nothing that depends on ``o``.  The units alive are a cut function of that down-set: a tensor is alive
when the operator that writes it is inside and one that reads it is not.  The least over all such down-sets is
a minimum cut (the closure problem: J. C. Picard, "Maximal closure of a graph", Management Science 1976), so
a maximum flow gives a bound that no order beats.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hw.scheduler.planner.order.lattice import BITS, Integers, Lattice, compiled, contains

#: Capacity of an arc that no cut may cross; far above every sum of units, far below an overflow.
_ENDLESS = 1 << 60


class Network(NamedTuple):
    """A flow network: operators, then two nodes for each tensor; arc ``2k + 1`` is the reverse of ``2k``.

    Members
    -------
    first : shape (nodes + 1,), arc : shape (arcs,)
        Arcs that leave node ``v``: ``arc[first[v] : first[v + 1]]``.
    head : shape (arcs,)
        Node each arc leads to.
    room : shape (arcs,)
        Capacities.
    weighed : shape (tensors,)
        The arc that is cut when the tensor is alive.
    """

    first: Integers
    arc: Integers
    head: Integers
    room: Integers
    weighed: Integers


def network(lattice: Lattice, weights: Integers) -> Network:
    """Make the flow network of a problem.

    Parameters
    ----------
    lattice : Lattice
    weights : shape (tensors,)
        What each tensor counts while it is alive.
    """
    operators, tensors = len(lattice.before), len(lattice.size)
    arcs: list[tuple[int, int, int]] = []
    for operator in range(operators):
        for later in lattice.after[lattice.after_first[operator] : lattice.after_first[operator + 1]]:
            arcs.append((int(later), operator, _ENDLESS))
    weighed = np.zeros(tensors, dtype=np.int64)
    for slot, tensor in enumerate(lattice.tensor):
        operator = int(np.searchsorted(lattice.first, slot, side="right")) - 1
        begin, end = operators + 2 * int(tensor), operators + 2 * int(tensor) + 1
        if lattice.writes[slot]:
            arcs.append((operator, begin, _ENDLESS))
        else:
            arcs.append((end, operator, _ENDLESS))
            if lattice.source[tensor]:
                arcs.append((operator, begin, _ENDLESS))
    for tensor in range(tensors):
        weighed[tensor] = 2 * len(arcs)
        arcs.append((operators + 2 * tensor, operators + 2 * tensor + 1, int(weights[tensor])))
    tails = [node for tail, head, _ in arcs for node in (tail, head)]
    heads = [node for tail, head, _ in arcs for node in (head, tail)]
    nodes = operators + 2 * tensors
    return Network(
        first=np.searchsorted(np.sort(tails), np.arange(nodes + 1)).astype(np.int64),
        arc=np.argsort(tails, kind="stable").astype(np.int64),
        head=np.array(heads, dtype=np.int64),
        room=np.array([room for _, _, room in arcs for room in (room, 0)], dtype=np.int64),
        weighed=weighed,
    )


@compiled
def flow(net: Network, room: Integers, side: Integers) -> int:
    """Push all flow there is from the nodes inside to those outside, along shortest ways.

    Parameters
    ----------
    net : Network
    room : shape (arcs,)
        Capacities left; changed in place.
    side : shape (nodes,)
        1 for the nodes that are inside, 2 for those outside, 0 for the others.
    """
    nodes = len(side)
    came = np.empty(nodes, dtype=np.int64)
    queue = np.empty(nodes, dtype=np.int64)
    total = 0
    while True:
        came[:] = -1
        begin = end = 0
        for node in range(nodes):
            if side[node] == 1:
                came[node] = -2
                queue[end] = node
                end += 1
        last = -1
        while begin < end and last < 0:
            node = queue[begin]
            begin += 1
            for index in range(net.first[node], net.first[node + 1]):
                arc = net.arc[index]
                head = net.head[arc]
                if room[arc] > 0 and came[head] == -1:
                    came[head] = arc
                    if side[head] == 2:
                        last = head
                        break
                    queue[end] = head
                    end += 1
        if last < 0:
            return total
        least = _ENDLESS
        node = last
        while came[node] >= 0:
            least = min(least, room[came[node]])
            node = net.head[came[node] ^ 1]
        node = last
        while came[node] >= 0:
            room[came[node]] -= least
            room[came[node] ^ 1] += least
            node = net.head[came[node] ^ 1]
        total += least


@compiled
def forced(operator: int, reach: Integers, net: Network, own: Integers, lattice: Lattice) -> int:
    """Give the least weight alive while an operator runs, over all orders.

    Parameters
    ----------
    operator : int
    reach : shape (operators, words of a set)
        For each operator all operators that depend on it, directly or not.
    net : Network
    own : shape (operands,)
        What each operand counts while the operator itself runs.
    lattice : Lattice
    """
    room = net.room.copy()
    side = np.zeros(len(net.first) - 1, dtype=np.int64)
    side[operator] = 2
    for other in range(len(lattice.before)):
        if contains(reach[operator], other):
            side[other] = 2
        elif contains(reach[other], operator):
            side[other] = 1
    total = 0
    for slot in range(lattice.first[operator], lattice.first[operator + 1]):
        total += own[slot]
        room[net.weighed[lattice.tensor[slot]]] = 0
    return total + flow(net, room, side)


@compiled
def reachable(lattice: Lattice) -> Integers:
    """Give for each operator all operators that depend on it, as sets.

    Returns
    -------
    Integers
        Shape (operators, words of a set).
    """
    reach = np.zeros_like(lattice.before)
    for operator in range(len(lattice.before) - 1, -1, -1):
        for index in range(lattice.after_first[operator], lattice.after_first[operator + 1]):
            later = lattice.after[index]
            reach[operator] |= reach[later]
            reach[operator, later // BITS] |= 1 << later % BITS
    return reach


def forced_peak(lattice: Lattice) -> int:
    """Give units that are alive at some moment of every order."""
    net = network(lattice, lattice.size)
    reach = reachable(lattice)
    own = lattice.size[lattice.tensor]
    highest = 0
    for operator in range(len(lattice.before)):
        operands = own[lattice.first[operator] : lattice.first[operator + 1]].sum()
        beside = int(lattice.whole[operator] - operands)
        highest = max(highest, beside + forced(operator, reach, net, own, lattice))
    return highest
