"""A plan as plain data; the file ``plan.json`` holds exactly these fields.

Times are steps with the four phases of `hw.scheduler`.  Addresses and sizes are bytes, multiples of
``word_bytes``.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from hw.scheduler.graph.graph import Graph

#: Value of ``format`` in plan.json.
PLAN_FORMAT = "loomwork-plan/1"


class Direction(enum.StrEnum):
    """Direction of a transfer, seen from the memory: ``READ`` fills the scratchpad, ``WRITE`` drains it."""

    READ = "read"
    WRITE = "write"


class Mode(enum.StrEnum):
    """Use of the compute array in a step (after InTAR, arXiv 2502.08807).

    ``SEQUENTIAL``: one operator on the whole array. ``PIPELINED``: the members of a group share the array,
    connected by FIFOs.
    """

    SEQUENTIAL = "sequential"
    PIPELINED = "pipelined"


@dataclass(frozen=True, kw_only=True)
class PlanStep:
    """One step: its operator, its mode, and the least cycles of its arithmetic."""

    operator: str
    mode: Mode
    compute_cycles: int


@dataclass(frozen=True, kw_only=True)
class Episode:
    """A stay of a whole tensor at one address, from ``first_step`` to ``last_step``, both included.

    It begins with the step that writes the tensor, or with a read transfer.  A write transfer may save it.
    """

    tensor: str
    address: int
    size_bytes: int
    first_step: int
    last_step: int


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A use of a tensor in one step through a window of the scratchpad, a ring of ``window_bytes``.

    The whole tensor passes: read from memory (``READ``) by its consumer, or written to memory (``WRITE``) by
    its producer.
    """

    tensor: str
    direction: Direction
    step: int
    address: int
    window_bytes: int


@dataclass(frozen=True, kw_only=True)
class GroupFifo:
    """The area of the buffers between the members of the pipelined group that ``step`` executes."""

    step: int
    address: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A transfer of one whole tensor between its home in memory and the scratchpad.

    It fills or saves the episode of index ``episode``, or feeds or drains the stream of index ``stream``; the
    other index is None.  ``dram_address`` is relative to the plan's region of the memory.  ``start_step`` and
    ``deadline_step`` follow the phases of `hw.scheduler`.  A stream's are ``step`` and ``step + 1``, because
    it runs while the operator does.
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
    """The result of one planner stage (``order``, ``residency``, ``address``, ``peak`` ...)."""

    stage: str
    solver: str  #: Solver and version.
    #: ``optimal``, ``feasible``, ``heuristic``, or ``stopped`` (early, by the user).
    status: str
    #: ``objective``, ``bound``: in ``unit``; no solution of this stage's problem is below the bound.
    objective: int
    bound: int
    unit: str = "bytes"
    note: str = ""  #: A fallback used, or a limit that stopped the stage.


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """The proof of the whole plan, which follows from its stages.

    ``claim`` is ``optimal``, ``optimal for this order`` or ``bound X bytes, not proven``.  No plan of this
    graph in this scratchpad moves fewer avoidable bytes than ``bound_avoidable_bytes``; none in this order of
    operators, fewer than ``order_bound_avoidable_bytes``.
    """

    claim: str
    bound_avoidable_bytes: int
    order_bound_avoidable_bytes: int
    stages: tuple[StageCertificate, ...]


@dataclass(frozen=True, kw_only=True)
class Totals:
    """The plan's figures, recomputed by `hw.scheduler.check.check`.

    Avoidable bytes are off-chip bytes less compulsory bytes (COSMA: non-compulsory).  Parameter bytes are the
    `Operator.weight_bytes` of all executed operators; each band counts them again.  They bypass the
    scratchpad and are in none of the other figures.
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
    transfers: tuple[Transfer, ...]  #: Reads and writes each in the order of their engine.
    #: Off-chip address, by name, of each tensor that is ever off chip; bytes from the plan's base.
    homes: Mapping[str, int]
    memory_bytes: int  #: Off-chip bytes from the base to the end of the last home.
    totals: Totals
    certificate: Certificate
    #: Options of the planner, all that reproducing the plan needs.
    options: Mapping[str, str | int | float | bool | None] = field(default_factory=dict)
    format: str = PLAN_FORMAT
