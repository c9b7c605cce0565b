"""A host that changes pages in the simulator's memory: detected at the first touch that takes them from
there; no response until reset, and HBM is erased.
"""

from collections import Counter
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
OPERATIONS = 300
#: Operations within which a page is in flight, with a margin.
IN_FLIGHT = 100
#: Attacks on a page at one of its reads.
DEEDS = {
    "flip": lambda page, read: flip(CONFIG, page, read, 100, 3),
    "flip of a tag": lambda page, read: flip(CONFIG, page, read, 15, 7),
    "swap": lambda page, read: swap(CONFIG, page, read, page + 1),
    "replay": lambda page, read: replay(CONFIG, page, read),
    "truncation": lambda page, read: truncate(CONFIG, page, read, 200),
}
#: Of which these are in `make test`.
QUICK = {"flip of a tag", "replay"}


def operations():
    rng = np.random.default_rng(3)
    return {
        "codes": np.where(np.arange(OPERATIONS) < 60, Code.LOAD, Code.GET),
        "keys": rng.integers(40, size=OPERATIONS),
        "values": rng.integers(256, size=(OPERATIONS, CONFIG.value_bytes)),
    }


def reads(job):
    """Return page, number among its reads, and operation of each but a page's first; and the operations since
    the read before.
    """
    before, count, found = {}, Counter(), []
    for n, page in enumerate(ADAPTER.workload(job, CONFIG).pages):
        if page is not None:
            if page in before:
                found.append((page, count[page], n, n - before[page]))
            before[page], count[page] = n, count[page] + 1
    return found


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    "deed", [pytest.param(deed, marks=[] if deed in QUICK else pytest.mark.soak) for deed in DEEDS]
)
def test_changed_pages_are_found_when_they_are_taken(deed, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # as the regression does
    settled = [
        read[:3]
        for read in reads(ADAPTER.job(operations(), CONFIG))
        if read[3] > IN_FLIGHT and read[0] + 1 < CONFIG.host_pages and read[2] < OPERATIONS - 20
    ]
    page, touch, found = settled[0]
    job = ADAPTER.job(operations() | {"tampers": DEEDS[deed](page, touch), "state": np.array(True)}, CONFIG)
    launch = replace(ADAPTER.launch(job, CONFIG, BOARD), then=({"initialize": 0}, {"initialize": 1}))
    done, trace = simulated(CONFIG, launch, tmp_path, memory_mode="fast")
    statuses = [call.counters["status"] for call in done.answer.calls]
    assert statuses == [Fault.PAGE, Fault.PAGE | Fault.EMPTY, Fault.PAGE | Fault.AGAIN]
    assert [call.counters["erased"] for call in done.answer.calls] == [1, 1, 1]
    assert is_erased(CONFIG, done.buffers)
    for later in done.answer.calls[1:]:
        assert not any(count for name, count in later.counters.items() if name.endswith("_bytes"))
    own = trace["address"] == Bus(CONFIG, launch, trace).addresses[PAGES] + page * CONFIG.page_bytes
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


@pytest.mark.sample(1)
@pytest.mark.parametrize("deed", ["flip", "truncation"])
def test_a_page_in_flight_is_not_taken_from_the_host(deed, tmp_path, monkeypatch):
    """Its content on the way in is ignored, and its write replaces the changed one."""
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")
    page, read, *_ = next(read for read in reads(ADAPTER.job(operations(), CONFIG)) if read[3] < 30)
    tensors = operations() | {"tampers": DEEDS[deed](page, read)}
    assert run("oram", CONFIG, BOARD, tensors, directory=tmp_path, memory_mode="fast").bit_exact


def test_a_traced_run_says_why_the_map_stopped(tmp_path, monkeypatch):
    """Its trace is not compared: the bus of a stopped map ends early."""
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")
    page, read, *_ = next(read for read in reads(ADAPTER.job(operations(), CONFIG)) if read[3] > IN_FLIGHT)
    rows = DEEDS["truncation"](page, read)
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
