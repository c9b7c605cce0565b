"""A host that changes pages behind the gates' back: it is found at the first touch, and nothing follows."""

import numpy as np
import pytest

from hw.board import load_board
from hw.oram.core.layouts import Code
from hw.oram.kernel.arguments import Fault
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.run.run import run
from tests.support.oram.tampers import flip, replay, swap, truncate

#: The first configuration of the regression, whose simulator is there anyway.
CASE = next(iter(ADAPTER.cases()))
CONFIG = CASE.config
PAGE, OPERATIONS = 5, 80
#: What is done, and at which touch of the page it can be seen.
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
    given = operations() | {"tampers": rows}
    pages = ADAPTER.workload(ADAPTER.job(given, CONFIG), CONFIG).pages
    found = [n for n, page in enumerate(pages) if page == PAGE][touch]
    assert found < OPERATIONS - 20
    result = run("oram", CONFIG, load_board(CASE.board), given, memory_mode="fast", directory=tmp_path)
    assert result.report.details["status"] == Fault.PAGE
    right = (result.integers["responses"] == result.golden["responses"]).all(axis=1)
    answered = int(right.sum())
    assert right[:answered].all(), "responses come in order"
    assert answered <= found, "the operation that touched it has no answer"
    unwritten = result.integers["responses"][answered:]
    assert (unwritten == unwritten[0, 0]).all(), "there are no others"
    assert answered >= found - CONFIG.response_records
