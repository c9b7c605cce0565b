"""Rules of the model: the plan's graph, with groups and bands merged again, is the model's.

A tensor with an ``origin`` is a band of that tensor of the model. Its name is the origin's, ``#`` and a
number; its rows follow those of the bands with lower numbers. An operator that writes bands is a band of the
operator that writes their origins.
"""

from collections import defaultdict
from collections.abc import Iterator

from hw.scheduler.check.form import MOST_ROWS, Graph, Operator, Plan, Rows, Tensor


def model_problems(plan: Plan, model: Graph) -> Iterator[str]:
    """Compare the graph of a plan with its model; operators only when the tensors agree."""
    whole = _Whole(plan.graph, model)
    problems = list(whole.tensor_problems())
    yield from problems or whole.operator_problems()


class _Whole:
    """The graph of a plan with its groups expanded, and its model."""

    def __init__(self, graph: Graph, model: Graph) -> None:
        self._operators = [member for group in graph.operators for member in group.members or [group]]
        self._tensor = {tensor.name: tensor for tensor in graph.tensors}
        self._tensor |= {tensor.name: tensor for group in graph.operators for tensor in group.inner}
        self._model = {tensor.name: tensor for tensor in model.tensors}
        self._makers = {name: operator for operator in model.operators for name in operator.outputs}
        self._bands: dict[str, list[Tensor]] = defaultdict(list)
        for tensor in self._tensor.values():
            self._bands[tensor.origin or tensor.name].append(tensor)
        #: Dimension along which each tensor of the model is cut, and the rows of each band.
        self._axis: dict[str, int] = {}
        self._rows: dict[str, Rows] = {}

    def tensor_problems(self) -> Iterator[str]:
        """Find tensors that the model does not have, and bands that do not add up to one of its tensors."""
        for name in sorted(self._bands.keys() - self._model.keys()):
            yield f"tensor {name!r} is none of the model's"
        for name, tensor in self._model.items():
            bands = self._bands[name]
            by_name = {band.name: band for band in bands if band.origin}
            if by_name:
                numbered = [f"{name}#{number}" for number in range(len(bands))]
                if by_name.keys() != set(numbered):
                    yield f"tensor {name!r} has bands {sorted(by_name)}, not numbered from 0 on"
                    continue
                bands = self._bands[name] = [by_name[each] for each in numbered]
            for band in bands:
                for key in ("kind", "element_bits"):
                    found, right = getattr(band, key), getattr(tensor, key)
                    if found != right:
                        yield f"tensor {band.name!r} has {key} {found}, the model's {right}"
            if not tensor.shape:
                if [(band.size_bytes, band.shape) for band in bands] != [(tensor.size_bytes, [])]:
                    yield f"tensor {name!r} has not the model's {tensor.size_bytes} bytes"
                continue
            axis = _cut_axis(tensor, bands)
            if axis is None:
                yield f"tensor {name!r} has not the model's shape {tensor.shape}, nor have its bands together"
                continue
            self._axis[name], first = axis, 0
            for band in bands:
                self._rows[band.name] = first, first + band.shape[axis]
                first += band.shape[axis]

    def operator_problems(self) -> Iterator[str]:
        """Find operators that are neither an operator of the model nor a band of one."""
        bands: dict[str, list[Operator]] = defaultdict(list)
        for operator in self._operators:
            where, origins = f"operator {operator.name!r}", self._origins(operator.outputs)
            right = self._makers.get(min(origins))
            if right is None or origins != set(right.outputs):
                yield f"{where} makes {sorted(origins)}, as no operator of the model does"
                continue
            made = {self._rows[name] for name in operator.outputs if self._tensor[name].origin}
            if len(origins) != len(operator.outputs) or len(made) > 1:
                yield f"{where} makes other rows of one output than of another"
            output = self._tensor[operator.outputs[0]]
            if operator.name != (name := right.name + output.name.removeprefix(output.origin or output.name)):
                yield f"{where} makes what {name!r} does"
            for key in ("kind", "weight_bytes", "fused"):
                if getattr(operator, key) != getattr(right, key):
                    yield f"{where} has {key} {getattr(operator, key)}, the model's {getattr(right, key)}"
            if self._origins(operator.inputs) != set(right.inputs):
                yield f"{where} reads {sorted(self._origins(operator.inputs))}, the model's {right.inputs}"
            else:
                yield from (f"{where} {problem}" for problem in self._row_problems(operator, right))
            bands[right.outputs[0]].append(operator)
            share, of = self._share(operator.outputs[0])
            for key in ("macs", "least_cycles"):
                found, whole = getattr(operator, key), getattr(right, key)
                if not -of < found * of - whole * share < of:
                    yield f"{where} has {found} {key}, {share} of {of} rows of the model's {whole}"
        for name, operators in bands.items():
            for key in ("macs", "least_cycles"):
                total, whole = sum(getattr(each, key) for each in operators), getattr(self._makers[name], key)
                if total != whole:
                    yield f"bands of {name!r} have {total} {key}, the model's {whole}"

    def _origins(self, names: list[str]) -> set[str]:
        return {self._tensor[name].origin or name for name in names}

    def _share(self, name: str) -> tuple[int, int]:
        """Return the number of rows of a band and of its whole."""
        origin = self._tensor[name].origin or name
        if name not in self._rows:
            return 1, 1
        first, last = self._rows[name]
        return last - first, self._model[origin].shape[self._axis[origin]]

    def _row_problems(self, operator: Operator, right: Operator) -> Iterator[str]:
        """Find input rows that an operator needs by the model, but does not read or name in an access."""
        output = self._tensor[operator.outputs[0]]
        for name, named in operator.accesses.items():
            model = right.accesses.get(self._tensor[name].origin or name)
            if model is None or (model.axis, model.output_axis) != (named.axis, named.output_axis):
                yield f"reads {name!r} by rows, where the model's does not"
        for origin in right.inputs:
            access = right.accesses.get(origin)
            by_rows = access is not None and access.output_axis < len(output.shape)
            made = self._made(output, access.output_axis) if access and by_rows else (0, 0)
            for band in self._bands[origin]:
                held = self._made(band, access.axis) if access and access.axis < len(band.shape) else None
                if access is None or not by_rows or held is None:
                    if band.name not in operator.inputs:
                        yield f"does not read {band.name!r}, of which it needs all"
                    continue
                extent = self._model[origin].shape[access.axis]
                if band.name not in operator.inputs:
                    if _common(access.rows(made, extent), held):
                        yield f"does not read {band.name!r}, of which it needs rows"
                    continue
                by = operator.accesses.get(band.name)
                for row in range(made[0], min(made[1], made[0] + MOST_ROWS)) if by else ():
                    assert by is not None
                    needed = _common(access.rows((row, row + 1), extent), held)
                    first, last = by.rows((row - made[0], row - made[0] + 1), held[1] - held[0])
                    if needed and not first + held[0] <= needed[0] < needed[1] <= last + held[0]:
                        yield f"names too few rows of {band.name!r} for row {row}: it needs {needed}"
                        break

    def _made(self, tensor: Tensor, axis: int) -> Rows:
        """Return the rows of a tensor within its whole, along a dimension."""
        if self._axis.get(tensor.origin or tensor.name) == axis:
            return self._rows[tensor.name]
        return 0, tensor.shape[axis]


def _cut_axis(tensor: Tensor, bands: list[Tensor]) -> int | None:
    """Return a dimension along which bands, or one whole, concatenate to a tensor; None without one."""
    for axis, extent in enumerate(tensor.shape):
        others = {(*band.shape[:axis], 0, *band.shape[axis + 1 :]) for band in bands}
        if others == {(*tensor.shape[:axis], 0, *tensor.shape[axis + 1 :])} and extent == sum(
            band.shape[axis] for band in bands
        ):
            return axis
    return None


def _common(one: Rows, other: Rows) -> Rows | None:
    """Return the intersection of two ranges of rows; None when it is empty."""
    first, last = max(one[0], other[0]), min(one[1], other[1])
    return (first, last) if first < last else None
