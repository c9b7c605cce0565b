"""One network in one scratchpad: traffic of the planner and of the baselines."""

from collections.abc import Mapping
from dataclasses import dataclass

from hw.scheduler.planner.baselines import Allocation, Greedy, Replacement, method_name

#: COSMA's baseline with first-fit addresses, and with no words lost to fragmentation.
COSMA = method_name(Replacement.BELADY, Allocation.FIRST_FIT)
IDEAL = method_name(Replacement.BELADY, Allocation.IDEAL)
GREEDY = Greedy.AS_IT_COMES.value
#: Kinds of plans: COSMA's model, and all techniques of the planner.
WHOLE, FULL = "whole tensors", "all techniques"


@dataclass(frozen=True, kw_only=True)
class PlanFigures:
    """The figures of one plan."""

    #: Bytes beyond the network's compulsory ones, with the parameters that bands read again.
    avoidable_bytes: int
    claim: str  #: The certificate's claim, or ``optimal``, for the network before it was cut into bands.
    bound_avoidable_bytes: int  #: Lower bound of all plans of this kind, in any order.
    predicted_cycles: int
    seconds: float  #: Time of `hw.scheduler.plan_model.plan_model`.

    @property
    def proven(self) -> bool:
        """Whether no plan of its kind moves less."""
        return self.claim == "optimal"


@dataclass(frozen=True, kw_only=True)
class PlanRow:
    """One network in one scratchpad."""

    graph: str
    budget: str  #: The scratchpad's name: ``M_R``, ``M_H``, ``0.5M_R``, ``512KiB`` ...
    scratchpad_bytes: int
    #: Avoidable bytes of each baseline, the better of its two orders; only those that are possible.
    baselines: Mapping[str, int]
    full: PlanFigures  #: The plan with all techniques: bands, windows, pipelines.
    #: The plan with whole tensors only, which is COSMA's model; None where operators do not fit whole.
    whole: PlanFigures | None
    key: str = ""  #: Digest of the row's inputs; a row of the same key is not computed again.

    @property
    def place(self) -> tuple[str, str]:
        """Graph and budget."""
        return self.graph, self.budget

    @property
    def rival(self) -> str:
        """The baseline for comparison: COSMA's, or greedy where operators do not fit whole."""
        return COSMA if COSMA in self.baselines else GREEDY

    @property
    def plans(self) -> dict[str, PlanFigures]:
        """Its plans by kind."""
        return ({WHOLE: self.whole} if self.whole else {}) | {FULL: self.full}

    def reduction(self, method: str, kind: str) -> float | None:
        """Return the share of a baseline's avoidable bytes that a plan saves; negative when it moves more.

        None without such a plan, and where the baseline is impossible or moves nothing.
        """
        moved, plan = self.baselines.get(method, 0), self.plans.get(kind)
        return 1 - plan.avoidable_bytes / moved if moved and plan else None
