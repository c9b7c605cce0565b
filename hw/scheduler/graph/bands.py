"""Operators and tensors cut into bands of rows, so that an operator that does not fit runs piece by piece.

A band of a tensor is a tensor of whole rows with ``origin``; a band of an operator makes one band of its
outputs and reads the bands of its inputs that hold a row it needs (`Access`).  Neighbouring bands share the
rows a kernel reaches over (the halo) by reading the same band: nothing is computed twice.
"""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hw.errors import InputError
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind, depth_first, stored_bytes


@dataclass(frozen=True, kw_only=True)
class Cut:
    """How a tensor is cut: along which dimension, and the first row of each band, then the end."""

    axis: int
    bounds: tuple[int, ...]

    @property
    def bands(self) -> int:
        """Number of bands."""
        return len(self.bounds) - 1

    def holding(self, first: int, last: int) -> range:
        """Give the bands that hold the rows ``first`` to ``last`` (excluded)."""
        begin = bisect.bisect_right(self.bounds, first) - 1
        return range(begin, bisect.bisect_left(self.bounds, last, begin + 1))


def band_name(name: str, band: int) -> str:
    """Give the name of a band of a tensor or an operator."""
    return f"{name}#{band}"


def row_axes(graph: Graph) -> dict[str, int]:
    """Give the dimension along which each tensor can be cut, by name; tensors that cannot be are left out.

    A tensor that an operator writes can be cut along a dimension of which the operator makes one row after
    the other, as one of its accesses says; one that lies off chip first, along the rows an operator reads.
    Where there is a choice, the one that suits most readers is taken, then the one listed first.
    """
    found: dict[str, int] = {}
    for operator in graph.operators:
        axes = _output_axes(graph, operator)
        if axes:
            votes = Counter(_read_axes(graph, operator.outputs))
            found.update(dict.fromkeys(operator.outputs, max(axes, key=lambda axis: votes[axis])))
    for tensor in graph.tensors:
        if tensor.off_chip_first:
            votes = Counter(axis for axis in _read_axes(graph, (tensor.name,)) if axis < len(tensor.shape))
            if votes:
                found[tensor.name] = votes.most_common(1)[0][0]
    return found


def _output_axes(graph: Graph, operator: Operator) -> tuple[int, ...]:
    """Give the dimensions along which all outputs of an operator can be made row by row, as listed."""
    if operator.members:
        return ()
    shapes = [graph.tensor[name].shape for name in operator.outputs]
    axes = dict.fromkeys(access.output_axis for access in operator.accesses.values())
    return tuple(
        axis
        for axis in axes
        if all(axis < len(shape) for shape in shapes) and len({shape[axis] for shape in shapes}) == 1
    )


def _read_axes(graph: Graph, names: Iterable[str]) -> list[int]:
    return [
        reader.accesses[name].axis
        for name in names
        for reader in graph.consumers[name]
        if name in reader.accesses
    ]


def split(graph: Graph, bands_of: Mapping[str, int]) -> Graph:
    """Cut tensors, and the operators that write them, into bands: see `Cutter.split`."""
    return Cutter(graph).split(bands_of)


@dataclass(frozen=True, kw_only=True)
class _Bands:
    """An operator cut in one way: its bands, and for each input that is cut the bands each of them reads."""

    operators: tuple[Operator, ...]
    reads: Mapping[str, tuple[range, ...]]


class Cutter:
    """Cuts one graph in many ways; what two ways have in common is made once.

    Parameters
    ----------
    graph : Graph

    Members
    -------
    rows : mapping of str to int
        Rows of each tensor that can be cut.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._axes = row_axes(graph)
        self.rows = {name: graph.tensor[name].shape[axis] for name, axis in self._axes.items()}
        self._operators: dict[tuple[str, tuple[Cut | None, ...]], _Bands] = {}
        self._tensors: dict[tuple[str, Cut | None], tuple[Tensor, ...]] = {}

    def split(self, bands_of: Mapping[str, int]) -> Graph:
        """Cut the graph.

        Parameters
        ----------
        bands_of : mapping of str to int
            Bands of each tensor that is cut; all outputs of an operator need the same number. Bands differ by
            at most one row, except where a band nobody would read is joined with its neighbour.

        Returns
        -------
        Graph
            With the operators in an order that keeps few rows alive. Each band of an operator reads all
            parameters that are no tensors (``weight_bytes``) again.

        Raises
        ------
        InputError
            For a tensor that is unknown, cannot be cut, has fewer rows than bands, or is a band already.
        """
        graph = self._graph
        cuts = self._cuts(bands_of)
        tensors = [band for tensor in graph.tensors for band in self._tensor(tensor, cuts.get(tensor.name))]
        operators = [self._operator(operator, cuts).operators for operator in graph.operators]
        return replace(graph, tensors=tuple(tensors), operators=_ordered(operators))

    def _cuts(self, bands_of: Mapping[str, int]) -> dict[str, Cut]:
        graph, cuts = self._graph, {}
        for name, bands in bands_of.items():
            if name not in graph.tensor:
                raise InputError("tensor to cut", name, "one of the graph")
            if name not in self.rows or graph.tensor[name].origin:
                legal = "1: no operator says which rows it needs"
                raise InputError(f"bands of tensor {name!r}", bands, legal)
            rows = self.rows[name]
            if not 1 <= bands <= rows:
                raise InputError(f"bands of tensor {name!r}", bands, f"from 1 to {rows}, its rows")
            bounds = tuple(band * rows // bands for band in range(bands + 1))
            cuts[name] = Cut(axis=self._axes[name], bounds=bounds)
        for operator in graph.operators:
            counts = {bands_of.get(name, 1) for name in operator.outputs}
            if len(counts) > 1:
                raise InputError(f"bands of the outputs of {operator.name!r}", sorted(counts), "equal")
        cuts = {name: cut for name, cut in cuts.items() if cut.bands > 1}
        while True:
            useless = self._unread(cuts)
            if not useless:
                return cuts
            for name, band in useless.items():
                # Outputs of one operator stay cut alike.
                for other in self._together(name):
                    bounds = cuts[other].bounds
                    joined = band + 1 if band + 1 < cuts[other].bands else band
                    cuts[other] = replace(cuts[other], bounds=(*bounds[:joined], *bounds[joined + 1 :]))
            cuts = {name: cut for name, cut in cuts.items() if cut.bands > 1}

    def _together(self, name: str) -> tuple[str, ...]:
        producer = self._graph.producer.get(name)
        return producer.outputs if producer else (name,)

    def _unread(self, cuts: Mapping[str, Cut]) -> dict[str, int]:
        """Find a band that nobody reads, at most one of each operator's outputs."""
        read: dict[str, set[int]] = {name: set() for name in cuts}
        for operator in self._graph.operators:
            for name, bands in self._operator(operator, cuts).reads.items():
                read[name].update(*bands)
        found: dict[str, int] = {}
        for name, useful in read.items():
            missing = [band for band in range(cuts[name].bands) if band not in useful]
            is_output = self._graph.tensor[name].kind is TensorKind.OUTPUT
            if missing and not is_output and not any(other in found for other in self._together(name)):
                found[name] = missing[0]
        return found

    def _tensor(self, tensor: Tensor, cut: Cut | None) -> tuple[Tensor, ...]:
        if cut is None:
            return (tensor,)
        key = (tensor.name, cut)
        if key not in self._tensors:
            bands = []
            for band, (first, last) in enumerate(itertools.pairwise(cut.bounds)):
                shape = (*tensor.shape[: cut.axis], last - first, *tensor.shape[cut.axis + 1 :])
                size = stored_bytes(shape, tensor.element_bits)
                name = band_name(tensor.name, band)
                bands.append(replace(tensor, name=name, shape=shape, size_bytes=size, origin=tensor.name))
            self._tensors[key] = tuple(bands)
        return self._tensors[key]

    def _operator(self, operator: Operator, cuts: Mapping[str, Cut]) -> _Bands:
        key = (operator.name, tuple(cuts.get(name) for name in (*operator.inputs, operator.outputs[0])))
        if key not in self._operators:
            self._operators[key] = _cut_operator(self._graph, operator, cuts)
        return self._operators[key]


def _made_rows(
    graph: Graph, operator: Operator, cuts: Mapping[str, Cut], band: int, axis: int
) -> tuple[int, int]:
    """Give the output rows, counted along a dimension, that a band of an operator makes."""
    cut = cuts.get(operator.outputs[0])
    if cut is not None and cut.axis == axis:
        return cut.bounds[band], cut.bounds[band + 1]
    return 0, graph.tensor[operator.outputs[0]].shape[axis]


def _needed(graph: Graph, operator: Operator, cuts: Mapping[str, Cut], band: int, name: str) -> range:
    """Give the bands of an input that a band of an operator needs."""
    cut, access = cuts[name], operator.accesses.get(name)
    made = graph.tensor[operator.outputs[0]].shape
    if access is None or access.axis != cut.axis or access.output_axis >= len(made):
        return range(cut.bands)
    rows = _made_rows(graph, operator, cuts, band, access.output_axis)
    return cut.holding(*access.rows(*rows, cut.bounds[-1]))


def _cut_operator(graph: Graph, operator: Operator, cuts: Mapping[str, Cut]) -> _Bands:
    """Cut an operator as its outputs are cut."""
    cut = cuts.get(operator.outputs[0])
    bands = range(cut.bands if cut else 1)
    reads = {
        name: tuple(_needed(graph, operator, cuts, band, name) for band in bands)
        for name in operator.inputs
        if name in cuts
    }
    found = []
    for band in bands:
        inputs: list[str] = []
        accesses: dict[str, Access] = {}
        for name in operator.inputs:
            pieces = [band_name(name, piece) for piece in reads[name][band]] if name in reads else [name]
            inputs += pieces
            access = operator.accesses.get(name)
            if access is not None and access.output_axis < len(graph.tensor[operator.outputs[0]].shape):
                first, _ = _made_rows(graph, operator, cuts, band, access.output_axis)
                begins = [0] * len(pieces)
                if name in reads and cuts[name].axis == access.axis:
                    begins = [cuts[name].bounds[piece] for piece in reads[name][band]]
                moved = [_moved(access, first, begin) for begin in begins]
                accesses.update(zip(pieces, moved, strict=True))
        first, last, rows = (*cut.bounds[band : band + 2], cut.bounds[-1]) if cut else (0, 1, 1)
        found.append(
            replace(
                operator,
                name=band_name(operator.name, band) if cut else operator.name,
                inputs=tuple(inputs),
                outputs=tuple(band_name(name, band) for name in operator.outputs)
                if cut
                else operator.outputs,
                # Rounded so that the bands add up to the whole.
                macs=operator.macs * last // rows - operator.macs * first // rows,
                accesses=accesses,
            )
        )
    return _Bands(operators=tuple(found), reads=reads)


def _moved(access: Access, first: int, begin: int) -> Access:
    """Count an access's rows from output row ``first`` and input row ``begin`` on.

    Where a row of the input makes several of the output, the whole is not a sum of rounded parts: one row
    more is named then.
    """
    shift, rest = divmod(first * access.stride, access.up)
    return replace(access, pad=access.pad + begin - shift, kernel=access.kernel + (rest > 0))


def _ordered(groups: Sequence[Sequence[Operator]]) -> tuple[Operator, ...]:
    """Order the bands of operators, given producers first, so that few rows are alive.

    Operators that are not cut keep their order; a band runs just before the first that needs it.
    """
    producer = {name: band for bands in groups for band in bands for name in band.outputs}
    read = {name for bands in groups for band in bands for name in band.inputs}
    roots = [bands[0] for bands in groups if len(bands) == 1]
    roots += [band for bands in groups for band in bands if not read.intersection(band.outputs)]
    return depth_first(roots, producer)
