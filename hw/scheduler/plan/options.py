"""The options of the planner."""

import enum
from dataclasses import dataclass, fields

from hw.errors import InputError, check_power_of_two, check_range

#: All criteria, in the default order; see `PlanOptions.objective`.
CRITERIA = ("bytes", "peak", "transfers", "latency")
#: The default order where the board is known: predicted cycles weigh traffic against computation.
ON_BOARD = ("latency", "bytes", "peak", "transfers")


class OrderChoice(enum.StrEnum):
    """The orders of operators that the planner considers.

    * ``FREE``: all.
    * ``DEFAULT``: only the graph's (COSMA's fixed schedule).
    * ``MIN_PEAK``: only one of least peak (COSMA's MPMF).
    * ``COSMA``: all, by COSMA's published integer program, which is solvable for few operators only.  Tensors
      are whole and operators run one after the other.
    """

    FREE = "free"
    DEFAULT = "default"
    MIN_PEAK = "min-peak"
    COSMA = "cosma"


class When(enum.StrEnum):
    """Whether a technique may be used: always, never, or where it helps."""

    AUTO = "auto"
    ALWAYS = "always"
    NEVER = "never"


@dataclass(frozen=True, kw_only=True)
class Techniques:
    """The techniques of the planner's stages, all on by default; `loomwork ablate` disables each in turn.

    They change the quality of a plan and the planning time, not the problem.
    """

    #: Order of least peak: annealing where the proof runs out of memory.
    least_peak_annealing: bool = True
    #: Order: exact search over executed operators and residency, which proves optima.
    exact_search: bool = True
    #: A second exact search, fifty times as long, from the best plan and the best bound found.
    long_exact_search: bool = True
    #: Order: simulated annealing.
    annealing: bool = True
    #: Bands: heights are doubled, halved or joined while that helps.
    band_refinement: bool = True
    #: Addresses: first-fit by several priorities, before any search.
    greedy_packing: bool = True
    #: Addresses: short searches on a skyline.
    skyline_search: bool = True
    #: Addresses: CP-SAT, which also proves that no packing exists.
    exact_packing: bool = True
    #: Addresses, where no packing was found: the cheapest stays are evicted.
    eviction: bool = True
    #: Transfers: fetches begin early and writes end late where the scratchpad has room.
    hidden_transfers: bool = True

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """All switches."""
        return tuple(each.name for each in fields(cls))


#: All techniques.
BEST = Techniques()


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """The options of one plan."""

    scratchpad_bytes: int
    word_bytes: int = 32  #: Width of the scratchpad and of the memory port: sizes are rounded up to it.
    order: OrderChoice = OrderChoice.FREE
    #: Whether a tensor may stream through a window instead of lying whole in the scratchpad. ``ALWAYS`` is
    #: the same as ``AUTO``: wherever it saves bytes.
    streaming: When = When.AUTO
    #: Whether operators are split into bands of rows. ``AUTO``: where whole operators do not fit, or move
    #: avoidable bytes.
    tiling: When = When.AUTO
    #: Whether neighbours may share the array (InTAR). ``AUTO``: where it saves bytes or, at equal bytes,
    #: cycles. ``ALWAYS`` is the same as ``AUTO``.
    pipelining: When = When.AUTO
    #: Criteria in order of weight, each at most once: ``bytes`` (off-chip), then optionally ``peak`` and
    #: ``transfers`` in either order; ``latency`` (predicted cycles) anywhere. Residency is decided by the
    #: criteria before latency, and by bytes. Several candidates are planned: whole and in bands, with
    #: pipelined groups and without. The best has the fewest bytes and then cycles, or, with latency first,
    #: the fewest cycles and then bytes.
    objective: tuple[str, ...] = CRITERIA
    cores: int = 2  #: Parts of the array: the most operators of a pipelined group.
    #: Multiply-accumulates a cycle of the whole array; a step's least cycles follow from it.
    macs_per_cycle: int = 4096
    #: ``seed``, ``effort``: of the search; a plan is a function of both. Twice the effort takes about twice
    #: the time.
    seed: int = 0
    effort: int = 1
    #: Safety net for each solver call; a plan that hit it says so and may differ from run to run.
    time_limit_s: float = 600.0
    techniques: Techniques = BEST  #: Enabled techniques.

    def __post_init__(self) -> None:
        check_range("scratchpad_bytes", self.scratchpad_bytes, 1, 2**32 - 1)
        check_power_of_two("word_bytes", self.word_bytes, 4, 128)
        for criterion in self.objective:
            if criterion not in CRITERIA:
                raise InputError("objective", criterion, "made of " + ", ".join(CRITERIA))
        others = [criterion for criterion in self.objective if criterion != "latency"]
        if others[:1] != ["bytes"] or len(set(self.objective)) < len(self.objective):
            legal = "each criterion at most once, and bytes before peak and transfers"
            raise InputError("objective", ",".join(self.objective), legal)
        if self.order is OrderChoice.COSMA:
            for name in ("streaming", "tiling", "pipelining"):
                if getattr(self, name) is When.ALWAYS:
                    raise InputError(name, "always", "auto or never with COSMA's program")
                object.__setattr__(self, name, When.NEVER)
        for name, least in (("cores", 1), ("macs_per_cycle", 1), ("effort", 1), ("seed", 0)):
            check_range(name, getattr(self, name), least)
        if not self.time_limit_s > 0:
            raise InputError("time_limit_s", self.time_limit_s, "above 0")

    @property
    def streams(self) -> bool:
        """Whether a tensor may stream through a window."""
        return self.streaming is not When.NEVER

    @property
    def residency_criteria(self) -> tuple[str, ...]:
        """Criteria of residency: bytes, and the criteria before latency."""
        end = self.objective.index("latency") if "latency" in self.objective else len(self.objective)
        return tuple(dict.fromkeys(("bytes", *self.objective[:end])))

    @property
    def capacity(self) -> int:
        """Scratchpad in whole words."""
        return self.scratchpad_bytes // self.word_bytes
