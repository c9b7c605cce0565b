"""Lookups in a small table through the oblivious map's RTL, and the page about the host's view."""

import re
from dataclasses import replace

import numpy as np
import pytest

from hw.board import load_board
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.cases import SMALL
from sim.engines.oram.demo import conclusions
from sim.engines.oram.lookups import LookupPhase, Lookups
from sim.engines.oram.lookups_page import page_counts, write_lookups
from sim.memory.trace import Channel, accesses, read_trace
from sim.run.run import run

BOARD = load_board("u55c")
ROWS = 200
SENTENCES = ([3, 4, 3, 190], [7, 7, 7, 7])


@pytest.fixture(scope="module")
def looked_up(tmp_path_factory):
    rng = np.random.default_rng(0)
    lookups = Lookups(
        rng.integers(-128, 128, size=(ROWS, SMALL.value_bytes)).astype(np.int8),
        [
            *(LookupPhase(f"sentence {n}", np.array(rows)) for n, rows in enumerate(SENTENCES)),
            LookupPhase("skewed", rng.integers(20, size=150)),
            LookupPhase("uniform", rng.integers(ROWS, size=150)),
        ],
    )
    directory = tmp_path_factory.mktemp("lookups")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # the simulator of `test_engines`, too
        done = run(
            "oram", SMALL, BOARD, lookups.tensors,
            directory=directory, traces={"host": directory / "bus.trace"},
        )  # fmt: skip
    return lookups, done


def test_all_rows_are_found(looked_up):
    lookups, done = looked_up
    assert done.bit_exact
    assert lookups.right(done) == [4, 4, 150, 150]
    other = Lookups(lookups.table.copy(), lookups.phases)
    other.table[7] ^= 1
    skewed, uniform = ((phase.rows != 7).sum() for phase in lookups.phases[2:])
    assert other.right(done) == [4, 0, skewed, uniform]


def test_the_host_saw_the_labels_pages(looked_up):
    lookups, done = looked_up
    outcomes = done.job.played.outcomes
    ends = np.cumsum([0, ROWS, *(len(phase.rows) for phase in lookups.phases)])
    for seen, start, end in zip(lookups.seen(done), ends, ends[1:], strict=False):
        assert seen.pages.tolist() == [page for outcome in outcomes[start:end] for page in outcome.pages]
        assert (np.diff(seen.reads) > 0).all()
        assert (seen.reads < seen.writes).all()
        assert page_counts(SMALL, seen).sum() == len(seen.pages)
    first, *_ = lookups.pages(done)
    assert first == [outcome.pages for outcome in outcomes[ROWS : ROWS + 4]]


def test_a_burst_elsewhere_or_later_is_found(looked_up, tmp_path):
    """The last page read, and its neighbour; a response a cycle later; an extra burst."""
    _, done = looked_up
    trace, first = read_trace(done.traces["host"]), done.addresses["pages"]
    ends = first + SMALL.host_pages * SMALL.page_bytes
    reads = np.flatnonzero(
        (trace["channel"] == Channel.AR) & (trace["address"] >= first) & (trace["address"] < ends)
    )
    last = accesses(trace)[-1]
    assert last["channel"] == Channel.AW
    elsewhere, later = trace.copy(), trace.copy()
    elsewhere["address"][reads[-1]] ^= SMALL.page_bytes
    later["cycle"][np.flatnonzero(trace == last)[-1]] += 1
    for wrong in (elsewhere, later, np.append(trace, last)):
        wrong.tofile(tmp_path / "bus.trace")
        [line] = ADAPTER.trace_mismatches(done.job, SMALL, tmp_path / "bus.trace", done.addresses)
        assert line.startswith("bus differs at burst ")
    assert ADAPTER.trace_mismatches(done.job, SMALL, done.traces["host"], done.addresses) == ()


def test_the_page_and_the_lines_say_it(looked_up, tmp_path):
    lookups, done = looked_up
    lines = conclusions(lookups, done)
    assert lines[0].startswith("200 rows of 8 bytes loaded by the device, one every ")
    assert "sentence 1: 4 of 4 rows looked up equal the loaded ones." in lines
    count = len(accesses(read_trace(done.traces["host"])))
    assert f"{count:,} bursts at the host's memory, equal to the trace" in "\n".join(lines)
    wrong = replace(done, mismatches=("bus differs at burst 3",))
    assert "NOT all equal" in "\n".join(conclusions(lookups, wrong))
    path = tmp_path / "lookups.html"
    write_lookups(lookups, done, lambda row: f"<word {row}>", path)
    page = path.read_text()
    assert page.count("&lt;word 7&gt;") == 4
    assert "308 of 308" in page
    assert len(re.findall(r'id="chart-', page)) == 6
