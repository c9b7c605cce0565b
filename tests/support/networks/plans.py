"""How networks are planned in tests."""

from hw.scheduler.plan.options import Techniques

#: Techniques of a second at most; plans of small scratchpads move more bytes than they must.
QUICK = Techniques(
    least_peak_annealing=False,
    exact_search=False,
    long_exact_search=False,
    annealing=False,
    exact_packing=False,
)
