"""The expected bus trace of a launch, from its revealed labels and the host's recorded times."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import repeat, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.oram.config import BEAT_BYTES, OramConfig
from hw.oram.driver.buffers import COMMANDS, PAGES, RESPONSES
from hw.oram.kernel.arguments import argument_table
from hw.oram.movers.timing import PathTiming
from sim.engines.oram.job import OramJob
from sim.golden.oram import trace as golden
from sim.golden.oram.hosts import RecordedHost
from sim.memory.trace import Channel, accesses
from sim.run.memories import is_host_port

Trace = NDArray[Any]


def expected_accesses(
    config: OramConfig,
    trace: Trace,
    ports: Sequence[str],
    launch: golden.BusLaunch,
    touched: Sequence[Sequence[int | None]],
    *,
    empty_pages: int = 0,
    found: Iterable[bool] = repeat(True),
) -> list[golden.Burst]:
    """Return the reads and writes of a launch, in order, from the first read of a command on.

    * ``trace``: the recording at the host's ports (`sim.memory.trace.read_trace`). Only the launch's start
      and the host's times are used: waits of offers, cycles of data and answers.
    * ``ports``: those of the host's memory, in order.
    * ``launch``: its arguments; its start is taken from ``trace``.
    * ``touched``: pages of every operation's touches, from the labels.
    * ``empty_pages``: pages that the launch wrote before.
    * ``found``: for each read of a command, in order: whether it was written.
    """
    times = PathTiming(config)
    timing = golden.Latencies(
        touches=times.touches,
        seal=times.page_sealed,
        response=times.response_sealed,
    )
    launch = replace(launch, start=_begin(trace, ports) - timing.command_address)
    host = _recorded_host(config, trace, ports, launch.pages, empty_pages, found)
    return golden.simulate(config, timing, launch, host, touched).accesses


def recorded_accesses(trace: Trace, ports: Sequence[str]) -> list[golden.Burst]:
    """Return the recorded reads and writes, in the form and order of `expected_accesses`."""
    begun = accesses(trace[trace["cycle"] >= _begin(trace, ports)])
    return sorted(
        golden.Burst(cycle, ports[port], channel == Channel.AW, address, size)
        for cycle, address, size, port, channel, _ in begun.tolist()
    )


def trace_mismatches(job: OramJob, trace: Trace, addresses: Mapping[str, int]) -> tuple[str, ...]:
    """Return a line for the first unexplained burst of a launch that began with an empty map, or none.

    ``addresses``: of the launch's buffers. ``trace``: as for `expected_accesses`.
    """
    ports = [port for port in argument_table(job.config).ports if is_host_port(port)]
    launch = golden.BusLaunch(
        pages=addresses[PAGES],
        commands=addresses[COMMANDS],
        responses=addresses[RESPONSES],
        slots=job.ring_slots,
    )
    touched = [[page for page, _ in outcome.touches] for outcome in job.played.outcomes]
    expected = expected_accesses(job.config, trace, ports, launch, touched, empty_pages=job.config.host_pages)
    recorded = recorded_accesses(trace, ports)
    for at, (seen, predicted) in enumerate(zip_longest(recorded, expected)):
        if seen != predicted:
            return (f"bus differs at burst {at:,}: {seen}, expected from labels and host: {predicted}",)
    return ()


def _begin(trace: Trace, ports: Sequence[str]) -> int:
    """Return the cycle of the first read of a command."""
    looks = (trace["port"] == ports.index(golden.RING)) & (trace["channel"] == Channel.AR)
    return int(trace["cycle"][looks][0] - trace["waited"][looks][0])


def _recorded_host(
    config: OramConfig,
    trace: Trace,
    ports: Sequence[str],
    pages: int,
    empty_pages: int,
    found: Iterable[bool],
) -> RecordedHost:
    bursts = sum(
        1 for n in range(empty_pages) for _ in golden.bursts(pages + n * config.page_bytes, config.page_bytes)
    )
    before = {Channel.AW: bursts, Channel.W: empty_pages * config.page_beats, Channel.B: bursts}

    def on(port: str, channel: Channel) -> Trace:
        own = trace[(trace["port"] == ports.index(port)) & (trace["channel"] == channel)]
        return own[before.get(channel, 0) if port == golden.PAGES else 0 :]

    def waits(port: str, channel: Channel) -> Iterator[int]:
        return iter(on(port, channel)["waited"].tolist())

    def data(port: str) -> Iterator[Sequence[int]]:
        ends = np.cumsum(on(port, Channel.AR)["bytes"] // BEAT_BYTES, dtype=np.int64)
        return (burst.tolist() for burst in np.split(on(port, Channel.R)["cycle"], ends[:-1]))

    return RecordedHost(
        address_waits={
            (port, write): waits(port, Channel.AW if write else Channel.AR)
            for port in (golden.PAGES, golden.RING)
            for write in (False, True)
        },
        data={port: data(port) for port in (golden.PAGES, golden.RING)},
        beat_waits={port: waits(port, Channel.W) for port in (golden.PAGES, golden.RING)},
        answers={port: iter(on(port, Channel.B)["cycle"].tolist()) for port in (golden.PAGES, golden.RING)},
        found=iter(found),
    )
