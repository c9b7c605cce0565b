"""Every engine at the size that `make test` simulates."""

from hw.registry import ENGINES
from sim.run.run import find_adapter


def small_engines():
    """Give name, board and configuration of each engine's first regression case."""
    for name in sorted(ENGINES):
        case = next(iter(find_adapter(name).cases()))
        yield name, case.board, case.config
