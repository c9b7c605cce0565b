"""Every engine at the size that `make test` simulates."""

import importlib

from hw.registry import ENGINES


def small_engines():
    """Give name, board and configuration of each engine's first regression case."""
    for name in sorted(ENGINES):
        case = next(iter(importlib.import_module(f"sim.engines.{name}.adapter").ADAPTER.cases()))
        yield name, case.board, case.config
