"""Settings of all tests: short runs, so simulators are not optimized; the longest files first."""

import gc
import os
import signal
from collections import defaultdict

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers
from xdist.scheduler import LoadScopeScheduling

from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.host import progress
from tests.support.gateware import quick

#: The longest tests first, by the start of node ids. Each entry runs on one worker: the tests of these
#: folders compile the same searches, timing model or memories. So do those of any other file.
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
#: Each test of these files builds a simulator, or runs it, for minutes: they are spread over all workers.
_APART = (
    "tests/regression/test_engines.py",
    "tests/regression/test_control_only.py",
    "tests/regression/test_metrics.py",
    "tests/regression/test_oram_million.py",
)


def _place(nodeid: str) -> int:
    return next((at for at, start in enumerate(_FIRST) if nodeid.startswith(start)), len(_FIRST))


class _Scheduling(LoadScopeScheduling):
    """Assigns a worker a file, or an entry of `_FIRST`, at a time."""

    def _split_scope(self, nodeid: str) -> str:
        if nodeid.startswith(_APART):
            return nodeid
        return (*_FIRST, nodeid.partition("::")[0])[_place(nodeid)]


def pytest_configure(config: pytest.Config) -> None:
    """Leave optimizing to the soak; collect garbage seldom, since designs are many lasting objects.

    In the suite Hypothesis draws the same examples every time: no failure by chance.  It reads no constants
    from loaded modules: reading takes 10 s, and modules differ between workers.  Processes in the background
    of a shell ignore Ctrl-C; tests of Ctrl-C need the user's handler.
    """
    # Refusals are one line, however loaded the machine is.
    progress._FIRST_SECONDS = progress.SILENT_SECONDS = 600.0
    signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.set_threshold(1_000_000, 50, 100)
    quick.install()
    if config.option.markexpr == "not soak":
        os.environ.setdefault(OPTIMIZE_VARIABLE, "-O0")
        hypothesis.settings.register_profile("suite", derandomize=True)
        hypothesis.settings.load_profile("suite")
        providers._get_local_constants = lambda: providers._local_constants


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the cases that no sample has to the soak. Begin with the longest tests: no worker is to end
    with one.
    """
    sampled = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sample") and not item.get_closest_marker("soak"):
            sampled[item.nodeid.partition("[")[0]].append(item)
    for cases in sampled.values():
        (count,) = cases[0].get_closest_marker("sample").args
        chosen = {(2 * n + 1) * len(cases) // (2 * count) for n in range(count)}
        for at, case in enumerate(cases):
            if at not in chosen:
                case.add_marker("soak")
    items.sort(key=lambda item: _place(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """Assign whole files to workers."""
    return _Scheduling(config, log)


def pytest_collection_finish() -> None:
    """Exclude modules and tests from garbage collection."""
    gc.freeze()
