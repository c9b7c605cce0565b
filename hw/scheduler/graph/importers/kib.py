"""Graphs in the small form that counts in KiB: one tensor an operator, sizes only.

    {"name": ..., "operators": [{"id": 0, "kib": 49, "source": true, "op": "in", "inputs": []}, ...]}

An operator marked ``source`` is data that lies off chip: an input tensor without a step.  A tensor that no
operator reads is an output.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hw.errors import InputError
from hw.scheduler.graph.documents import refusal
from hw.scheduler.graph.graph import Graph, Operator, Tensor, TensorKind


class _Operator(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    id: int
    kib: int = Field(gt=0)
    source: bool = False
    op: str
    inputs: list[int]


class _Document(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")

    name: str
    operators: list[_Operator]


def import_kib(document: Mapping[str, Any], *, where: str, made_by: str = "") -> Graph:
    """Turn a document of this form into a graph.

    Parameters
    ----------
    document : mapping
    where : str
        The file, for errors.
    made_by : str
        As of `Graph`.

    Raises
    ------
    InputError
        For a missing or unknown field, a size that is not above 0, an input that no operator makes.
    """
    try:
        form = _Document.model_validate(document)
    except ValidationError as error:
        raise refusal(error, where) from error
    known: set[int] = set()
    for operator in form.operators:
        if operator.id in known:
            raise InputError("id of an operator", operator.id, "used once", where=where)
        known.add(operator.id)
    for operator in form.operators:
        for source in operator.inputs:
            if source not in known:
                raise InputError(f"input of operator {operator.id}", source, "an operator's id", where=where)
    read = {source for operator in form.operators for source in operator.inputs}
    tensors, operators = [], []
    for operator in form.operators:
        kind = TensorKind.ACTIVATION if operator.id in read else TensorKind.OUTPUT
        if operator.source:
            kind = TensorKind.CACHE if "cache" in operator.op.lower() else TensorKind.INPUT
        name = f"t{operator.id}"
        tensors.append(Tensor(name=name, size_bytes=operator.kib * 1024, kind=kind))
        if not operator.source:
            inputs = tuple(f"t{source}" for source in dict.fromkeys(operator.inputs))
            made = Operator(
                name=f"{operator.op}.{operator.id}", kind=operator.op, inputs=inputs, outputs=(name,)
            )
            operators.append(made)
    return Graph(name=form.name, tensors=tuple(tensors), operators=tuple(operators), made_by=made_by)
