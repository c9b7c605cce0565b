"""A plan: what `hw.scheduler` decides, as plain data; the file ``plan.json`` holds exactly these fields.

Times are steps and follow the four phases of `hw.scheduler`.  Addresses and sizes are bytes, multiples of
``word_bytes``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from hw.scheduler.graph.graph import Graph

#: Value of ``format`` in plan.json.
PLAN_FORMAT = "loomwork-plan/1"


class Direction(enum.StrEnum):
    """Of a transfer, seen from the memory: ``READ`` fills the scratchpad, ``WRITE`` empties it."""

    READ = "read"
    WRITE = "write"


class Mode(enum.StrEnum):
    """How the compute array works in a step (after InTAR, arXiv 2502.08807).

    ``SEQUENTIAL``: one operator on the whole array. ``PIPELINED``: the members of a group share the array,
    joined by first-in first-out buffers.
    """

    SEQUENTIAL = "sequential"
    PIPELINED = "pipelined"


@dataclass(frozen=True, kw_only=True)
class PlanStep:
    """One step: the operator it executes, in which mode, and the least cycles its arithmetic takes."""

    operator: str
    mode: Mode
    compute_cycles: int


@dataclass(frozen=True, kw_only=True)
class Episode:
    """A stay of a whole tensor at one address, from ``first_step`` to ``last_step``, both included.

    It begins with the step that writes the tensor or with a read transfer, and it may be saved by a write
    transfer.
    """

    tensor: str
    address: int
    size_bytes: int
    first_step: int
    last_step: int


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A use of a tensor in one step through a window of the scratchpad, a ring of ``window_bytes``.

    The whole tensor passes: read from memory (``READ``) for an operator that uses it, or written to memory
    (``WRITE``) as an operator makes it.
    """

    tensor: str
    direction: Direction
    step: int
    address: int
    window_bytes: int


@dataclass(frozen=True, kw_only=True)
class GroupFifo:
    """The buffers between the members of the pipelined group that ``step`` executes."""

    step: int
    address: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """One movement of one whole tensor between its home in memory and the scratchpad.

    It fills or saves the episode, or feeds or drains the stream, of this index; the other is None.
    ``dram_address`` is relative to the plan's region of the memory.  ``start_step`` and ``deadline_step`` are
    as the phases in `hw.scheduler` say; a stream's are ``step`` and ``step + 1``: it runs while the operator
    does.
    """

    tensor: str
    direction: Direction
    episode: int | None
    stream: int | None
    size_bytes: int
    dram_address: int
    scratchpad_address: int
    start_step: int
    deadline_step: int


@dataclass(frozen=True, kw_only=True)
class StageCertificate:
    """What one stage of the planner (``order``, ``residency``, ``address``, ``peak`` ...) proved."""

    stage: str
    solver: str  #: What decided it, version included.
    #: ``optimal``, ``feasible``, ``heuristic``, or ``stopped``: ended early by who waited for it.
    status: str
    #: ``objective``, ``bound``: in ``unit``; no plan of this stage's problem is below the bound.
    objective: int
    bound: int
    unit: str = "bytes"
    note: str = ""  #: What a reader must know: a fallback, a limit that stopped it.


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """What is proven of the whole plan: never more than the stages proved.

    ``claim`` is ``optimal``, ``optimal for this order`` or ``bound X bytes, not proven``: no plan of this
    graph at this scratchpad moves fewer avoidable bytes than the bound; none in this order of operators, than
    the order's.
    """

    claim: str
    bound_avoidable_bytes: int
    order_bound_avoidable_bytes: int
    stages: tuple[StageCertificate, ...]


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The plan's figures, recomputed by `hw.scheduler.check.check`.

    Avoidable bytes are off-chip bytes less compulsory bytes (COSMA: non-compulsory).  Parameter bytes are
    those of `Operator.weight_bytes`, once for each operator executed, so that bands count them again; they
    pass by the scratchpad and are in none of the other figures.
    """

    offchip_read_bytes: int
    offchip_write_bytes: int
    compulsory_bytes: int
    avoidable_bytes: int
    parameter_bytes: int
    peak_bytes: int
    transfers_total: int
    predicted_cycles: int
    exposed_cycles: int


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A whole plan."""

    graph: Graph  #: The graph that is executed: after fusing, tiling and grouping.
    scratchpad_bytes: int
    word_bytes: int
    steps: tuple[PlanStep, ...]  #: In order of execution; each operator of the graph once.
    episodes: tuple[Episode, ...]
    streams: tuple[Stream, ...]
    fifos: tuple[GroupFifo, ...]
    transfers: tuple[Transfer, ...]  #: In the order their engine runs them, reads and writes apart.
    #: Off-chip address of each tensor that is ever off chip, by name, in bytes from the plan's base.
    homes: Mapping[str, int]
    memory_bytes: int  #: Off-chip bytes from the base to the end of the last home.
    totals: Totals
    certificate: Certificate
    #: What the planner was asked for; everything needed to make the plan again.
    options: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    format: str = PLAN_FORMAT
