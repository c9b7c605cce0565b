"""The timing estimate of a whole kernel, cached by its Verilog and its budget."""

import inspect
import pickle
from pathlib import Path

import sim.timing
from hw.board import Board
from hw.board.regions import Regions
from sim.build import synthesis, yosys
from sim.build.cache import BuildCache
from sim.host.digest import key_of, source_digest
from sim.host.progress import ProgressLine
from sim.timing.estimate import Estimate, estimate

_ESTIMATE = "estimate.pickle"
#: Modules that an estimate depends on, beside `sim.timing`.
_USED = (yosys, synthesis)


def kernel_timing(
    verilog: str, top: str, board: Board, *, regions: Regions = (), worst: int = 10
) -> Estimate:
    """Return the result of `sim.timing.estimate.estimate` for a kernel on a board, cached.

    Raises `ToolError` in the same cases.
    """
    limits = f"{board.path_budget_ps} {board.budget} {board.user} {board.slrs} {board.memory.slr} {regions}"
    sources = source_digest(sim.timing) + "".join(map(inspect.getsource, _USED))

    def make(folder: Path) -> None:
        with ProgressLine("Estimating paths"):
            found = estimate(verilog, top, board, regions=regions, worst=worst)
        (folder / _ESTIMATE).write_bytes(pickle.dumps(found))

    key = key_of(["timing", verilog, top, limits, f"{worst}", sources])
    entry, _ = BuildCache("timing estimates").get(key, make)
    found: Estimate = pickle.loads((entry / _ESTIMATE).read_bytes())
    return found
