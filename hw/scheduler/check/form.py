"""The form of a plan.json: keys, types and legal values.

Its classes are independent of `hw.scheduler.plan` and `hw.scheduler.graph`, so that a mistake there cannot
hide here. A class that shares its name with one of theirs is the same thing. Producers and consumers of
tensors, with their steps, are derived here for the rules.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from hw.edge import Document, accepted, refusals

Count = Annotated[int, Field(ge=0)]
Positive = Annotated[int, Field(ge=1)]
Direction = Literal["read", "write"]
Rows = tuple[int, int]

#: Bytes of the window through which a tensor of unknown shape streams.
UNKNOWN_WINDOW_BYTES = 4096
#: Most parts of the compute array.
MAX_CORES = 4
#: Rows of an output that are checked; the pattern repeats after them.
MOST_ROWS = 4096


class Tensor(BaseModel):
    """A tensor of the graph, or one that the members of a group exchange."""

    name: str
    size_bytes: Positive
    shape: list[Positive] = []
    element_bits: Positive = 8
    kind: Literal["input", "weight", "cache", "activation", "output"] = "activation"
    origin: str = ""

    @property
    def is_source(self) -> bool:
        """Whether it is off chip from the start."""
        return self.kind in ("input", "weight", "cache")

    def rows_bytes(self, rows: int, axis: int, word_bytes: int) -> int:
        """Bytes of a buffer for ``rows``: whole words, at least two, at most the tensor's."""
        row_bytes = -(-self.size_bytes // self.shape[axis])
        words = max(2, -(-rows * row_bytes // word_bytes))
        return min(words, -(-self.size_bytes // word_bytes)) * word_bytes


class Access(BaseModel):
    """The rows of an input that a row of the output needs."""

    axis: Count = 0
    output_axis: Count = 0
    kernel: Positive = 1
    stride: Positive = 1
    pad: int = 0
    up: Positive = 1

    @property
    def held_rows(self) -> int:
        """Rows that an output row needs, and those that arrive while it is computed."""
        return self.kernel + -(-self.stride // self.up)

    def rows(self, made: Rows, extent: int) -> Rows:
        """Return the input rows, end excluded, that rows of an output need; empty when all are padding."""
        first = made[0] * self.stride // self.up - self.pad
        last = (made[1] - 1) * self.stride // self.up - self.pad + self.kernel
        return max(first, 0), min(last, extent)


class Operator(BaseModel):
    """An operator, a pipelined group, or a member of one."""

    name: str
    kind: str
    inputs: list[str]
    outputs: Annotated[list[str], Field(min_length=1)]
    macs: Count = 0
    least_cycles: Count = 0
    weight_bytes: Count = 0
    accesses: dict[str, Access] = {}
    fused: list[str] = []
    members: list[Operator] = []
    inner: list[Tensor] = []
    fifo_bytes: Count = 0


class Graph(BaseModel):
    """The operators and tensors of a plan, or of its model."""

    name: str
    tensors: list[Tensor]
    operators: list[Operator]
    made_by: str = ""


class _PlanStep(BaseModel):
    operator: str
    mode: Literal["sequential", "pipelined"]
    compute_cycles: int


class _Listed(BaseModel):
    """An entry that problems name by its index in its list."""

    _label: str = ""

    @property
    def label(self) -> str:
        """Its kind, its number and its tensor."""
        return self._label


class Episode(_Listed):
    """A residency interval."""

    tensor: str
    address: int
    size_bytes: int
    first_step: int
    last_step: int


class Stream(_Listed):
    """A use of a tensor through a window."""

    tensor: str
    direction: Direction
    step: int
    address: int
    window_bytes: int


class _GroupFifo(_Listed):
    step: int
    address: int
    size_bytes: int


class Transfer(_Listed):
    """A movement of a whole tensor between DRAM and scratchpad."""

    tensor: str
    direction: Direction
    episode: int | None
    stream: int | None
    size_bytes: int
    dram_address: int
    scratchpad_address: int
    start_step: int
    deadline_step: int

    @property
    def target(self) -> tuple[str, int]:
        """The kind, ``episode`` or ``stream``, and number of the entry that it fills or drains."""
        return ("stream", self.stream) if self.stream is not None else ("episode", self.episode or 0)


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


class StageCertificate(BaseModel):
    """The result that a stage of the planner states."""

    stage: Literal["order", "bound", "residency", "address", "search"]
    solver: Annotated[str, Field(min_length=1)]
    status: Literal["optimal", "feasible", "heuristic", "stopped"]
    objective: int
    bound: int
    unit: str = "bytes"
    note: str = ""


class _Certificate(BaseModel):
    claim: str
    bound_avoidable_bytes: int
    order_bound_avoidable_bytes: int
    stages: list[StageCertificate]


class Options(BaseModel):
    """The options of the planner."""

    scratchpad_bytes: int
    word_bytes: int
    macs_per_cycle: Positive
    order: Literal["free", "default", "min-peak", "cosma"] = "free"
    streaming: Literal["auto", "always", "never"] = "auto"
    tiling: Literal["auto", "always", "never"] = "auto"
    pipelining: Literal["auto", "always", "never"] = "auto"
    objective: str = ""
    cores: Positive = MAX_CORES
    seed: Count = 0
    effort: Positive = 1
    time_limit_s: Annotated[float, Field(gt=0)] = 600.0
    without: str = ""


class Plan(BaseModel):
    """A plan.json, with derived facts of tensors and steps, which are valid once its graph is."""

    format: Literal["loomwork-plan/1"]
    graph: Graph
    scratchpad_bytes: Positive
    word_bytes: Positive
    steps: list[_PlanStep]
    episodes: list[Episode]
    streams: list[Stream]
    fifos: list[_GroupFifo]
    transfers: list[Transfer]
    homes: dict[str, int]
    memory_bytes: int
    totals: _Totals
    certificate: _Certificate
    options: Options

    def model_post_init(self, context: Any) -> None:
        """Number the entries, for problems to name."""
        for kind in ("episode", "stream", "fifo", "transfer"):
            for number, entry in enumerate(getattr(self, f"{kind}s")):
                of = f"{entry.direction} of " if kind == "transfer" else ""
                tensor = "" if kind == "fifo" else f" ({of}{entry.tensor!r})"
                entry._label = f"{kind} {number}{tensor}"

    @cached_property
    def tensor(self) -> dict[str, Tensor]:
        """Tensors of the graph by name."""
        return {tensor.name: tensor for tensor in self.graph.tensors}

    @cached_property
    def operator(self) -> dict[str, Operator]:
        """Operators of the graph by name."""
        return {operator.name: operator for operator in self.graph.operators}

    @cached_property
    def executed(self) -> list[Operator]:
        """The operator of each step."""
        return [self.operator[step.operator] for step in self.steps]

    @cached_property
    def size(self) -> dict[str, int]:
        """Bytes of each tensor in whole words."""
        return {name: self.whole_words(tensor.size_bytes) for name, tensor in self.tensor.items()}

    @cached_property
    def made_at(self) -> dict[str, int]:
        """Step that writes each tensor; -1 for a source."""
        made = {name: step for step, operator in enumerate(self.executed) for name in operator.outputs}
        return {name: made.get(name, -1) for name in self.tensor}

    @cached_property
    def used_at(self) -> dict[str, list[int]]:
        """Steps that read each tensor, ascending."""
        used: dict[str, list[int]] = {name: [] for name in self.tensor}
        for step, operator in enumerate(self.executed):
            for name in operator.inputs:
                used[name].append(step)
        return used

    def passes_alone(self, operator: Operator, name: str) -> bool:
        """Whether this operand can stream only while all others are whole: an output row needs all of it."""
        return bool(self.tensor[name].shape) and name in operator.inputs and name not in operator.accesses

    def whole_words(self, size_bytes: int) -> int:
        """Round bytes up to whole words."""
        return -(-size_bytes // self.word_bytes) * self.word_bytes


_PLAN = TypeAdapter(Plan)


def conform(document: Any) -> Plan | list[str]:
    """Read a plan from parsed JSON, or return a line for each field of a wrong form."""
    read = Document(path=Path("plan"), data=document)
    try:
        return accepted(read, _PLAN)
    except ValidationError as errors:
        return [str(error) for error in refusals(read, _PLAN, errors)]
