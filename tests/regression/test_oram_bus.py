"""The host's view of the oblivious map's RTL: a function of labels and of the host alone, to the cycle."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest

from hw.oram.config import BLOCK_BYTES
from hw.oram.driver.buffers import PAGES
from hw.oram.driver.sealing import SEALED, sealed_bytes
from hw.oram.kernel.arguments import PAGE_PORT
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.cases import SMALL
from sim.golden.oram.leakage import leaks, page_findings, same_distribution, same_mean
from sim.memory.trace import Channel
from sim.run.adapter import Tamper
from sim.run.run import compare
from tests.support.oram.bus import BOARD, Bus, simulated
from tests.support.oram.images import open_pages
from tests.support.oram.mixed import TOLD, Mixed, mixed_launch

#: A configuration, a memory, and the operations of each part of `mixed_launch`.
LAUNCHES = [
    pytest.param((SMALL, "model", 24, 240), id="small"),
    *(
        pytest.param((config, memory, 80, 900), id=f"{number}-{memory}", marks=pytest.mark.soak)
        for number, config in enumerate(dict.fromkeys(case.config for case in ADAPTER.cases()))
        for memory in ("model", "fast")
    ),
]


@pytest.fixture(autouse=True)
def short_launches(monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # the simulator of `test_engines`, too


@dataclass
class Seen:
    """A launch and the host's view of it.

    Members
    -------
    archive
        Pages at their reads, in order [reads, P].
    page, cycle, operation
        Of each read of a page.
    """

    config: object
    job: object
    mixed: Mixed
    bus: Bus
    responses: np.ndarray
    archive: np.ndarray

    def __post_init__(self):
        trace, size = self.bus.trace, self.config.page_bytes
        on_port = trace["port"] == self.bus.ports.index(PAGE_PORT)
        reads = trace[on_port & (trace["channel"] == Channel.AR)]
        offset = reads["address"].astype(np.int64) - self.bus.addresses[PAGES]
        begin = offset % size == 0
        self.page, self.cycle = offset[begin] // size, reads["cycle"][begin].astype(np.int64)
        outcomes = self.job.played.outcomes
        self.operation = np.repeat(np.arange(len(outcomes)), [len(outcome.pages) for outcome in outcomes])
        assert len(self.operation) == len(self.page)


@pytest.fixture(scope="module", params=LAUNCHES)
def seen(request, tmp_path_factory):
    """A host that archives every page that is read, behind the existing pages."""
    config, memory, each, compared = request.param
    mixed = mixed_launch(config, np.random.default_rng(5), each, compared)
    job, size = ADAPTER.job(mixed.tensors, config), config.page_bytes
    count, kept = Counter(), []
    for outcome in job.played.outcomes:
        for page in outcome.pages:
            to = (config.host_pages + len(kept)) * size
            kept.append(Tamper(PAGES, page * size, count[page], to, page * size, size, 0))
            count[page] += 1
    launch = ADAPTER.launch(job, config, BOARD)
    room = (config.host_pages + len(kept)) * size
    buffers = [replace(one, size_bytes=room) if one.argument == PAGES else one for one in launch.buffers]
    launch = replace(launch, buffers=tuple(buffers), tampers=tuple(kept))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OPTIMIZE_VARIABLE, "-O0")
        done, trace = simulated(config, launch, tmp_path_factory.mktemp("seen"), memory_mode=memory)
    pages, archive = np.split(done.buffers[PAGES].reshape(-1, size), [config.host_pages])
    found = ADAPTER.outputs(job, config, {**done.buffers, PAGES: pages.reshape(-1)})
    assert compare(found, ADAPTER.golden(job, config)) == ()
    return Seen(config, job, mixed, Bus(config, launch, trace), found["responses"], archive)


def test_the_bus_follows_from_the_labels(seen):
    """Whatever the commands: every workload, a page that nobody touches and one that everybody does."""
    seen.bus.follows(seen.job, empty_pages=seen.config.host_pages)


def test_every_page_and_version_is_sealed_once(seen):
    """Each write has a version of its own; no block is written twice, and none of a response.

    A page that is read while writes of it are in flight has an older version than its own count of reads.
    """
    count, most = Counter(), []
    for page in seen.page.tolist():
        count[page] += 1
        most.append(count[page])
    versions = np.array(most, np.uint64)
    pages, unknown = seen.page.astype(np.uint64), np.arange(len(most))
    while len(unknown):
        genuine = open_pages(seen.job.page_gcm, pages[unknown], versions[unknown], seen.archive[unknown])[1]
        unknown = unknown[~genuine]
        assert versions[unknown].all(), "every page opens under one of its versions"
        versions[unknown] -= 1
    assert np.count_nonzero(versions < most), "some are read while in flight"
    _, first, again = np.unique(pages << 32 | versions, return_index=True, return_inverse=True)
    np.testing.assert_array_equal(seen.archive[first][again], seen.archive)
    answers = seen.responses[:, SEALED : SEALED + sealed_bytes(seen.config)]
    for sealed in (seen.archive[first], answers):
        blocks = np.ascontiguousarray(sealed).view(f"V{BLOCK_BYTES}")
        assert len(np.unique(blocks)) == blocks.size


def test_a_fixed_key_is_not_told_from_any(seen):
    """A coin chose which of the two an operation is, so any difference of pages or gaps is a leak (TVLA).

    Shifts of a deviation are detected, in the soak of half of one. A bus equal to the expected one to the
    cycle leaves no room for less.
    """
    begin = seen.mixed.phases["compared"][0]
    asked = seen.operation >= begin
    fixed = seen.mixed.fixed[seen.operation[asked] - begin]
    before = np.diff(seen.cycle, prepend=seen.cycle[0])[asked]
    after = np.diff(seen.cycle, append=seen.cycle[-1])[asked]
    samples = [(values[fixed], values[~fixed]) for values in (before, after, seen.page[asked])]
    tests = 2 * len(samples)
    findings = [test(*pair, tests) for pair in samples for test in (same_mean, same_distribution)]
    assert leaks(findings) == []
    assert max(finding.least for finding in findings) < 1
    for one, other in samples:
        shifted = one + other.std(), other
        assert leaks([same_mean(*shifted, tests)])


def test_pages_are_uniform_and_independent(seen):
    """For all operations that do not know labels; LOADs touch pages in order."""
    told = np.concatenate([seen.mixed.phases[name] for name in TOLD])
    pages = seen.page[~np.isin(seen.operation, told)]
    findings = page_findings(pages[:, None], seen.config.host_pages)
    assert leaks(findings) == []
