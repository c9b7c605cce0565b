"""What holds for all tests: the runs of `make test` are short, so their simulators are not optimized."""

import os

import pytest

from sim.build.simulator import OPTIMIZE_VARIABLE


def pytest_configure(config: pytest.Config) -> None:
    """Leave optimizing to the soak, whose runs are long."""
    if config.option.markexpr == "not soak":
        os.environ.setdefault(OPTIMIZE_VARIABLE, "-O0")
