"""Search for the number of bands of each tensor: candidates, then refinement of the best."""

import itertools
import math
from collections.abc import Iterator, Mapping

from hw.scheduler.graph.bands import Cutter
from hw.scheduler.graph.graph import Graph
from hw.scheduler.plan.options import PlanOptions
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.evaluate import IMPOSSIBLE, avoidable_words
from hw.scheduler.planner.watch import current

#: Largest band, as parts of the scratchpad: a three-row kernel reads three bands and writes one.
_PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
#: Operators with more parameters than this multiple of their output stay whole in one kind of candidate.
_PARAMETER_SHARES = (None, 4.0, 1.0, 0.25)
#: Most operators of a cut graph that the later stages plan in reasonable time.
MAX_OPERATORS = 3000
#: Operators of all graphs that refinement tries, at effort 1.
_WORK = 100_000
#: Cuts still tried, the finest first, if the time ends before one is possible.
_LAST = 4
#: Neighbouring operators whose cuts are changed together.
_TOGETHER = (8, 4, 2, 1)


def tile(graph: Graph, options: PlanOptions, *, needed: bool = True) -> Graph | None:
    """Cut a graph into bands so that little traffic is left in a scratchpad; None if no cut fits.

    First every tensor above a certain size is cut into bands of at most that size, for many sizes.  The best
    of these cuts is refined: the bands of some tensors are doubled, halved or joined while that helps.  The
    best cut moves the fewest words by `avoidable_words`, repeated parameter reads included, then has the
    fewest operators.  If the run is asked to end, a fine cut is still tried if some cut is ``needed``.
    """
    search = _BandSearch(graph, options)
    watch = current()
    for bands in candidates(graph, search.cutter.rows, options):
        if watch.stopped:
            break
        search.consider(bands)
    if needed and not search.bands and watch.stopped:
        # The time ended before a possible cut was found: a fine one is the most likely.
        finest = [*candidates(graph, search.cutter.rows, options)][::-1]
        for bands in finest[:_LAST]:
            if search.consider(bands):
                break
    if search.bands and options.techniques.band_refinement:
        search.refine()
    return search.chosen


class _BandSearch:
    """The best cut so far."""

    def __init__(self, graph: Graph, options: PlanOptions) -> None:
        self.cutter = Cutter(graph)
        self.bands: Mapping[str, int] = {}
        self.chosen: Graph | None = None
        self._graph, self._options = graph, options
        self._weight = (math.inf, math.inf)
        self._work = _WORK * options.effort
        self._made = len(graph.operators)
        self._first_outputs = frozenset(operator.outputs[0] for operator in graph.operators)

    def consider(self, bands: Mapping[str, int]) -> bool:
        """Take a cut if it is better; return whether it is."""
        repeated = repeated_words(self._graph, bands, self._options.word_bytes)
        if repeated > self._weight[0]:
            return False
        cut = self.cutter.split(bands)
        problem = Problem(graph=cut, word_bytes=self._options.word_bytes)
        self._work -= problem.operator_count
        order = range(problem.operator_count)
        words = avoidable_words(problem, order, self._options.capacity, streaming=self._options.streams)
        # Bands are rounded up to words, so compulsory words differ between cuts.
        weight = (words + repeated + problem.compulsory, problem.operator_count)
        if words < IMPOSSIBLE and weight < self._weight:
            self._weight, self.bands, self.chosen = weight, bands, cut
            self._made = bands_made(self._graph, bands)
            return True
        return False

    def refine(self) -> None:
        """Change the bands of neighbours, and of all tensors with equally many rows, while that helps."""
        self._work = _WORK * self._options.effort
        sets = self._sets()
        better = True
        while better:
            better = False
            for names, factor in itertools.product(sets, (2.0, 0.5, 0.0)):
                if self._work <= 0 or current().stopped:
                    return
                changed = {}
                for name in names:
                    rows, now = self.cutter.rows[name], self.bands.get(name, 1)
                    count = _even(rows, min(rows, max(1, int(now * factor))))
                    if count != now:
                        changed[name] = count
                if not changed:
                    continue
                # Counted incrementally: there are at least as many sets as operators.
                more = sum(
                    count - self.bands.get(name, 1)
                    for name, count in changed.items()
                    if name in self._first_outputs
                )
                if self._made + more > MAX_OPERATORS:
                    continue
                bands = {name: count for name, count in {**self.bands, **changed}.items() if count > 1}
                if bands:
                    better |= self.consider(bands)

    def _sets(self) -> list[tuple[str, ...]]:
        """Return sets of tensors whose bands change together; each has all outputs of its operators."""
        rows = self.cutter.rows
        outputs = [each.outputs for each in self._graph.operators if each.outputs[0] in rows]
        levels: dict[int, list[str]] = {}
        for names in outputs:
            levels.setdefault(rows[names[0]], []).extend(names)
        sets = [tuple(names) for names in levels.values()]
        for count in _TOGETHER:
            for first in range(0, len(outputs) - count + 1, max(1, count // 2)):
                sets.append(tuple(name for names in outputs[first : first + count] for name in names))
        sets += [
            (tensor.name,) for tensor in self._graph.tensors if tensor.off_chip_first and tensor.name in rows
        ]
        return list(dict.fromkeys(sets))


def candidates(graph: Graph, rows: Mapping[str, int], options: PlanOptions) -> Iterator[Mapping[str, int]]:
    """Yield cuts, coarse ones first: the number of bands of each cut tensor, by name.

    For each size the tensors that some operator needs whole are cut or not, and so are those whose operator
    has many parameters.  The ``rows`` are those of each tensor that can be cut.
    """
    wholly_read = frozenset(
        name for operator in graph.operators for name in operator.inputs if name not in operator.accesses
    )
    seen: set[tuple[tuple[str, int], ...]] = set()
    for parts in _PARTS:
        limit_bytes = max(options.word_bytes, options.scratchpad_bytes // parts)
        for share, spared in itertools.product(_PARAMETER_SHARES, (frozenset[str](), wholly_read)):
            bands = _bands(graph, rows, limit_bytes, spared | _heavy(graph, share))
            key = tuple(bands.items())
            if bands and key not in seen and bands_made(graph, bands) <= MAX_OPERATORS:
                seen.add(key)
                yield bands


def bands_made(graph: Graph, bands_of: Mapping[str, int]) -> int:
    """Return the number of operators of a cut graph."""
    return sum(bands_of.get(operator.outputs[0], 1) for operator in graph.operators)


def _heavy(graph: Graph, share: float | None) -> frozenset[str]:
    """Return the outputs of operators with more parameters than a multiple of their output."""
    return frozenset(
        name
        for operator in graph.operators
        for name in operator.outputs
        if share is not None and operator.weight_bytes > share * graph.tensor[name].size_bytes
    )


def repeated_words(graph: Graph, bands_of: Mapping[str, int], word_bytes: int) -> int:
    """Return the words of repeated parameter reads: every band of an operator reads all of its parameters."""
    return sum(
        -(-operator.weight_bytes // word_bytes) * (bands_of.get(operator.outputs[0], 1) - 1)
        for operator in graph.operators
    )


def _bands(graph: Graph, rows: Mapping[str, int], limit_bytes: int, spared: frozenset[str]) -> dict[str, int]:
    """Return numbers of bands so that no band exceeds a size, unless it is a single row."""
    largest = {tensor.name: tensor.size_bytes for tensor in graph.tensors}
    for operator in graph.operators:
        # An operator that reads a large tensor by rows is cut as finely, however small its output.
        read = max((graph.tensor[name].size_bytes for name in operator.accesses), default=0)
        for name in operator.outputs:
            largest[name] = max(largest[name], read)
    found: dict[str, int] = {}
    for name, size in largest.items():
        if name in rows and name not in spared and size > limit_bytes:
            found[name] = _even(rows[name], min(rows[name], -(-size // limit_bytes)))
    for operator in graph.operators:
        most = max(found.get(name, 1) for name in operator.outputs)
        if any(name in spared for name in operator.outputs):
            most = 1
        found.update(dict.fromkeys(operator.outputs, most))
    return {name: bands for name, bands in found.items() if bands > 1}


def _even(rows: int, bands: int) -> int:
    """Round a number of bands up to a divisor of the rows, if that is at most half more.

    Bands of neighbouring tensors then begin in the same rows.
    """
    for more in range(bands, min(rows, bands + bands // 2) + 1):
        if rows % more == 0:
            return more
    return bands
