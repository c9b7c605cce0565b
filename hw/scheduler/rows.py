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
from hw.scheduler.graph import Access, Graph, Operator, Tensor, TensorKind, stored_bytes


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


def extent(graph: Graph, name: str, axes: Mapping[str, int]) -> int:
    """Give the rows of a tensor that can be cut."""
    return graph.tensor[name].shape[axes[name]]


def split(graph: Graph, bands_of: Mapping[str, int]) -> Graph:
    """Cut tensors, and the operators that write them, into bands.

    Parameters
    ----------
    graph : Graph
    bands_of : mapping of str to int
        Bands of each tensor that is cut; all outputs of an operator need the same number. Bands differ by at
        most one row, except where a band nobody would read is joined with its neighbour.

    Returns
    -------
    Graph
        With the operators in the order of `depth_first`. Each band of an operator reads all parameters that
        are no tensors (``weight_bytes``) again.

    Raises
    ------
    InputError
        For a tensor that is unknown, cannot be cut, has fewer rows than bands, or is a band already.
    """
    cuts = _cuts(graph, bands_of)
    operators = [_bands_of(graph, operator, cuts) for operator in graph.operators]
    return Graph(
        name=graph.name,
        tensors=tuple(
            band for tensor in graph.tensors for band in _tensor_bands(tensor, cuts.get(tensor.name))
        ),
        operators=depth_first(operators),
        made_by=graph.made_by,
    )


def _cuts(graph: Graph, bands_of: Mapping[str, int]) -> dict[str, Cut]:
    axes = row_axes(graph)
    cuts = {}
    for name, bands in bands_of.items():
        if name not in graph.tensor:
            raise InputError("tensor to cut", name, "one of the graph")
        if name not in axes or graph.tensor[name].origin:
            raise InputError(f"bands of tensor {name!r}", bands, "1: no operator says which rows it needs")
        rows = extent(graph, name, axes)
        if not 1 <= bands <= rows:
            raise InputError(f"bands of tensor {name!r}", bands, f"from 1 to {rows}, its rows")
        bounds = tuple(band * rows // bands for band in range(bands + 1))
        cuts[name] = Cut(axis=axes[name], bounds=bounds)
    for operator in graph.operators:
        counts = {bands_of.get(name, 1) for name in operator.outputs}
        if len(counts) > 1:
            raise InputError(f"bands of the outputs of {operator.name!r}", sorted(counts), "equal")
    while True:
        useless = _unread(graph, cuts)
        if not useless:
            return {name: cut for name, cut in cuts.items() if cut.bands > 1}
        for name, band in useless.items():
            # Outputs of one operator stay cut alike.
            together = graph.producer[name].outputs if name in graph.producer else (name,)
            for other in together:
                bounds = cuts[other].bounds
                joined = band + 1 if band + 1 < cuts[other].bands else band
                cuts[other] = replace(cuts[other], bounds=(*bounds[:joined], *bounds[joined + 1 :]))


def _unread(graph: Graph, cuts: Mapping[str, Cut]) -> dict[str, int]:
    """Find a band that nobody reads, at most one of each operator's outputs."""
    read: dict[str, set[int]] = {name: set() for name in cuts}
    for operator in graph.operators:
        for band in range(_operator_bands(operator, cuts)):
            for name in operator.inputs:
                if name in cuts:
                    read[name].update(_needed(graph, operator, cuts, band, name))
    found: dict[str, int] = {}
    for name, bands in read.items():
        missing = [band for band in range(cuts[name].bands) if band not in bands]
        together = graph.producer[name].outputs if name in graph.producer else (name,)
        is_output = graph.tensor[name].kind is TensorKind.OUTPUT
        if (
            missing
            and cuts[name].bands > 1
            and not is_output
            and not any(other in found for other in together)
        ):
            found[name] = missing[0]
    return found


def _operator_bands(operator: Operator, cuts: Mapping[str, Cut]) -> int:
    cut = cuts.get(operator.outputs[0])
    return cut.bands if cut else 1


def _made_rows(
    graph: Graph, operator: Operator, cuts: Mapping[str, Cut], band: int, axis: int
) -> tuple[int, int]:
    """Give the output rows, counted along a dimension, that a band of an operator makes."""
    cut = cuts.get(operator.outputs[0])
    if cut is not None and cut.axis == axis:
        return cut.bounds[band], cut.bounds[band + 1]
    shape = graph.tensor[operator.outputs[0]].shape
    return 0, shape[axis]


def _needed(graph: Graph, operator: Operator, cuts: Mapping[str, Cut], band: int, name: str) -> range:
    """Give the bands of an input that a band of an operator needs."""
    cut, access = cuts[name], operator.accesses.get(name)
    made = graph.tensor[operator.outputs[0]].shape
    if access is None or access.axis != cut.axis or access.output_axis >= len(made):
        return range(cut.bands)
    rows = _made_rows(graph, operator, cuts, band, access.output_axis)
    return cut.holding(*access.rows(*rows, cut.bounds[-1]))


def _tensor_bands(tensor: Tensor, cut: Cut | None) -> list[Tensor]:
    if cut is None:
        return [tensor]
    bands = []
    for band, (first, last) in enumerate(itertools.pairwise(cut.bounds)):
        shape = (*tensor.shape[: cut.axis], last - first, *tensor.shape[cut.axis + 1 :])
        size = stored_bytes(shape, tensor.element_bits)
        name = band_name(tensor.name, band)
        bands.append(replace(tensor, name=name, shape=shape, size_bytes=size, origin=tensor.name))
    return bands


def _bands_of(graph: Graph, operator: Operator, cuts: Mapping[str, Cut]) -> list[Operator]:
    """Cut an operator as its outputs are cut."""
    bands = _operator_bands(operator, cuts)
    found = []
    for band in range(bands):
        inputs: list[str] = []
        accesses: dict[str, Access] = {}
        for name in operator.inputs:
            cut, access = cuts.get(name), operator.accesses.get(name)
            for piece in [-1] if cut is None else _needed(graph, operator, cuts, band, name):
                piece_name = name if cut is None else band_name(name, piece)
                inputs.append(piece_name)
                if access is not None and access.output_axis < len(graph.tensor[operator.outputs[0]].shape):
                    first, _ = _made_rows(graph, operator, cuts, band, access.output_axis)
                    begin = cut.bounds[piece] if cut is not None and cut.axis == access.axis else 0
                    accesses[piece_name] = _moved(access, first, begin)
        cut = cuts.get(operator.outputs[0])
        first, last = (cut.bounds[band], cut.bounds[band + 1]) if cut else (0, 1)
        rows = cut.bounds[-1] if cut else 1
        found.append(
            replace(
                operator,
                name=band_name(operator.name, band) if cut else operator.name,
                inputs=tuple(inputs),
                outputs=tuple(band_name(name, band) if name in cuts else name for name in operator.outputs),
                # Rounded so that the bands add up to the whole.
                macs=operator.macs * last // rows - operator.macs * first // rows,
                accesses=accesses,
            )
        )
    return found


def _moved(access: Access, first: int, begin: int) -> Access:
    """Count an access's rows from output row ``first`` and input row ``begin`` on.

    Where a row of the input makes several of the output, the whole is not a sum of rounded parts: one row
    more is named then.
    """
    shift, rest = divmod(first * access.stride, access.up)
    return replace(access, pad=access.pad + begin - shift, kernel=access.kernel + (rest > 0))


def depth_first(groups: Sequence[Sequence[Operator]]) -> tuple[Operator, ...]:
    """Order the bands of operators so that few rows are alive.

    Operators that are not cut keep their order; everything else runs as late as it can, one band after the
    other: when a band that is needed now needs it.

    Parameters
    ----------
    groups : sequence of sequence of Operator
        The bands of each operator, or just the operator, producers first.
    """
    producer = {name: band for bands in groups for band in bands for name in band.outputs}
    done: dict[str, Operator] = {}
    read = {name for bands in groups for band in bands for name in band.inputs}
    roots = [bands[0] for bands in groups if len(bands) == 1]
    roots += [band for bands in groups for band in bands if not read.intersection(band.outputs)]
    for root in roots:
        stack = [(root, iter(root.inputs))]
        while stack:
            operator, left = stack[-1]
            if operator.name in done:
                stack.pop()
                continue
            missing = next(
                (producer[name] for name in left if name in producer and producer[name].name not in done),
                None,
            )
            if missing is None:
                done[operator.name] = operator
                stack.pop()
            else:
                stack.append((missing, iter(missing.inputs)))
    return tuple(done.values())
