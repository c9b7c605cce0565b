"""The form of a plan.json, written down without the planner's own classes: keys, types and legal values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from hw.edge import Document, accepted, refusals

PLAN_FORMAT = "loomwork-plan/1"
SOURCE_KINDS = ("input", "weight", "cache")

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Direction = Literal["read", "write"]


class _Tensor(BaseModel):
    name: str
    size_bytes: Positive
    shape: list[Positive] = []
    element_bits: Positive = 8
    kind: Literal["input", "weight", "cache", "activation", "output"] = "activation"
    origin: str = ""


class _Access(BaseModel):
    axis: Count = 0
    output_axis: Count = 0
    kernel: Positive = 1
    stride: Positive = 1
    pad: int = 0
    up: Positive = 1


class _Operator(BaseModel):
    name: str
    kind: str
    inputs: list[str]
    outputs: Annotated[list[str], Field(min_length=1)]
    macs: Count = 0
    weight_bytes: Count = 0
    accesses: dict[str, _Access] = {}
    fused: list[str] = []
    members: list[_Operator] = []
    inner: list[_Tensor] = []
    fifo_bytes: Count = 0


class _Graph(BaseModel):
    name: str
    tensors: list[_Tensor]
    operators: list[_Operator]
    made_by: str = ""


class _Step(BaseModel):
    operator: str
    mode: Literal["sequential", "pipelined"]
    compute_cycles: int


class _Episode(BaseModel):
    tensor: str
    address: int
    size_bytes: int
    first_step: int
    last_step: int


class _Stream(BaseModel):
    tensor: str
    direction: Direction
    step: int
    address: int
    window_bytes: int


class _Fifo(BaseModel):
    step: int
    address: int
    size_bytes: int


class _Transfer(BaseModel):
    tensor: str
    direction: Direction
    episode: int | None
    stream: int | None
    size_bytes: int
    dram_address: int
    scratchpad_address: int
    start_step: int
    deadline_step: int


class _Totals(BaseModel):
    offchip_read_bytes: int
    offchip_write_bytes: int
    compulsory_bytes: int
    avoidable_bytes: int
    parameter_bytes: int
    peak_bytes: int
    transfers_total: int
    predicted_cycles: int
    exposed_cycles: int


class _Stage(BaseModel):
    stage: str
    solver: str
    status: Literal["optimal", "feasible", "heuristic"]
    objective: int
    bound: int
    unit: str = "bytes"
    note: str = ""


class _Certificate(BaseModel):
    claim: str
    bound_avoidable_bytes: int
    order_bound_avoidable_bytes: int
    stages: list[_Stage]


class _Plan(BaseModel):
    format: Literal["loomwork-plan/1"]
    graph: _Graph
    scratchpad_bytes: Positive
    word_bytes: Positive
    steps: list[_Step]
    episodes: list[_Episode]
    streams: list[_Stream]
    fifos: list[_Fifo]
    transfers: list[_Transfer]
    homes: dict[str, int]
    memory_bytes: int
    totals: _Totals
    certificate: _Certificate
    options: dict[str, str | int | float | bool | None] = {}


_PLAN = TypeAdapter(_Plan)


def conform(document: Any) -> tuple[dict[str, Any], list[str]]:
    """Compare a document with the form of a plan.

    Parameters
    ----------
    document : Any
        What a JSON reader gave.

    Returns
    -------
    dict
        The document with what may be left out filled in; empty when there are problems.
    list of str
        Each place that has not the form.
    """
    read = Document(path=Path("plan"), data=document)
    try:
        return accepted(read, _PLAN).model_dump(), []
    except ValidationError as errors:
        return {}, [str(error) for error in refusals(read, _PLAN, errors)]
