"""Signatures from ONNX's own schemas: an operator's operands, element types and attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import onnx
from onnx import TensorProto
from onnx.defs import OpSchema, SchemaError, get_schema

from hw.scheduler.graph.importers.rules.call import Misfit

_KINDS = {number: f"tensor({name.lower()})" for name, number in TensorProto.DataType.items()}
_NUMBERS = {name: number for number, name in _KINDS.items()}
_ATTRIBUTES = {
    number: name.lower() for name, number in onnx.AttributeProto.AttributeType.items() if name != "UNDEFINED"
}


@dataclass(frozen=True, kw_only=True)
class _Operand:
    name: str
    needed: bool
    #: The letter shared by operands of one type, or empty.
    letter: str
    kinds: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class OnnxSignature:
    """An operator's schema in one version; a variadic operand is the last one."""

    operands: tuple[_Operand, ...]
    results: tuple[_Operand, ...]
    least: int
    most: int
    most_results: int
    attributes: Mapping[str, tuple[int, bool]]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the operands."""
        return tuple(operand.name for operand in self.operands)


@cache
def signature(op: str, version: int, domain: str) -> OnnxSignature | None:
    """Return the signature of an operator; None when the installed ``onnx`` lacks this version."""
    try:
        schema = get_schema(op, version, domain)
    except SchemaError:
        return None
    # A version may be deprecated; the one before it holds then.
    while schema.deprecated and schema.since_version > 1:
        try:
            schema = get_schema(op, schema.since_version - 1, domain)
        except SchemaError:
            return None
    return OnnxSignature(
        operands=tuple(map(_operand, schema.inputs)),
        results=tuple(map(_operand, schema.outputs)),
        least=schema.min_input,
        most=schema.max_input,
        most_results=schema.max_output,
        attributes={name: (int(each.type.value), each.required) for name, each in schema.attributes.items()},
    )


def _operand(parameter: OpSchema.FormalParameter) -> _Operand:
    return _Operand(
        name=parameter.name,
        needed=parameter.option == OpSchema.FormalParameterOption.Single,
        letter=parameter.type_str if parameter.is_homogeneous else "",
        kinds=frozenset(parameter.types),
    )


def check_attributes(node: onnx.NodeProto, seen: OnnxSignature) -> None:
    """Refuse unknown attributes, wrong types and missing attributes."""
    names = set()
    for attribute in node.attribute:
        name, kind = attribute.name, attribute.type
        names.add(name)
        if name not in seen.attributes:
            if name == "consumed_inputs":
                continue  # a hint of the first versions
            legal = ", ".join(sorted(seen.attributes)) or "left out: the operator has none"
            raise Misfit("attribute", name, f"one of {legal}" if seen.attributes else legal)
        if kind != seen.attributes[name][0]:
            found = _ATTRIBUTES.get(kind, "none")
            raise Misfit(f"type of attribute {name}", found, _ATTRIBUTES[seen.attributes[name][0]])
    if missing := [name for name, (_, needed) in seen.attributes.items() if needed and name not in names]:
        raise Misfit(f"attribute {missing[0]}", "left out", "given")


def check_operands(node: onnx.NodeProto, seen: OnnxSignature, types: Sequence[int]) -> dict[str, str]:
    """Refuse a wrong number of operands and illegal element types; return the types of the letters."""
    if len(node.input) < seen.least or any(node.input[seen.most :]):
        legal = f"from {seen.least} to {seen.most}" if seen.most != seen.least else str(seen.least)
        raise Misfit("number of operands", len(node.input), legal)
    if len(node.output) > seen.most_results:
        raise Misfit("number of results", len(node.output), f"at most {seen.most_results}")
    letters: dict[str, str] = {}
    for position, (name, element) in enumerate(zip(node.input, types, strict=True)):
        operand = seen.operands[min(position, len(seen.operands) - 1)]
        if not name:
            # Exporters omit the region of a Resize, legal in all versions but two; no version reads it.
            if operand.needed and operand.name != "roi":
                raise Misfit(f"operand {operand.name}", "left out", "given")
            continue
        if not element:
            continue
        kind = _KINDS.get(element, "")
        if kind not in operand.kinds:
            legal = ", ".join(sorted(map(_plain, operand.kinds)))
            raise Misfit(f"element type of operand {operand.name}", _plain(kind), f"one of {legal}")
        if operand.letter and letters.setdefault(operand.letter, kind) != kind:
            legal = f"{_plain(letters[operand.letter])}, as of the operands before it"
            raise Misfit(f"element type of operand {operand.name}", _plain(kind), legal)
    return letters


def _plain(kind: str) -> str:
    return kind.removeprefix("tensor(").removesuffix(")")


def result_types(
    node: onnx.NodeProto, seen: OnnxSignature | None, letters: Mapping[str, str], types: Sequence[int]
) -> list[int]:
    """Return the element types of the results, from attributes, schema or first operand; 0 if unknown."""
    given = {each.name: each for each in node.attribute}
    named = next((given[name].i for name in ("to", "dtype", "output_dtype") if name in given), 0)
    if named and named not in _KINDS:
        raise Misfit("element type of the result", named, "an element type of ONNX")
    first = types[0] if types else 0
    found = []
    for index in range(len(node.output)):
        element = 0
        if seen and seen.results:
            result = seen.results[min(index, len(seen.results) - 1)]
            if result.letter in letters:
                element = _NUMBERS.get(letters[result.letter], 0)
            elif len(result.kinds) == 1:
                element = _NUMBERS.get(next(iter(result.kinds)), 0)
        else:
            element = first
        if index == 0:
            element = _first_result(node, named, types) or element
        found.append(element or (first if index == 0 else 0))
    return found


def _first_result(node: onnx.NodeProto, named: int, types: Sequence[int]) -> int:
    """The element type of a first result that the schema leaves open; 0 for any other."""
    op = node.op_type
    if op in ("Cast", "EyeLike", "QuantizeLinear", "DequantizeLinear", "RandomNormalLike") and named:
        return named
    if op == "QuantizeLinear":
        return types[2] if len(types) > 2 and types[2] else TensorProto.UINT8
    if op == "DequantizeLinear":
        return types[1] if len(types) > 1 else 0
    if op == "CastLike":
        return types[1] if len(types) > 1 else 0
    if op == "ConstantOfShape":
        return next((int(each.t.data_type) for each in node.attribute), int(TensorProto.FLOAT))
    return 0
