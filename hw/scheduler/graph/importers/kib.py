"""Graphs in the small form with sizes in KiB: one tensor an operator, no shapes.

    {"name": ..., "operators": [{"id": 0, "kib": 49, "source": true, "op": "in", "inputs": []}, ...]}

An operator marked ``source`` is data that lies off chip: an input tensor without a step.  A tensor that no
operator reads is an output.
"""

from dataclasses import replace

from pydantic import BaseModel, Field, TypeAdapter

from hw.edge import Document, validate
from hw.scheduler.graph.graph import Graph, Operator, Tensor, TensorKind


class _Operator(BaseModel):
    id: int
    kib: int = Field(gt=0)
    source: bool = False
    op: str
    inputs: list[int]


class _Form(BaseModel):
    name: str
    operators: list[_Operator]


_FORM = TypeAdapter(_Form)


def import_kib(document: Document, *, made_by: str = "") -> Graph:
    """Convert a document of this form into a graph; other keys at its top are ignored.

    InputError for a missing or unknown field, a size that is not above 0, an input that no operator makes.
    """
    known = {key: value for key, value in document.data.items() if key in _Form.model_fields}
    form = validate(replace(document, data=known), _FORM)
    makers = {operator.id: operator for operator in form.operators}
    read = {source for operator in form.operators for source in operator.inputs}
    tensors, operators = [], []
    for number, operator in enumerate(form.operators):
        if makers[operator.id] is not operator:
            raise document.error(("operators", number, "id"), "used once")
        for index, source in enumerate(operator.inputs):
            if source not in makers:
                raise document.error(("operators", number, "inputs", index), "the id of an operator")
        output, op = f"t{operator.id}", operator.op
        if operator.source:
            kind = TensorKind.CACHE if "cache" in op.lower() else TensorKind.INPUT
        else:
            kind = TensorKind.ACTIVATION if operator.id in read else TensorKind.OUTPUT
            inputs = tuple(f"t{source}" for source in dict.fromkeys(operator.inputs))
            name = f"{op}.{operator.id}"
            operators.append(Operator(name=name, kind=op, inputs=inputs, outputs=(output,)))
        tensors.append(Tensor(name=output, size_bytes=operator.kib * 1024, kind=kind))
    return Graph(name=form.name, tensors=tuple(tensors), operators=tuple(operators), made_by=made_by)
