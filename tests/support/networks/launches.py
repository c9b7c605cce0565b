"""Launches of several networks in one simulation, each held to the golden model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from hw.launch import Launch
from hw.network.config import NetworkConfig
from hw.registry import find_engine
from sim.build.design import simulated_design
from sim.engines.network.adapter import ADAPTER
from sim.engines.network.job import NetworkJob
from sim.run.launch import simulate
from sim.run.run import compare

#: Bytes from which on the buffers of a launch begin: bursts end where they would alone.
_ALIGNMENT = 4096


@dataclass(frozen=True)
class Seen:
    """A launch: its counters, and a line for each output that differs."""

    counters: dict
    mismatches: tuple


def run(jobs: Sequence[NetworkJob], config: NetworkConfig, board, directory, *, seed=0, memory="model"):
    """Simulate launches without a reset between them; return the record of each."""
    launches = [ADAPTER.launch(job, config, board) for job in jobs]
    joined, firsts = _joined(launches)
    engine = find_engine(ADAPTER.name)
    expected = [engine.predict(ADAPTER.workload(job, config), config, board).cycles_total for job in jobs]
    simulated = simulate(
        simulated_design(engine, config, board),
        joined,
        directory=directory / "simulation",
        expected_cycles=sum(expected),
        memory_mode=memory,
        seed=seed,
    )
    answer = simulated.answer
    assert answer.resets_between_calls == 0
    assert len(answer.calls) == len(jobs)
    found = []
    for job, first, call in zip(jobs, firsts, answer.calls, strict=True):
        region = simulated.buffers["memory"][first : first + job.region.size]
        integers = ADAPTER.outputs(job, config, {"memory": region})
        found.append(Seen(call.counters, compare(integers, ADAPTER.golden(job, config))))
    return found


def _joined(launches: Sequence[Launch]) -> tuple[Launch, list[int]]:
    """Lay the buffers of launches one after the other; return them as calls, and the places of regions."""
    buffers, calls = [], [dict(launch.scalars) for launch in launches]
    for parts in zip(*(launch.buffers for launch in launches), strict=True):
        contents = []
        for call, part in zip(calls, parts, strict=True):
            call[part.argument] = sum(map(len, contents))
            contents.append(np.pad(part.data, (0, -part.size_bytes % _ALIGNMENT), constant_values=0x5A))
        data = np.concatenate(contents)
        buffers.append(replace(parts[0], data=data, size_bytes=data.size))
    scalars = {name: calls[0][name] for name in launches[0].scalars}
    return (
        Launch(scalars=scalars, buffers=tuple(buffers), then=tuple(calls[1:])),
        [call["memory"] for call in calls],
    )
