"""What a planner is asked for."""

from __future__ import annotations

import enum
from dataclasses import dataclass, fields

from hw.errors import InputError

#: What a plan may be judged by, as it is unless something else is asked for; see `PlanOptions.objective`.
CRITERIA = ("bytes", "peak", "transfers", "latency")
#: What it is judged by where the board is known: its predicted cycles weigh traffic against computation.
ON_BOARD = ("latency", "bytes", "peak", "transfers")


class OrderChoice(enum.StrEnum):
    """Which orders of operators are considered.

    ``FREE``: all. ``DEFAULT``: only the order the graph lists (COSMA's fixed schedule). ``MIN_PEAK``: only
    one of least peak (COSMA's MPMF). ``COSMA``: all, by COSMA's published integer program, for the few
    operators it can be solved for; operators then lie whole in the scratchpad, one after the other.
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
    """What the planner's stages may use; all of it unless switched off, which `loomwork ablate` does in turn.

    None changes what is asked for, only how well it is met, and how fast.
    """

    #: Order of least peak: annealing where its proof runs out of room.
    least_peak_annealing: bool = True
    #: Order: search over what was executed and what lies where, which proves optima.
    exact_search: bool = True
    #: The same once more, fifty times as long, with the best plan that was found and the best bound.
    long_exact_search: bool = True
    #: Order: simulated annealing, which finds good ones.
    annealing: bool = True
    #: Bands: those of some tensors are doubled, halved or joined as long as that helps.
    band_refinement: bool = True
    #: Addresses: first-fit by several priorities, before any search.
    greedy_packing: bool = True
    #: Addresses: short searches on a skyline.
    skyline_search: bool = True
    #: Addresses: CP-SAT, which also proves that nothing fits.
    exact_packing: bool = True
    #: Addresses, where none were found: the stays that cost least are not kept.
    eviction: bool = True
    #: Transfers: fetches begin early and writes end late where their words are free.
    hidden_transfers: bool = True

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """All switches."""
        return tuple(each.name for each in fields(cls))


#: All techniques.
BEST = Techniques()


@dataclass(frozen=True, kw_only=True)
class PlanOptions:
    """What a planner is asked for."""

    scratchpad_bytes: int
    word_bytes: int = 32  #: Width of the scratchpad and of the memory port: sizes are rounded up to it.
    order: OrderChoice = OrderChoice.FREE
    #: Whether a tensor may pass through a window instead of lying whole in the scratchpad. ``ALWAYS`` is as
    #: ``AUTO``: wherever it saves bytes.
    streaming: When = When.AUTO
    #: Whether operators are split into bands of rows. ``AUTO``: where whole operators do not fit, or move
    #: avoidable bytes.
    tiling: When = When.AUTO
    #: Whether neighbours may share the array (InTAR). ``AUTO``: where bytes are saved or, at equal bytes,
    #: cycles. ``ALWAYS`` is as ``AUTO``.
    pipelining: When = When.AUTO
    #: Criteria in order of weight, each at most once: ``bytes`` (off-chip), then ``peak`` and ``transfers``
    #: as far as wanted, in either order; ``latency`` (predicted cycles) anywhere. Residency is decided by
    #: bytes and what else comes before latency. Several plans are made (whole and in bands, with pipelined
    #: groups and without), and the best is given: of the fewest bytes and then cycles, or the fewest cycles
    #: and then bytes where latency is the first.
    objective: tuple[str, ...] = CRITERIA
    cores: int = 2  #: Parts the array can be split into: the most operators of a pipelined group.
    #: Multiply-accumulates of the whole array: what a step's least cycles follow from.
    macs_per_cycle: int = 4096
    #: ``seed``, ``effort``: of the search: equal values give equal plans. Effort 1 is the default; twice the
    #: effort, about twice the time.
    seed: int = 0
    effort: int = 1
    #: Safety net for each solver call; a plan that met it says so and may differ from run to run.
    time_limit_s: float = 600.0
    techniques: Techniques = BEST  #: Means that may be used.

    def __post_init__(self) -> None:
        if self.scratchpad_bytes < 1 or self.scratchpad_bytes >= 2**32:
            raise InputError("scratchpad_bytes", self.scratchpad_bytes, f"from 1 to {2**32 - 1}")
        if not 4 <= self.word_bytes <= 128 or self.word_bytes & (self.word_bytes - 1):
            raise InputError("word_bytes", self.word_bytes, "a power of two from 4 to 128")
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
            if getattr(self, name) < least:
                raise InputError(name, getattr(self, name), f"at least {least}")
        if not self.time_limit_s > 0:
            raise InputError("time_limit_s", self.time_limit_s, "above 0")

    @property
    def streams(self) -> bool:
        """Whether a tensor may pass through a window."""
        return self.streaming is not When.NEVER

    @property
    def residency_criteria(self) -> tuple[str, ...]:
        """What residency is decided by: bytes, and what counts before latency."""
        end = self.objective.index("latency") if "latency" in self.objective else len(self.objective)
        return tuple(dict.fromkeys(("bytes", *self.objective[:end])))

    @property
    def capacity(self) -> int:
        """Scratchpad in whole words."""
        return self.scratchpad_bytes // self.word_bytes
