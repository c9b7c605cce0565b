"""Workloads of AccelForge: YAML with einsums over ranks, written as a template.

The forms are those of AccelForge 1.0's ``examples/workloads``: einsums as text, ``Z[m, n] = A[m, k] * B[k,
n]``, or as lists of ``tensor_accesses`` with projections.  Variables of the template take their defaults,
or values of the caller.  Files that include others are refused: their text must be written out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hw.edge import Document, Location, read_document
from sim.workloads.einsum import Axis, Operand, classified
from sim.workloads.layers import Layer, Other, Product, Workload, joined
from sim.workloads.template import rendered

#: Keys of a file: what the workload is, and what describes hardware, which is not read.
_TOP = ("workload", "renames", "arch", "mapping", "mapper", "variables", "config", "model", "version")
_WORKLOAD = (
    "rank_sizes", "iteration_space_shape", "bits_per_value", "persistent_tensors", "einsums", "version",
)  # fmt: skip
_EINSUM = (
    "einsum", "name", "tensor_accesses", "renames", "is_copy_operation", "iteration_space_shape",
    "n_instances",
)  # fmt: skip
_ACCESS = ("name", "projection", "output", "bits_per_value", "persistent", "backing_storage_size_scale")
_TEXT = re.compile(r"(\w+)\[([^\]]*)\]")
_BOUND = re.compile(r"(-?\d{1,9})<=(\w+)<(\d{1,10})")
_TERM = re.compile(r"(?:(\d{1,6})\*)?([A-Za-z_]\w*)")
_LEGAL_EINSUM = "as in Z[m, n] = A[m, k] * B[k, n]"
_LARGEST = 10**9


def read_accelforge(path: Path, text: str, variables: Mapping[str, int]) -> Workload:
    """Read a workload; ``variables`` are the template's by name.

    Raises `InputError` for the first key or value that is wrong; the message names file and line.
    """
    document = read_document(path, text=rendered(path, text, variables))
    for key in document.data:
        if key not in _TOP:
            raise document.error((key,), "one of " + ", ".join(_TOP), value=key)
    workload = document.data.get("workload", "missing")
    if not isinstance(workload, dict):
        raise document.error(("workload",), "a mapping with the keys " + ", ".join(_WORKLOAD), value=workload)
    for key in workload:
        if key not in _WORKLOAD:
            raise document.error(("workload", key), "one of " + ", ".join(_WORKLOAD), value=key)
    entries = workload.get("einsums", "missing")
    if not isinstance(entries, list) or not entries:
        raise document.error(("workload", "einsums"), "a list of at least one einsum", value=entries)
    reader = _Reader(document)
    for number in range(len(entries)):
        reader.add(("workload", "einsums", number))
    bits = workload.get("bits_per_value", {})
    wide = sorted({str(each) for each in bits.values()} - {"8"}) if isinstance(bits, dict) else []
    notes = [f"values of {', '.join(wide)} bits count as int8"] if wide else []
    unread = [key for key in ("arch", "mapping", "mapper") if key in document.data]
    notes += [f"{', '.join(unread)} of the file: not read"] if unread else []
    return Workload(
        source="AccelForge workload",
        layers=tuple(reader.layers),
        attentions=tuple(reader.attentions()),
        notes=tuple(notes),
    )


@dataclass
class _Reader:
    """Reads einsums in order; a later one finds the makers of its operands."""

    document: Document
    layers: list[Layer] = field(default_factory=list)
    #: The layer that makes each tensor, and the tensors that each layer reads.
    makers: dict[str, Layer] = field(default_factory=dict)
    reads: dict[str, list[str]] = field(default_factory=dict)
    #: Ranks of each tensor's axes, empty where the loop's name says it.
    ranks: dict[str, list[str]] = field(default_factory=dict)

    def add(self, location: Location) -> None:
        """Read an einsum."""
        entry = self.document.at(location)
        if isinstance(entry, str):
            entry, at = {"einsum": entry}, location
        else:
            at = (*location, "einsum")
        if not isinstance(entry, dict):
            raise self.document.error(location, "an einsum, or a mapping with the keys " + ", ".join(_EINSUM))
        for key in entry:
            if key not in _EINSUM:
                raise self.document.error((*location, key), "one of " + ", ".join(_EINSUM), value=key)
        if "einsum" in entry:
            name, result, operands = self._parsed(at, entry["einsum"])
        else:
            name, result, operands = self._accessed(location, entry)
        sizes = self._sizes(location, entry, [result, *operands])
        work, count = classified(result, operands, sizes) if len(operands) == 2 else (Other(reason=""), 1)
        if len(operands) != 2:
            work = Other(reason="softmax" if "softmax" in f"{name}{result.name}".lower() else "elementwise")
        layer = Layer(name=name, where=self.document.where(location), work=work, count=count)
        if name in self.reads:
            raise self.document.error(location, "an einsum of another name", value=name)
        self.layers.append(layer)
        self.makers[result.name] = layer
        self.reads[name] = [operand.name for operand in operands]

    def attentions(self) -> Iterator[Layer]:
        """Yield attention: a product, a softmax of its result, and a product that takes that."""
        for layer in self.layers:
            if not isinstance(layer.work, Product):
                continue
            for tensor in self.reads[layer.name]:
                chain = self._chain(tensor)
                if len(chain) > 1 and any(_is_softmax(each) for each in chain):
                    parts = [*(each.name for each in reversed(chain)), layer.name]
                    if found := joined(chain[-1], layer, parts, name=f"{chain[-1].name} {layer.name}"):
                        yield found

    def _chain(self, tensor: str) -> list[Layer]:
        """Return the layers back from a tensor to the product that it comes of, with one operand each."""
        chain = []
        while (maker := self.makers.get(tensor)) is not None and maker not in chain:
            chain.append(maker)
            if len(self.reads[maker.name]) != 1:
                return chain
            (tensor,) = self.reads[maker.name]
        return []

    def _parsed(self, location: Location, text: Any) -> tuple[str, Operand, list[Operand]]:
        """Parse ``Z[m, n] = A[m, k] * B[k, n]``; a function of a tensor is a tensor."""
        left, equals, right = text.partition("=") if isinstance(text, str) else ("", "", "")
        tensors = [(found[1], found[2]) for found in _TEXT.finditer(left)]
        if not equals or len(tensors) != 1 or _TEXT.sub("", left).strip():
            raise self.document.error(location, _LEGAL_EINSUM, value=text)
        operands = [(found[1], found[2]) for found in _TEXT.finditer(right)]
        rest = re.sub(r"\s", "", _TEXT.sub("T", right))
        if not operands or not re.fullmatch(r"T(\*T)*|\w+\(T(,T)*\)", rest):
            raise self.document.error(location, _LEGAL_EINSUM, value=text)
        result, *others = (
            self._operand(location, name, [part for part in map(str.strip, axes.split(",")) if part])
            for name, axes in (*tensors, *operands)
        )
        return result.name, result, others

    def _accessed(self, location: Location, entry: Mapping[str, Any]) -> tuple[str, Operand, list[Operand]]:
        accesses = entry.get("tensor_accesses", "missing")
        if not isinstance(accesses, list) or not isinstance(entry.get("name"), str):
            legal = "a mapping with einsum, or with name and tensor_accesses"
            raise self.document.error(location, legal)
        made: list[Operand] = []
        read: list[Operand] = []
        for number, access in enumerate(accesses):
            at = (*location, "tensor_accesses", number)
            if not isinstance(access, dict) or not isinstance(access.get("name"), str):
                raise self.document.error(at, "a mapping with name and projection")
            for key in access:
                if key not in _ACCESS:
                    raise self.document.error((*at, key), "one of " + ", ".join(_ACCESS), value=key)
            projection = access.get("projection", "missing")
            if isinstance(projection, dict):
                projection = [f"{rank}: {text}" for rank, text in projection.items()]
            if not isinstance(projection, list) or not all(isinstance(each, str) for each in projection):
                raise self.document.error((*at, "projection"), "a list of loops, or loops by rank")
            operand = self._operand((*at, "projection"), access["name"], projection)
            (made if access.get("output") else read).append(operand)
        if len(made) != 1 or not read:
            raise self.document.error((*location, "tensor_accesses"), "of one output and at least one input")
        return entry["name"], made[0], read

    def _operand(self, location: Location, name: str, axes: list[str]) -> Operand:
        """Read axes such as ``m``, ``M: p`` or ``H: 2 * p + r``; one of a rank's name alone is its loop."""
        found: list[Axis] = []
        for text in axes:
            terms = re.sub(r"\s", "", text.rpartition(":")[2]).split("+")
            parts = [_TERM.fullmatch(term) for term in terms]
            if not all(parts):
                legal = "of loops such as m, M: p or H: 2 * p + r"
                raise self.document.error(location, legal, value=text)
            found.append({part[2]: int(part[1] or 1) for part in parts if part})
        self.ranks[name] = [text.partition(":")[0].strip() if ":" in text else "" for text in axes]
        return Operand(name=name, axes=tuple(found))

    def _sizes(self, location: Location, entry: Mapping[str, Any], operands: list[Operand]) -> dict[str, int]:
        """Return the size of each loop: the least of the ranks that it runs over alone, or its bounds."""
        ranks = self.document.data["workload"].get("rank_sizes", {})
        if not isinstance(ranks, dict):
            raise self.document.error(("workload", "rank_sizes"), "sizes by rank")
        for rank, size in ranks.items():
            if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= _LARGEST:
                legal = f"a whole number from 1 to {_LARGEST:,}"
                raise self.document.error(("workload", "rank_sizes", rank), legal)
        bounds = {
            **self._bounds(("workload", "iteration_space_shape")),
            **self._bounds((*location, "iteration_space_shape")),
        }
        sizes: dict[str, int] = {}
        for operand in operands:
            for axis, rank in zip(operand.axes, self.ranks[operand.name], strict=True):
                if len(axis) == 1:
                    (loop,) = axis
                    size = bounds.get(loop, ranks.get(rank or loop.upper(), ranks.get(loop.upper())))
                    if size is not None:
                        sizes[loop] = min(size, sizes.get(loop, size))
        for loop in {loop for operand in operands for axis in operand.axes for loop in axis} - sizes.keys():
            if loop not in bounds:
                legal = f"over loops with a size: {loop} has none in rank_sizes or iteration_space_shape"
                raise self.document.error(location, legal)
            sizes[loop] = bounds[loop]
        return sizes

    def _bounds(self, location: Location) -> dict[str, int]:
        """Return the sizes of loops in a list of ``0 <= m < 128``, or a mapping with such values."""
        given = self.document.at(location)
        if given == "missing":
            return {}
        texts = list(given.items()) if isinstance(given, dict) else list(enumerate(given))
        found = {}
        for key, text in texts:
            part = _BOUND.fullmatch(re.sub(r"\s", "", text)) if isinstance(text, str) else None
            if part is None or int(part[3]) <= int(part[1]):
                raise self.document.error((*location, key), "as in 0 <= m < 128")
            found[part[2]] = int(part[3]) - int(part[1])
        return found


def _is_softmax(layer: Layer) -> bool:
    return isinstance(layer.work, Other) and layer.work.reason == "softmax"
