"""Every byte of HBM's buffers before the first operation, after the last, and after every fault.

Buffers hold other bytes when a simulation begins.
"""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from hw.oram import engine
from hw.oram.core.layouts import Code
from hw.oram.driver.buffers import board_arguments, swap_halves
from hw.oram.kernel.arguments import Fault
from hw.oram.model.predict import finish_cycles
from hw.oram.movers.timing import PathTiming
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.cases import SMALL, random_operations
from sim.golden.oram.image import record_images
from sim.run.adapter import FaultyLaunch, Refusal
from sim.run.run import compare
from tests.support.oram.bus import BOARD, simulated
from tests.support.oram.images import is_erased

FIRST = 1


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # as the regression does


def operations(config, count=150):
    """Draw operations behind one NOP, which touches a page and stores nothing."""
    drawn = random_operations(np.random.default_rng(7), config, count)
    drawn["codes"][0] = Code.NOP
    drawn["rejected"][0] = False
    return drawn


def first_digests(job):
    """Return the digests of HBM's buffers after the first operation, every byte of which is defined."""
    config = job.config
    state = ADAPTER.job({"codes": [Code.NOP], "keys": [0], "values": np.zeros((1, 8), int)}, config)
    played = replace(job, operations=state.operations, rejected=state.rejected).played.state
    assert sum(played.writes.values()) <= 1
    images, _ = record_images(played, range(config.records))
    found = {}
    for number, (name, structure) in enumerate(board_arguments(config).items()):
        lines = np.zeros((structure.port_bytes // structure.line_bytes, structure.line_bytes), np.uint8)
        if name.startswith("records"):
            lines[:, 0] = 1  # of the last line too, which may be no record
            own = images[number - config.position_ports :: config.record_ports]
            lines[: len(own)] = own
        found[name] = hashlib.sha256(swap_halves(structure, lines).tobytes()).hexdigest()
    return found


@pytest.mark.parametrize("memory", ["model", pytest.param("jitter", marks=pytest.mark.soak)])
def test_first_and_last(memory, tmp_path):
    """A launch of one operation, one of the others that finishes, and two that are refused."""
    given = ADAPTER.job(operations(SMALL) | {"state": np.array(True), "finish": np.array(True)}, SMALL)
    count = len(given.operations)
    one = ADAPTER.launch(given, SMALL, BOARD)
    assert one.scalars["finish"] == 1
    launch = replace(
        one,
        scalars=one.scalars | {"operation_count": FIRST, "finish": 0},
        then=(
            {"initialize": 0, "operation_count": count - FIRST, "finish": 1},
            {"operation_count": 1, "finish": 0},
            {"initialize": 1},
        ),
    )
    done, _ = simulated(SMALL, launch, tmp_path, memory_mode=memory)
    first, last, *refused = done.answer.calls
    assert {name: first.digests[name] for name in board_arguments(SMALL)} == first_digests(given)
    assert is_erased(SMALL, done.buffers)
    assert compare(ADAPTER.outputs(given, SMALL, done.buffers), ADAPTER.golden(given, SMALL)) == ()
    assert [call.counters["status"] for call in done.answer.calls] == [0, 0, Fault.EMPTY, Fault.AGAIN]
    assert [call.counters["erased"] for call in done.answer.calls] == [0, 1, 1, 1]
    touches = (count - FIRST) * SMALL.items * SMALL.item_cycles
    erasure = finish_cycles(SMALL) + PathTiming(SMALL).end
    assert last.counters["cycles_busy"] == touches + erasure, "whatever HBM does"
    for call in refused:
        assert call.digests == last.digests
        assert not any(size for name, size in call.counters.items() if name.endswith("_bytes"))


#: Configurations with a fault each.
FAULTS = {
    Fault.LATE_OPERATION: replace(SMALL, position_cycles=16),
    Fault.LATE_TOUCH: replace(SMALL, touch_cycles=16),
    Fault.LATE_WRITE: replace(SMALL, settle_cycles=16),
    Fault.OVERFLOW: replace(SMALL, list_slots=4, overflow_entries=4),
}


@pytest.mark.soak
@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault(fault, tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "check_overflow", lambda config: None)
    config = FAULTS[fault]
    job = ADAPTER.job(operations(config) | {"state": np.array(True)}, config)
    launch = replace(ADAPTER.launch(job, config, BOARD), then=({"initialize": 0},))
    done, _ = simulated(config, launch, tmp_path)
    wrong, later = (call.counters for call in done.answer.calls)
    assert wrong["status"] == fault
    assert wrong["answered_count"] < len(job.operations)
    assert (wrong["erased"], later["erased"]) == (1, 1)
    assert is_erased(config, done.buffers)


@pytest.mark.parametrize("port", ["host0", pytest.param("gmem5", marks=pytest.mark.soak)])
def test_after_an_error(port, tmp_path):
    """An error of HBM leaves a doubt."""
    job = ADAPTER.job(operations(SMALL) | {"state": np.array(True)}, SMALL)
    launch = FaultyLaunch.of(
        ADAPTER.launch(job, SMALL, BOARD), refusals=(Refusal(port=port, write=True, skip=99),)
    )
    done, _ = simulated(SMALL, launch, tmp_path)
    (call,) = done.answer.calls
    assert call.counters["status"] == Fault.BUS
    assert call.counters["erased"] == (port == "host0")
    assert is_erased(SMALL, done.buffers)
