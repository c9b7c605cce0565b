"""An operation on an idle map, at default deadlines: its times are those of the golden trace, and short."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from hw.oram.driver.buffers import COMMANDS, RESPONSES
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.expected import recorded_accesses
from sim.run.run import compare
from tests.support.oram.bus import BOARD, Bus, simulated

CONFIG = OramConfig(log_n=12)
#: Operations, one a launch. Enough for reads of HBM that meet a refresh.
OPERATIONS = 40
#: Cycles from the read of a command to its data, and from there to the address of its response.
LINK, MAP = 135, 532


@pytest.mark.soak
def test_operations_alone_are_short_and_take_the_same_time(tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")
    rng = np.random.default_rng(5)
    job = ADAPTER.job(
        {
            "codes": rng.choice([Code.GET, Code.PUT, Code.DELETE], OPERATIONS, p=[0.4, 0.5, 0.1]).astype(
                np.uint8
            ),
            "keys": rng.integers(8, size=OPERATIONS),
            "values": rng.integers(256, size=(OPERATIONS, CONFIG.value_bytes), dtype=np.uint8),
        },
        CONFIG,
    )
    one = ADAPTER.launch(job, CONFIG, BOARD)
    again = {"initialize": 0, "operation_count": 1}
    launch = replace(
        one, scalars=one.scalars | {"operation_count": 1}, then=tuple([again] * (OPERATIONS - 1))
    )
    done, trace = simulated(CONFIG, launch, tmp_path)
    calls = done.answer.calls
    assert [call.counters["status"] for call in calls] == [0] * OPERATIONS
    assert compare(ADAPTER.outputs(job, CONFIG, done.buffers), ADAPTER.golden(job, CONFIG)) == ()

    bus, size = Bus(CONFIG, launch, trace), CONFIG.command_bytes
    accesses = recorded_accesses(trace, bus.ports)
    reads, answers = (
        [
            next(
                at.cycle
                for at in accesses
                if (at.write, at.address) == (write, bus.addresses[ring] + n * size)
            )
            for n in range(OPERATIONS)
        ]
        for write, ring in ((False, COMMANDS), (True, RESPONSES))
    )
    assert np.subtract(answers, reads).tolist() == [LINK + MAP] * OPERATIONS
    for n, part in enumerate(np.split(trace, np.searchsorted(trace["cycle"], reads[1:]))):
        empty = CONFIG.host_pages if n == 0 else 0
        replace(bus, trace=part).follows(job, first=n, until=n + 1, empty_pages=empty)
