"""Selection of pipelined groups (`hw.scheduler.graph.groups`): each candidate pair is evaluated."""

from hw.scheduler.graph.graph import Graph
from hw.scheduler.graph.groups import candidates, group
from hw.scheduler.plan.diagnose import diagnose
from hw.scheduler.plan.options import PlanOptions
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.residency.residency import keep_greedily, solve_residency
from hw.scheduler.planner.transfers.hiding import LATENCY_CYCLES, simulate
from hw.scheduler.planner.transfers.transfers import latest_moves, least_step_cycles
from hw.scheduler.planner.watch import current

#: Graphs that `improve` evaluates at effort 1.
MOST_TRIALS = 48
#: Most operators of all of them together, at effort 1.
_WORK = 20_000
#: Branch-and-bound nodes of one trial; operators above which residency is greedy.
_TRIAL_NODES, _GREEDY_OPERATORS = 200, 250


def weigh(graph: Graph, options: PlanOptions, latency_cycles: int = LATENCY_CYCLES) -> tuple[int, int] | None:
    """Return the avoidable words and the cycles of a graph in its listed order, without addresses.

    ``latency_cycles`` are those of a transfer to its first word. None when an operator does not fit.
    """
    problem = Problem(graph=graph, word_bytes=options.word_bytes)
    if diagnose(problem, options) is not None:
        return None
    order = range(problem.operator_count)
    if problem.operator_count > _GREEDY_OPERATORS:
        residency = keep_greedily(problem, order, options.capacity, streaming=options.streams)
    else:
        residency = solve_residency(
            problem,
            order,
            options.capacity,
            streaming=options.streams,
            minimise=("bytes",),
            node_limit=_TRIAL_NODES,
            time_limit_s=options.time_limit_s,
        )
    cycles = least_step_cycles(problem, order, options.macs_per_cycle)
    moves = latest_moves(problem, order, residency)
    return residency.avoidable_words, simulate(moves, cycles, latency_cycles).total


def improve(
    graph: Graph, options: PlanOptions, *, latency_cycles: int = LATENCY_CYCLES, most_members: int = 2
) -> Graph:
    """Group neighbours where that saves bytes or, at equal bytes, cycles; the same graph when no group pays.

    Disjoint pairs are tried at once, chosen by falling size of the tensor between.  If they do not pay
    together, each half is tried, and so on down to single pairs.

    ``graph``: its operators in execution order. ``latency_cycles``: as for `weigh`. ``most_members``: most
    operators of a group: the number of the hardware's cores.
    """
    search = _GroupSearch(graph, options, latency_cycles)
    while not current().stopped and search.improve(most_members):
        pass
    return search.graph


class _GroupSearch:
    """The best graph so far, and the pairs left to try."""

    def __init__(self, graph: Graph, options: PlanOptions, latency_cycles: int) -> None:
        self.graph = graph
        self._options, self._latency_cycles = options, latency_cycles
        trials = min(MOST_TRIALS, _WORK // len(graph.operators))
        self._most = self._trials = trials * options.effort
        self._weight = weigh(graph, options, latency_cycles)
        self._refused: set[tuple[str, str]] = set()

    def improve(self, most_members: int) -> bool:
        """Try the pairs that were not rejected yet; return whether a group was made."""
        pairs = [
            pair for pair in candidates(self.graph, most_members=most_members) if pair not in self._refused
        ]
        producer = {operator.name: operator for operator in self.graph.operators}
        sizes = {pair: self.graph.tensor[producer[pair[0]].outputs[0]].size_bytes for pair in pairs}
        taken: set[str] = set()
        chosen = []
        for pair in sorted(pairs, key=lambda pair: -sizes[pair]):
            if not taken.intersection(pair):
                taken.update(pair)
                chosen.append(pair)
        return bool(chosen) and self._try(chosen)

    def _try(self, pairs: list[tuple[str, str]]) -> bool:
        """Make groups of pairs, or of some of them."""
        if not self._trials or current().stopped:
            return False
        self._trials -= 1
        current().detail(f"{self._most - self._trials} of at most {self._most} trials")
        grouped = group(self.graph, *pairs, word_bytes=self._options.word_bytes)
        weight = weigh(grouped, self._options, self._latency_cycles)
        if weight is not None and (self._weight is None or weight < self._weight):
            self.graph, self._weight = grouped, weight
            return True
        if len(pairs) == 1:
            self._refused.update(pairs)
            return False
        half = len(pairs) // 2
        found = [self._try(part) for part in (pairs[:half], pairs[half:])]
        return any(found)
