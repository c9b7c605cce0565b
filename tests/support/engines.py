"""Every engine at the size that `make test` simulates."""

from hw.board import load_board
from hw.registry import ENGINES, find_engine
from sim.build.design import kernel_design
from sim.run.run import find_adapter


def small_engines():
    """Return name, board and configuration of each engine's first regression case."""
    for name in sorted(ENGINES):
        case = next(iter(find_adapter(name).cases()))
        yield name, case.board, case.config


def small_design(name):
    """Return the design of an engine at that size: generated once for all tests and the regression."""
    (board, config), *_ = [rest for found, *rest in small_engines() if found == name]
    return kernel_design(find_engine(name), config, load_board(board))
