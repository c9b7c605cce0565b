"""A host that changes pages in the simulator's memory: detected at the first touch; no response until
reset, and HBM is erased.
"""

from dataclasses import replace

import numpy as np
import pytest

from hw.oram.core.layouts import Code
from hw.oram.driver.buffers import PAGES, RESPONSES
from hw.oram.kernel.arguments import Fault
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.memory.trace import Channel
from sim.run.run import run
from tests.support.oram.bus import BOARD, Bus, simulated
from tests.support.oram.images import is_erased
from tests.support.oram.tampers import flip, replay, swap, truncate

#: The first configuration of the regression, whose simulator is built anyway.
CASE = next(iter(ADAPTER.cases()))
CONFIG = CASE.config
PAGE, OPERATIONS = 5, 80
#: Attacks, and the touch of the page that detects them.
DEEDS = {
    "flip": (flip(CONFIG, PAGE, 1, 100, 3), 1),
    "flip of a tag": (flip(CONFIG, PAGE, 2, 15, 7), 2),
    "swap": (swap(CONFIG, PAGE, 1, PAGE + 1), 1),
    "replay": (replay(CONFIG, PAGE, 1), 1),
    "truncation": (truncate(CONFIG, PAGE, 0, 200), 0),
}


def operations():
    rng = np.random.default_rng(3)
    return {
        "codes": np.where(np.arange(OPERATIONS) < 60, Code.LOAD, Code.GET),
        "keys": rng.integers(40, size=OPERATIONS),
        "values": rng.integers(256, size=(OPERATIONS, CONFIG.value_bytes)),
    }


@pytest.mark.parametrize("deed", DEEDS)
def test_changed_pages_are_found_at_their_first_touch(deed, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # as the regression does
    rows, touch = DEEDS[deed]
    job = ADAPTER.job(operations() | {"tampers": rows, "state": np.array(True)}, CONFIG)
    pages = ADAPTER.workload(job, CONFIG).pages
    found = [n for n, page in enumerate(pages) if page == PAGE][touch]
    assert found < OPERATIONS - 20
    launch = replace(ADAPTER.launch(job, CONFIG, BOARD), then=({"initialize": 0}, {"initialize": 1}))
    done, trace = simulated(CONFIG, launch, tmp_path, memory_mode="fast")
    statuses = [call.counters["status"] for call in done.answer.calls]
    assert statuses == [Fault.PAGE, Fault.PAGE | Fault.EMPTY, Fault.PAGE | Fault.AGAIN]
    assert [call.counters["erased"] for call in done.answer.calls] == [1, 1, 1]
    assert is_erased(CONFIG, done.buffers)
    for later in done.answer.calls[1:]:
        assert not any(count for name, count in later.counters.items() if name.endswith("_bytes"))
    own = trace["address"] == Bus(CONFIG, launch, trace).addresses[PAGES] + PAGE * CONFIG.page_bytes
    written = np.count_nonzero(own & (trace["channel"] == Channel.AW))
    assert written == 1 + touch, "empty, and at the touches before: it is not written back"
    responses = done.buffers[RESPONSES].reshape(OPERATIONS, -1)
    right = (responses == ADAPTER.golden(job, CONFIG)["responses"]).all(axis=1)
    answered = int(right.sum())
    assert right[:answered].all(), "responses come in order"
    assert answered <= found, "the operation that touched it has no answer"
    unwritten = responses[answered:]
    assert (unwritten == unwritten[0, 0]).all(), "there are no others"
    assert answered >= found - CONFIG.response_records


def test_a_traced_run_says_why_the_map_stopped(tmp_path, monkeypatch):
    """Its trace is not compared: the bus of a stopped map ends early."""
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")
    rows, _touch = DEEDS["truncation"]
    result = run(
        "oram",
        CONFIG,
        BOARD,
        operations() | {"tampers": rows},
        directory=tmp_path,
        memory_mode="fast",
        traces={BOARD.host.name: tmp_path / "bus"},
    )
    assert any("PAGE: a page is not the one that was written" in line for line in result.mismatches)
    assert not any("bus" in line for line in result.mismatches)
