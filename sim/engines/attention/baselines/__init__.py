"""Published attention schedules as formulas: cycles and bytes of the same work on as many multipliers.

Each module has one schedule, its source and the symbols of that source.  Open assumptions favour the
schedules. Memory has no latency and all of the board's bandwidth. Pipelines fill and drain in no time, unless
the source counts it. Operands and intermediate matrices have 8 bits where the original has 16.
"""

from collections.abc import Callable, Mapping

from sim.engines.attention.baselines.fsa import fsa
from sim.engines.attention.baselines.fusemax import fusemax
from sim.engines.attention.baselines.ita import ita
from sim.engines.attention.baselines.spilled import three_pass, two_pass
from sim.engines.attention.baselines.work import Cost, Machine, Work

#: Published schedules by name.
SCHEDULES: Mapping[str, Callable[[Work, Machine], Cost]] = {
    "FuseMax": fusemax,
    "FSA": fsa,
    "ITA": ita,
    "two passes": two_pass,
    "three passes, unfused": three_pass,
}
#: Schedules that keep the matrix of scores in memory.
SPILLING = ("ITA", "two passes", "three passes, unfused")
