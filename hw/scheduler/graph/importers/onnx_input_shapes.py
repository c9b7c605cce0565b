"""The user's values for a model's open dimensions and shapes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import onnx

from hw.errors import InputError, check_one_of, check_range
from hw.scheduler.graph.importers.rules.call import MAX_EXTENT, Shape

#: Extents of an input, None where one is open; None when not even their number is known.
Extents = list[int | None] | None


@dataclass(frozen=True, kw_only=True)
class InputShapes:
    """Values for open dimensions and shapes of a model's inputs.

    Raises `InputError` for a value that no dimension can have.
    """

    dimensions: Mapping[str, int]  #: By the name of a dimension.
    #: Whole shapes by the name of an input; they take precedence over ``dimensions``.
    shapes: Mapping[str, Shape]

    def __post_init__(self) -> None:
        values = {f"dimension {name}": value for name, value in self.dimensions.items()}
        for name, shape in self.shapes.items():
            values |= {
                f"dimension {index} of the shape given for {name}": each for index, each in enumerate(shape)
            }
        for field, value in values.items():
            check_range(field, value, 0, MAX_EXTENT)

    def check(self, inputs: Sequence[onnx.ValueInfoProto]) -> None:
        """Refuse names that are not inputs of the model, and shapes that contradict the model."""
        named = {each.dim_param for value in inputs for each in _dimensions(value)} - {""}
        if strange := [label for label in self.dimensions if label not in named]:
            legal = "one of " + ", ".join(sorted(named)) if named else "left out: the model leaves none open"
            raise InputError("dimension", strange[0], legal)
        known = {value.name: value for value in inputs}
        for name, shape in self.shapes.items():
            check_one_of("input of a shape", name, sorted(known))
            fixed = stated_extents(known[name].type, {})
            if fixed is not None and (
                len(fixed) != len(shape)
                or any(one is not None and one != two for one, two in zip(fixed, shape, strict=True))
            ):
                legal = f"{_pattern(known[name])}, as the model has it"
                raise InputError(f"shape of input {name!r}", ",".join(map(str, shape)), legal)

    def bound(self, inputs: Iterable[onnx.ValueInfoProto]) -> dict[str, int]:
        """Return the values of named dimensions, including those from shapes without a contradiction."""
        found: dict[str, set[int]] = {}
        for value in inputs:
            for dimension, extent in zip(_dimensions(value), self.shapes.get(value.name, ()), strict=False):
                found.setdefault(dimension.dim_param, set()).add(extent)
        single = {label: extents.pop() for label, extents in found.items() if label and len(extents) == 1}
        return single | dict(self.dimensions)

    def extents(self, value: onnx.ValueInfoProto, bound: Mapping[str, int]) -> Extents:
        """Return the extents of an input."""
        if value.name in self.shapes:
            return list(self.shapes[value.name])
        return stated_extents(value.type, bound)


def _dimensions(value: onnx.ValueInfoProto) -> Sequence[onnx.TensorShapeProto.Dimension]:
    return tuple(value.type.tensor_type.shape.dim)


def stated_extents(proto: onnx.TypeProto, bound: Mapping[str, int]) -> Extents:
    """Return the extents of a type, with values for named dimensions."""
    if not proto.tensor_type.HasField("shape"):
        return None
    found: list[int | None] = []
    for each in proto.tensor_type.shape.dim:
        if each.HasField("dim_value"):
            found.append(each.dim_value if each.dim_value >= 0 else None)
        else:
            found.append(bound.get(each.dim_param) if each.dim_param else None)
    return found


def _pattern(value: onnx.ValueInfoProto) -> str:
    extents = stated_extents(value.type, {}) or []
    return ",".join(f"D{index}" if each is None else str(each) for index, each in enumerate(extents))


def open_error(inputs: Sequence[onnx.ValueInfoProto], bound: Mapping[str, int]) -> InputError:
    """Return the error that lists all open dimensions of these inputs."""
    fields, options = [], []
    for value in inputs:
        extents = stated_extents(value.type, bound)
        if extents is None:
            fields.append(f"shape of input {value.name!r}")
            options.append(f"--shape {value.name}=D0,D1")
            continue
        open_ones = [index for index, each in enumerate(extents) if each is None]
        labels = [_dimensions(value)[index].dim_param for index in open_ones]
        fields += [
            f"dimension {label or index} of input {value.name!r}"
            for label, index in zip(labels, open_ones, strict=True)
        ]
        if all(labels):
            options += [f"--dim {label}=VALUE" for label in labels]
        else:
            options.append(f"--shape {value.name}={_pattern(value)}")
    options = list(dict.fromkeys(options))
    return InputError(", ".join(dict.fromkeys(fields)), "open", "given: " + " ".join(options))
