"""Published attention schedules as formulas: cycles and bytes of the same work on as many multipliers.

Each module has one schedule, its source and the symbols of that source.  All of them get what favours them:
no latency of memory, no filling or draining of a pipeline unless the source counts it, all of the board's
bandwidth, and 8-bit operands and intermediate matrices where the original has 16 bits.
"""

from sim.engines.attention.baselines.fsa import fsa
from sim.engines.attention.baselines.fusemax import fusemax
from sim.engines.attention.baselines.ita import ita
from sim.engines.attention.baselines.spilled import three_pass, two_pass
from sim.engines.attention.baselines.work import Cost, Machine, Work, flash_law_bytes

__all__ = ["Cost", "Machine", "Work", "flash_law_bytes", "fsa", "fusemax", "ita", "three_pass", "two_pass"]
