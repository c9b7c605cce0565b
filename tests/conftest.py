"""What holds for all tests: short runs, so simulators are not optimized; what takes longest comes first."""

import gc
import os
from pathlib import Path

import pytest

from sim.build.simulator import OPTIMIZE_VARIABLE

_TESTS = Path(__file__).parent
_GROUPS = {
    "hw/scheduler/planner/order": "searches",
    "hw/scheduler/planner/address": "searches",
    "hw/scheduler/kernel": "timeline",
    "hw/scheduler/program": "timeline",
    "sim/memory": "memory",
}


def pytest_configure(config: pytest.Config) -> None:
    """Leave optimizing to the soak; collect garbage seldom, since designs are many objects that stay."""
    gc.set_threshold(100_000, 20, 100)
    if config.option.markexpr == "not soak":
        os.environ.setdefault(OPTIMIZE_VARIABLE, "-O0")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the groups: their tests share what takes long to build, and no worker is to end with one.

    Folders that all compile the same are groups: searches over orders, the timing model, the memory models.
    """
    for item in items:
        for folder, group in _GROUPS.items():
            if _TESTS / folder in item.path.parents:
                item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
    for item in items:
        mark = item.get_closest_marker("xdist_group")
        if mark is not None and hasattr(item.config, "workerinput"):
            # What pytest-xdist 3.8 schedules by; it sets an attribute that pytest 9.2 does not read.
            item._id = type(item.id).parse(f"{item.nodeid}@{mark.args[0]}")


def pytest_collection_finish() -> None:
    """Leave modules and tests to no collection of garbage."""
    gc.freeze()
