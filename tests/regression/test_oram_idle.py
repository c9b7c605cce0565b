"""An operation on an idle map, at default deadlines: its times are those of the golden trace, and short,
wherever refreshes of HBM are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hw.oram.config import OramConfig
from hw.oram.core.layouts import Code
from hw.oram.driver.buffers import COMMANDS, RESPONSES
from hw.oram.movers.timing import PathTiming
from hw.oram.sizing.queues import REFRESH_CYCLES, REFRESH_INTERVAL
from sim.build.simulator import OPTIMIZE_VARIABLE
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.expected import recorded_accesses
from sim.run.run import compare
from tests.support.oram.bus import BOARD, Bus, simulated

#: Of few keys, so that an operation's reads often share a port or a bank.
FEW = OramConfig(log_n=8, position_ports=4, record_ports=8, inflight=16)
CONFIGS = {
    "default": OramConfig(log_n=12),
    "64 bytes": replace(FEW, value_bytes=64),
    "384 bytes": replace(FEW, value_bytes=384, record_ports=16),
    "both": replace(FEW, touch="both"),
    "always": replace(FEW, pad="always"),
    "both, always": replace(FEW, touch="both", pad="always", value_bytes=64),
}
#: Operations, one a launch; keys.
OPERATIONS, KEYS = 60, 8
#: Of the default: cycles from the read of a command to its data, and from there to the address of its
#: response.
LINK, MAP = 135, 535
#: Registers that are written again before some launches, so that these begin anywhere between refreshes.
REGISTERS = ("finish", "ring_slots", "poll_cycles")


@pytest.mark.soak
@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_operations_alone_are_short_and_take_the_same_time(config, tmp_path, monkeypatch):
    monkeypatch.setenv(OPTIMIZE_VARIABLE, "-O0")
    assert PathTiming(config).idle_position < PathTiming(config).position
    rng = np.random.default_rng(5)
    codes = rng.choice([Code.GET, Code.PUT, Code.DELETE], OPERATIONS, p=[0.4, 0.5, 0.1])
    values = rng.integers(256, size=(OPERATIONS, config.value_bytes), dtype=np.uint8)
    keys = rng.integers(KEYS, size=OPERATIONS)
    job = ADAPTER.job({"codes": codes.astype(np.uint8), "keys": keys, "values": values}, config)
    one = ADAPTER.launch(job, config, BOARD)
    again = [
        {"initialize": 0, "operation_count": 1} | {name: one.scalars[name] for name in REGISTERS[: n % 4]}
        for n in range(OPERATIONS - 1)
    ]
    launch = replace(one, scalars=one.scalars | {"operation_count": 1}, then=tuple(again))
    done, trace = simulated(config, launch, tmp_path)
    calls = done.answer.calls
    assert [call.counters["status"] for call in calls] == [0] * OPERATIONS
    assert compare(ADAPTER.outputs(job, config, done.buffers), ADAPTER.golden(job, config)) == ()

    bus, size = Bus(config, launch, trace), config.command_bytes
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
    # By whether both labels are of one page: then its second touch awaits the first.
    taken: dict[bool, set[int]] = {}
    for read, answer in zip(reads, answers, strict=True):
        pages = [at.address for at in accesses if read < at.cycle < answer and not at.write]
        taken.setdefault(len(set(pages)) < len(pages), set()).add(answer - read)
    phases = np.sort(np.array(reads) % int(REFRESH_INTERVAL))
    gap = np.diff(phases, append=phases[0] + int(REFRESH_INTERVAL)).max()
    assert gap < REFRESH_CYCLES, "reads meet every part of a refresh"
    (alone,) = taken[False]
    # Of two touches the second is half an interval behind the first.
    waits = max(0, PathTiming(config).forward - config.interval // 2)
    both = {True: {alone + waits}} if config.touch == "both" else {}
    assert taken == {False: {alone}} | both
    if config is CONFIGS["default"]:
        assert taken == {False: {LINK + MAP}}
    for n, part in enumerate(np.split(trace, np.searchsorted(trace["cycle"], reads[1:]))):
        empty = config.host_pages if n == 0 else 0
        replace(bus, trace=part).follows(job, first=n, until=n + 1, empty_pages=empty)
