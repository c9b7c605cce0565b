"""One launch of the oblivious map's RTL with everything in it that might show: what the host saw of it."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest

from hw.oram.config import BLOCK_BYTES
from hw.registry import find_engine
from sim.build.design import kernel_design
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.buffers import PAGES, RESPONSES
from sim.engines.oram.cases import SMALL
from sim.engines.oram.sealing import SEALED, sealed_bytes
from sim.golden.oram.gcm import open_pages
from sim.golden.oram.leakage import leaks, page_findings, same_distribution, same_mean
from sim.memory.trace import Channel, read_trace
from sim.run.adapter import Tamper
from sim.run.launch import simulate
from sim.run.run import compare
from tests.support.oram.bus import BOARD, Bus
from tests.support.oram.mixed import mixed_launch

EACH, COMPARED = 80, 900


@dataclass
class Seen:
    """A launch: its job, what asked for what, and what the host has of it."""

    job: object
    mixed: object
    bus: Bus
    responses: np.ndarray
    archive: np.ndarray  #: Pages as they were when they were read, in order [reads, P].


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """The host keeps every page that it is asked for behind those that there are."""
    folder = tmp_path_factory.mktemp("seen")
    mixed = mixed_launch(SMALL, np.random.default_rng(5), EACH, COMPARED)
    job, engine, size = ADAPTER.job(mixed.tensors, SMALL), find_engine("oram"), SMALL.page_bytes
    reads = [page for outcome in job.played.outcomes for page in outcome.pages]
    count, kept = Counter(), []
    for number, page in enumerate(reads):
        to = (SMALL.host_pages + number) * size
        kept.append(Tamper(PAGES, page * size, count[page], to, page * size, size, 0))
        count[page] += 1
    launch = ADAPTER.launch(job, SMALL, BOARD)
    room = (SMALL.host_pages + len(reads)) * size
    buffers = [
        replace(buffer, size_bytes=room) if buffer.argument == PAGES else buffer for buffer in launch.buffers
    ]
    launch = replace(launch, buffers=tuple(buffers), tampers=tuple(kept))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(OPTIMIZE_VARIABLE, "-O0")  # the simulator of `test_engines`, too
        done = simulate(
            kernel_design(engine, SMALL, BOARD),
            engine.arguments(SMALL, BOARD),
            engine.placement(SMALL, BOARD),
            BOARD,
            launch,
            directory=folder / "run",
            expected_cycles=200_000,
            traces={BOARD.host.name: folder / "bus.trace"},
        )
    pages, archive = np.split(done.buffers[PAGES].reshape(-1, size), [SMALL.host_pages])
    found = ADAPTER.outputs(job, SMALL, {**done.buffers, PAGES: pages.reshape(-1)})
    assert compare(found, ADAPTER.golden(job, SMALL)) == ()
    bus = Bus(SMALL, launch, read_trace(folder / "bus.trace"))
    return Seen(job, mixed, bus, found["responses"], archive)


def test_the_bus_follows_from_the_labels(seen):
    """Whatever is asked for: every workload, a page that nobody touches and one that everybody does."""
    seen.bus.follows(seen.job, empty_pages=SMALL.host_pages)


def test_every_page_and_version_is_sealed_once(seen):
    """Each write is under the page's next version, no page is written as it was, nor any block of one."""
    pages = [page for outcome in seen.job.played.outcomes for page in outcome.pages]
    count, versions = Counter(), []
    for page in pages:
        count[page] += 1
        versions.append(count[page])
    numbers = [np.array(column, np.uint64) for column in (pages, versions)]
    assert open_pages(seen.job.page_gcm, *numbers, seen.archive)[1].all()
    records = seen.responses[:, SEALED : SEALED + sealed_bytes(SMALL)]
    for sealed in (seen.archive, records):
        blocks = np.ascontiguousarray(sealed).view(f"V{BLOCK_BYTES}")
        assert len(np.unique(blocks)) == blocks.size


def page_reads(seen):
    """Give pages, cycles of their reads, and the operations that read them."""
    trace, base = seen.bus.trace, seen.bus.addresses[PAGES]
    reads = trace[(trace["channel"] == Channel.AR) & (trace["port"] == 0)]
    outcomes = seen.job.played.outcomes
    operations = [number for number, outcome in enumerate(outcomes) for _ in outcome.pages]
    assert len(reads) == len(operations)
    pages = (reads["address"].astype(np.int64) - base) // SMALL.page_bytes
    return pages, reads["cycle"].astype(np.int64), np.array(operations)


def test_pages_and_gaps_are_the_same_for_a_fixed_key_and_any(seen):
    """As TVLA has it: which of the two an operation is, a coin said, so that any difference is a leak."""
    pages, cycles, operations = page_reads(seen)
    begin = seen.mixed.phases["compared"][0]
    asked = operations >= begin
    fixed = seen.mixed.fixed[operations[asked] - begin]
    before, after = np.diff(cycles, prepend=0)[asked], np.diff(cycles, append=cycles[-1])[asked]
    samples = [(values[fixed], values[~fixed]) for values in (before, after, pages[asked])]
    tests = 2 * len(samples)
    findings = [test(*pair, tests) for pair in samples for test in (same_mean, same_distribution)]
    assert leaks(findings) == []
    # Half a deviation of a mean and a fifth of a distribution would be found; the exact trace has no less.
    assert [finding.least < limit for finding in findings for limit in ()] == []
    slower = samples[1][0] + 0.5 * samples[1][1].std(), samples[1][1]
    assert leaks([same_mean(*slower, tests)])


def test_pages_are_uniform_and_independent(seen):
    pages, _, operations = page_reads(seen)
    phases = seen.mixed.phases
    for name in ("uniform", "same", "scan", "zipf", "burst", "churn", "compared"):
        part = pages[np.isin(operations, phases[name])]
        assert leaks(page_findings(part[:, None], SMALL.host_pages)) == [], name
