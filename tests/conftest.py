"""What holds for all tests: short runs, so simulators are not optimized; what takes longest comes first."""

import gc
import os
import signal

import hypothesis
import pytest
from xdist.scheduler import LoadScopeScheduling

from sim.build.simulator import OPTIMIZE_VARIABLE
from tests.support.gateware import quick

#: What takes longest, longest first, by the start of node ids. What stands here runs on one worker: the tests
#: of these folders compile the same searches, timing model or memories. So do those of any other file.
_FIRST = (
    "tests/regression/test_engines.py",
    "tests/hw/attention/core/test_core.py",
    "tests/hw/scheduler/planner/order/",
    "tests/regression/test_attention_figures.py",
    "tests/regression/test_plans.py",
    "tests/hw/scheduler/planner/address/",
    "tests/sim/timing/test_blocks.py",
    "tests/hw/attention/core/row/test_cell.py",
    "tests/hw/scheduler/kernel/",
    "tests/examples/test_vadd.py",
    "tests/hw/test_verilog.py",
    "tests/hw/attention/movers/test_movers.py",
    "tests/formal/test_dma.py",
    "tests/sim/cli/test_resources.py",
    "tests/sim/memory/",
    "tests/hw/scheduler/program/",
)
#: Every test of it builds a simulator of its own, for minutes: these are for all workers.
_APART = "tests/regression/test_engines.py"


def _place(nodeid: str) -> int:
    return next((at for at, start in enumerate(_FIRST) if nodeid.startswith(start)), len(_FIRST))


class _Scheduling(LoadScopeScheduling):
    """Gives a worker a file, or what stands in `_FIRST`, at a time."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_APART):
            return nodeid
        return (*_FIRST, nodeid.partition("::")[0])[_place(nodeid)]


def pytest_configure(config: pytest.Config) -> None:
    """Leave optimizing to the soak; collect garbage seldom, since designs are many objects that stay.

    In the suite Hypothesis draws the same examples every time: no failure by chance.  A shell has what it
    starts in the background, and all that this starts, ignore Ctrl-C; tests of it need what a user has.
    """
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(100_000, 20, 100)
    quick.install()
    if config.option.markexpr == "not soak":
        os.environ.setdefault(OPTIMIZE_VARIABLE, "-O0")
        hypothesis.settings.register_profile("suite", derandomize=True)
        hypothesis.settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest: no worker is to end with it."""
    items.sort(key=lambda item: _place(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """Share out whole files."""
    return _Scheduling(config, log)


def pytest_collection_finish() -> None:
    """Leave modules and tests to no collection of garbage."""
    gc.freeze()
