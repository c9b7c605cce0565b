"""Workloads of ZigZag: a YAML list of layers, each an equation over loops.

Keys and operators are those of ``zigzag/parser/workload_validator.py`` of ZigZag 3.  A layer without
``padding`` has a map as large as its windows reach.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hw.edge import Document, read_document
from hw.errors import InputError
from sim.workloads.einsum import Axis, Operand, classified
from sim.workloads.layers import Layer, Other, Work, Workload

#: Operators that multiply and accumulate; the others of ZigZag do not.
_MULTIPLY = ("Conv", "Conv_downsample", "Gemm")
_OTHERS = ("Add", "AveragePool", "GlobalAveragePool", "Max", "MaxPool", "Pool", "Pooling", "SConv")
_KEYS = (
    "id", "name", "operator_type", "equation", "dimension_relations", "loop_dims", "loop_sizes", "time_dim",
    "operand_precision", "operand_source", "pr_loop_dims", "pr_loop_sizes", "padding",
)  # fmt: skip
_EQUATION = re.compile(r"(\w)((?:\[\w+\])+)\+?=(\w)((?:\[\w*\])+)([*+])(\w)((?:\[\w*\])+)")
_LEGAL_EQUATION = "as in O[b][k]+=I[b][c]*W[c][k]"
_RELATION = re.compile(r"(\w+)=(?:(\d{1,6})\*)?(\w+)\+(?:(\d{1,6})\*)?(\w+)")
_LARGEST = 10**9


def read_zigzag(path: Path, text: str) -> Workload:
    """Read a workload.

    Raises `InputError` for the first key or value that is wrong; the message names file and line.
    """
    document = read_document(path, text=text, top=list)
    if not document.data:
        raise InputError("layers", 0, "at least 1", where=f"{path}:1")
    layers, bits = [], set()
    for number, entry in enumerate(document.data):
        if not isinstance(entry, dict):
            raise document.error((number,), "a layer: a mapping with the keys " + ", ".join(_KEYS))
        for key in entry:
            if key not in _KEYS:
                raise document.error((number, key), "one of " + ", ".join(_KEYS), value=key)
        layers.append(_layer(document, number, entry))
        precision = entry.get("operand_precision") or {}
        bits |= {precision.get(name, 8) for name in "WI"} if isinstance(precision, dict) else set()
    wide = sorted(str(each) for each in bits - {0, 8})
    note = f"operands of {', '.join(wide)} bits count as int8"
    return Workload(source="ZigZag workload", layers=tuple(layers), notes=(note,) if wide else ())


def _layer(document: Document, number: int, entry: Mapping[str, Any]) -> Layer:
    kind = entry.get("operator_type", "missing")
    if kind not in (*_MULTIPLY, *_OTHERS):
        legal = "one of " + ", ".join((*_MULTIPLY, *_OTHERS))
        raise document.error((number, "operator_type"), legal, value=kind)
    identity = entry.get("id", "missing")
    if not isinstance(identity, int) or isinstance(identity, bool):
        raise document.error((number, "id"), "a whole number", value=identity)
    name = entry.get("name") or f"{kind}_{identity}"
    if not isinstance(name, str):
        raise document.error((number, "name"), "text")
    sizes = _sizes(document, number, entry)
    result, operands, sign = _equation(document, number, entry, sizes)
    work: Work = Other(reason=kind)
    count = 1
    if kind in _MULTIPLY and sign == "*":
        pads = _pads(document, number, entry)
        try:
            work, count = classified(result, operands, sizes, pads)
        except InputError as error:
            location = (number, "padding" if "padding" in entry else "loop_sizes")
            raise document.error(location, f"such that {error.field} is {error.legal}") from error
    return Layer(name=name, where=document.where((number,)), work=work, count=count)


def _sizes(document: Document, number: int, entry: Mapping[str, Any]) -> dict[str, int]:
    """Return the sizes of loops, by their names in lower case as equations have them."""
    dims, extents = entry.get("loop_dims", "missing"), entry.get("loop_sizes", "missing")
    if not isinstance(dims, list) or not all(isinstance(name, str) for name in dims):
        raise document.error((number, "loop_dims"), "a list of names", value=dims)
    if not isinstance(extents, list) or len(extents) != len(dims):
        raise document.error((number, "loop_sizes"), f"a list of {len(dims)} sizes", value=extents)
    for index, extent in enumerate(extents):
        if not isinstance(extent, int) or isinstance(extent, bool) or not 0 < extent <= _LARGEST:
            legal = f"a whole number from 1 to {_LARGEST:,}"
            raise document.error((number, "loop_sizes", index), legal)
    names = [name.lower() for name in dims]
    if len(set(names)) < len(names):
        raise document.error((number, "loop_dims"), "different names")
    return dict(zip(names, extents, strict=True))


def _equation(
    document: Document, number: int, entry: Mapping[str, Any], sizes: Mapping[str, int]
) -> tuple[Operand, list[Operand], str]:
    """Return the result, the two operands, and the sign between them."""
    written = entry.get("equation", "missing")
    found = _EQUATION.fullmatch(re.sub(r"\s", "", written)) if isinstance(written, str) else None
    if found is None:
        raise document.error((number, "equation"), _LEGAL_EQUATION, value=written)
    relations: dict[str, Axis] = {}
    given = entry.get("dimension_relations", [])
    if not isinstance(given, list):
        raise document.error((number, "dimension_relations"), "a list, as of ix=2*ox+1*fx")
    for index, relation in enumerate(given):
        parts = _RELATION.fullmatch(re.sub(r"\s", "", relation)) if isinstance(relation, str) else None
        if parts is None or {parts[3].lower(), parts[5].lower()} - sizes.keys():
            legal = "as in ix=2*ox+1*fx, over names of loop_dims"
            raise document.error((number, "dimension_relations", index), legal)
        factors = [int(text or 1) for text in (parts[2], parts[4])]
        if 0 in factors:
            raise document.error((number, "dimension_relations", index), "of factors above 0")
        relations[parts[1].lower()] = {parts[3].lower(): factors[0], parts[5].lower(): factors[1]}
    operands = []
    for name, axes in ((found[1], found[2]), (found[3], found[4]), (found[6], found[7])):
        loops = [loop.lower() for loop in re.findall(r"\[(\w+)\]", axes)]
        for loop in loops:
            if loop not in sizes and loop not in relations:
                legal = f"over names of loop_dims and dimension_relations; {loop} is none"
                raise document.error((number, "equation"), legal)
        operands.append(Operand(name=name, axes=tuple(relations.get(loop, {loop: 1}) for loop in loops)))
    return operands[0], operands[1:], found[5]


def _pads(document: Document, number: int, entry: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    """Return the pads of the map's axes, by the result's loop along each."""
    pads, dims = entry.get("padding"), entry.get("pr_loop_dims")
    if pads is None:
        return {}
    if not isinstance(dims, list) or not isinstance(pads, list) or len(pads) != len(dims):
        legal = "a list of [before, after], one for each of pr_loop_dims"
        raise document.error((number, "padding"), legal)
    found = {}
    relations = [relation.replace(" ", "").lower() for relation in entry.get("dimension_relations", [])]
    for index, (dim, pad) in enumerate(zip(dims, pads, strict=True)):
        whole = isinstance(pad, list) and len(pad) == 2 and all(type(side) is int for side in pad)
        if not whole or not all(0 <= side <= _LARGEST for side in pad):
            raise document.error((number, "padding", index), "two whole numbers of at least 0")
        parts = next((_RELATION.fullmatch(r) for r in relations if r.startswith(f"{dim}=".lower())), None)
        if parts is None:
            legal = "names of dimension_relations"
            raise document.error((number, "pr_loop_dims", index), legal)
        for loop in (parts[3], parts[5]):
            found[loop] = (pad[0], pad[1])
    return found
