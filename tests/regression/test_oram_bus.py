"""What the host sees of the oblivious map's RTL: a function of labels and of the host alone, to the cycle."""

from __future__ import annotations

import numpy as np
import pytest

from hw.oram.core.layouts import Code
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.cases import SMALL
from sim.memory.trace import read_trace
from sim.run.run import run
from tests.support.oram.bus import BOARD, Bus

CASES = [
    pytest.param(case, id=case.name, marks=[pytest.mark.soak] if case.soak or case.config != SMALL else [])
    for case in ADAPTER.cases()
    if case.memory != "jitter"
]


@pytest.fixture(autouse=True)
def short_launches(monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")  # the simulator of `test_engines`, too


def recorded(config, tensors, path, *, memory="model", seed=0):
    """Run a launch and give its trace."""
    result = run(
        "oram", config, BOARD, tensors,
        directory=path.parent / "run", memory_mode=memory, seed=seed, traces={BOARD.host.name: path},
    )  # fmt: skip
    assert result.bit_exact
    return read_trace(path)


@pytest.mark.parametrize("case", CASES)
def test_the_bus_follows_from_the_labels(case, tmp_path):
    config, job = case.config, ADAPTER.job(case.tensors, case.config)
    trace = recorded(config, case.tensors, tmp_path / "bus.trace", memory=case.memory, seed=case.seed)
    Bus(config, ADAPTER.launch(job, config, BOARD), trace).follows(job, empty_pages=config.host_pages)


def test_equal_labels_give_equal_buses_whatever_is_asked(tmp_path):
    """Misses of every kind reveal the same labels under the same seed: nothing is there, new keys come, and
    more and more do; the records in HBM are as different as can be.
    """
    count, rng = 200, np.random.default_rng(3)
    traces = []
    for name, codes, keys in (
        ("absent", [Code.GET] * count, np.full(count, 7)),
        ("inserted", [Code.PUT] * count, np.arange(count) << 40),
        ("mixed", rng.choice([Code.NOP, Code.DELETE, 200], count), rng.integers(1 << 60, size=count)),
    ):
        tensors = {
            "codes": np.array(codes, np.uint8),
            "keys": keys.astype(np.uint64),
            "values": rng.integers(256, size=(count, SMALL.value_bytes), dtype=np.uint8),
        }
        statuses = set(ADAPTER.job(tensors, SMALL).results.statuses.tolist())
        assert statuses == {"absent": {1}, "inserted": {2}, "mixed": {1, 6}}[name]
        traces.append(recorded(SMALL, tensors, tmp_path / f"{name}.trace"))
    for other in traces[1:]:
        np.testing.assert_array_equal(traces[0], other)
