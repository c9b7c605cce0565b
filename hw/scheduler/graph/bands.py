"""Operators and tensors cut into bands of rows, so that an operator that does not fit runs band by band.

A band of a tensor is a tensor of whole rows with ``origin``.  A band of an operator makes one band of its
outputs and reads the bands of its inputs that hold a row it needs (`Access`).  Neighbouring bands share the
halo of a kernel by reading the same band: no row is computed twice.
"""

import bisect
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind, depth_first, stored_bytes


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A cut of a tensor: the dimension, and the first row of each band, then the end."""

    axis: int
    bounds: tuple[int, ...]

    @property
    def bands(self) -> int:
        """Number of bands."""
        return len(self.bounds) - 1

    def holding(self, first: int, last: int) -> range:
        """Return the bands that hold the rows ``first`` to ``last`` (excluded)."""
        begin = bisect.bisect_right(self.bounds, first) - 1
        return range(begin, bisect.bisect_left(self.bounds, last, begin + 1))


def band_name(name: str, band: int) -> str:
    """Return the name of a band of a tensor or an operator."""
    return f"{name}#{band}"


def row_axes(graph: Graph) -> dict[str, int]:
    """Return the dimension along which each tensor can be cut, by name; other tensors are left out.

    An operator's output can be cut along the output dimension of one of its accesses, a tensor off chip along
    the rows that an operator reads.  Of several dimensions the one of most readers is taken, then the one
    listed first.
    """
    found: dict[str, int] = {}
    for operator in graph.operators:
        shapes = [graph.tensor[name].shape for name in operator.outputs]
        axes = [
            axis
            for axis in dict.fromkeys(access.output_axis for access in operator.accesses.values())
            if all(axis < len(shape) and shape[axis] == shapes[0][axis] for shape in shapes)
        ]
        if axes and not operator.members:
            votes = Counter(_read_axes(graph, operator.outputs))
            found.update(dict.fromkeys(operator.outputs, max(axes, key=lambda axis: votes[axis])))
    for tensor in graph.tensors:
        axes = [axis for axis in _read_axes(graph, (tensor.name,)) if axis < len(tensor.shape)]
        if axes and tensor.off_chip_first:
            found[tensor.name] = Counter(axes).most_common(1)[0][0]
    return found


def _read_axes(graph: Graph, names: Iterable[str]) -> list[int]:
    readers = [(name, reader) for name in names for reader in graph.consumers[name]]
    return [reader.accesses[name].axis for name, reader in readers if name in reader.accesses]


@dataclass(frozen=True, kw_only=True)
class _Bands:
    """The bands of an operator, and the bands that are read of each cut input."""

    operators: tuple[Operator, ...]
    reads: Mapping[str, set[int]]


class Cutter:
    """Cuts one graph in many ways; parts common to several cuts are made once."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._axes = row_axes(graph)
        #: Rows of each tensor that can be cut.
        self.rows = {name: graph.tensor[name].shape[axis] for name, axis in self._axes.items()}
        self._cut_tensor = cache(_cut_tensor)
        self._cut_operator = cache(self._cut_operator_anew)

    def split(self, bands_of: Mapping[str, int]) -> Graph:
        """Cut tensors, and the operators that write them, into bands.

        ``bands_of`` has the number of bands of each tensor to cut, at most its ``rows``, and equal for all
        outputs of an operator.  Bands differ by at most one row, unless a band without readers is joined with
        its neighbour.  The operators' order keeps few rows live.  Each band of an operator reads all its
        parameters that are no tensors (``weight_bytes``) again.
        """
        cuts = self._cuts(bands_of)
        tensors = [
            band for tensor in self._graph.tensors for band in self._cut_tensor(tensor, cuts.get(tensor.name))
        ]
        operators = [bands.operators for bands in self._all(cuts)]
        return replace(self._graph, tensors=tuple(tensors), operators=_ordered(operators))

    def _cuts(self, bands_of: Mapping[str, int]) -> dict[str, Cut]:
        cuts = {}
        for name, bands in bands_of.items():
            bounds = tuple(band * self.rows[name] // bands for band in range(bands + 1))
            cuts[name] = Cut(axis=self._axes[name], bounds=bounds)
        while True:
            cuts = {name: cut for name, cut in cuts.items() if cut.bands > 1}
            joined = self._joined(cuts)
            if not joined:
                return cuts
            cuts |= joined

    def _together(self, name: str) -> tuple[str, ...]:
        producer = self._graph.producer.get(name)
        return producer.outputs if producer else (name,)

    def _joined(self, cuts: Mapping[str, Cut]) -> dict[str, Cut]:
        """Join bands without readers with their neighbours; return the changed cuts.

        All bands are joined at once, so that the readers of the joined band are computed once.
        """
        read: dict[str, set[int]] = {name: set() for name in cuts}
        for bands in self._all(cuts):
            for name, useful in bands.reads.items():
                read[name] |= useful
        found: dict[str, Cut] = {}
        for name in read:
            together = self._together(name)
            if name in found or self._graph.tensor[name].kind is TensorKind.OUTPUT:
                continue
            bounds, useful = [0], read[name]
            for band, end in enumerate(cuts[name].bounds[1:]):
                if band in useful:
                    bounds.append(end)
            bounds[-1] = cuts[name].bounds[-1]
            if len(bounds) <= cuts[name].bands:
                # Outputs of one operator stay cut alike.
                found |= {other: replace(cuts[other], bounds=tuple(bounds)) for other in together}
        return found

    def _all(self, cuts: Mapping[str, Cut]) -> list[_Bands]:
        return [
            self._cut_operator(number, tuple(map(cuts.get, (*operator.inputs, operator.outputs[0]))))
            for number, operator in enumerate(self._graph.operators)
        ]

    def _cut_operator_anew(self, number: int, cuts: tuple[Cut | None, ...]) -> _Bands:
        """Cut an operator like its outputs: ``cuts`` are those of its inputs and of its first output."""
        operator, cut = self._graph.operators[number], cuts[-1]
        made = self._graph.tensor[operator.outputs[0]].shape
        reads = {name: set[int]() for name, piece in zip(operator.inputs, cuts, strict=False) if piece}
        found = []
        for band in range(cut.bands if cut else 1):
            inputs: list[str] = []
            accesses: dict[str, Access] = {}
            for name, piece in zip(operator.inputs, cuts, strict=False):
                access, begins = operator.accesses.get(name), {name: 0}
                if access is not None and access.output_axis >= len(made):
                    access = None
                rows = (0, 0) if access is None else (0, made[access.output_axis])
                if access is not None and cut is not None and cut.axis == access.output_axis:
                    rows = cut.bounds[band], cut.bounds[band + 1]
                if piece is not None:
                    by_rows = access is not None and access.axis == piece.axis
                    needed = range(piece.bands)
                    if access is not None and by_rows:
                        needed = piece.holding(*access.rows(*rows, piece.bounds[-1]))
                    begins = {band_name(name, each): by_rows * piece.bounds[each] for each in needed}
                    reads[name].update(needed)
                inputs += begins
                if access is not None:
                    accesses |= {each: _shifted(access, rows[0], begin) for each, begin in begins.items()}
            if cut is None:
                found.append(replace(operator, inputs=tuple(inputs), accesses=accesses))
                continue
            first, last, all_rows = cut.bounds[band], cut.bounds[band + 1], cut.bounds[-1]
            found.append(
                replace(
                    operator,
                    name=band_name(operator.name, band),
                    inputs=tuple(inputs),
                    outputs=tuple(band_name(name, band) for name in operator.outputs),
                    # Rounded so that the bands' sums are exact.
                    macs=operator.macs * last // all_rows - operator.macs * first // all_rows,
                    least_cycles=operator.least_cycles * last // all_rows
                    - operator.least_cycles * first // all_rows,
                    accesses=accesses,
                )
            )
        return _Bands(operators=tuple(found), reads=reads)


def _cut_tensor(tensor: Tensor, cut: Cut | None) -> tuple[Tensor, ...]:
    if cut is None:
        return (tensor,)
    bands = []
    for band, (first, last) in enumerate(itertools.pairwise(cut.bounds)):
        shape = (*tensor.shape[: cut.axis], last - first, *tensor.shape[cut.axis + 1 :])
        size, name = stored_bytes(shape, tensor.element_bits), band_name(tensor.name, band)
        bands.append(replace(tensor, name=name, shape=shape, size_bytes=size, origin=tensor.name))
    return tuple(bands)


def _shifted(access: Access, first: int, begin: int) -> Access:
    """Count an access's rows from output row ``first`` and input row ``begin`` on.

    With upsampling (``up``) rounding may need one row more.
    """
    shift, rest = divmod(first * access.stride, access.up)
    return replace(access, pad=access.pad + begin - shift, kernel=access.kernel + (rest > 0))


def _ordered(groups: Sequence[Sequence[Operator]]) -> tuple[Operator, ...]:
    """Order the bands of operators, listed producers first, so that few rows are live.

    Whole operators keep their order; a band runs just before its first reader.
    """
    producer = {name: band for bands in groups for band in bands for name in band.outputs}
    read = {name for bands in groups for band in bands for name in band.inputs}
    roots = [bands[0] for bands in groups if len(bands) == 1]
    roots += [band for bands in groups for band in bands if not read.intersection(band.outputs)]
    return depth_first(roots, producer)
