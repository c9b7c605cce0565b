"""AMD xbtest 6.0 on a U55C: 4 KiB bursts of 512-bit ports through the Vitis HBM subsystem."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hw.board import load_board
from sim.calibration.experiment import Experiment, Outcome
from sim.calibration.point import BEAT_BYTES, VITIS, VITIS_MHZ, Point, memory_of, stream, total
from sim.calibration.program import Program

_SOURCE = "AMD xbtest 6.0, U55C"
_BURST_BYTES = 4096
_RUN_BYTES = 1 << 19
_PORT_BYTES_PER_CYCLE = BEAT_BYTES


def _interval(percent: float) -> int:
    """Kernel cycles between bursts at a share of the port's rate."""
    return round(_BURST_BYTES / _PORT_BYTES_PER_CYCLE * 100 / percent)


def _read_latency(outcomes: Mapping[str, Outcome]) -> float:
    (outcome,) = outcomes.values()
    return outcome.mean_latency_ns("read")


def _write_latency(outcomes: Mapping[str, Outcome]) -> float:
    (outcome,) = outcomes.values()
    return outcome.mean_latency_ns("write")


def points() -> list[Point]:
    """Give the points: reads, writes and both on 32 channels; one port by outstanding bursts and by rate."""
    hbm = load_board("u55c").memory
    memory = memory_of(hbm, VITIS)

    def program(
        channel: int, outstanding: int, percent: float = 0.0, bytes_moved: int = _RUN_BYTES
    ) -> Program:
        return stream(
            hbm.channel_bytes,
            channel,
            bytes_moved=bytes_moved,
            burst_bytes=_BURST_BYTES,
            outstanding=outstanding,
            interval_cycles=_interval(percent) if percent else 0,
        )

    def run(reads: Mapping[int, Program], writes: Mapping[int, Program]) -> dict[str, Experiment]:
        return {"run": Experiment(bench=VITIS, memory=memory, reads=reads, writes=writes)}

    every = {channel: program(channel, 4) for channel in range(32)}
    throttled = {channel: program(channel, 4, 33.0, _RUN_BYTES // 2) for channel in range(32)}
    # Writes begin half a window further, so that reads and writes are in different rows.
    shifted = {
        channel: replace(p, base=p.base + 2**28, window_bytes=2**28) for channel, p in throttled.items()
    }
    lone = replace(program(0, 4, 10.0), pace_cycles=10)
    assert hbm.channel_bytes == 2**29  # two such windows
    found = [
        Point(
            key="5",
            title="Read, 32 channels, 4 outstanding",
            published=412.5,
            unit="GB/s",
            source=_SOURCE,
            experiments=run(every, {}),
            measure=total,
        ),
        Point(
            key="12",
            title="4 KiB reads, one outstanding",
            published=7.86,
            unit="GB/s",
            source=_SOURCE,
            experiments=run({0: program(0, 1)}, {}),
            measure=total,
        ),
        Point(
            key="X2",
            title="4 KiB reads, two outstanding",
            published=12.87,
            unit="GB/s",
            source=_SOURCE,
            experiments=run({0: program(0, 2)}, {}),
            measure=total,
            held_out=True,
        ),
        Point(
            key="X3",
            title="Read latency, 32 channels, 4 outstanding",
            published=952,
            unit="ns",
            source=_SOURCE,
            experiments=run(every, {}),
            measure=_read_latency,
            held_out=True,
        ),
        Point(
            key="X4",
            title="Write, 32 channels, 4 outstanding",
            published=411.2,
            unit="GB/s",
            source=_SOURCE,
            experiments=run({}, every),
            measure=total,
            held_out=True,
        ),
        Point(
            key="X5",
            title="Write response, 32 channels, 4 outstanding",
            published=208,
            unit="ns",
            source=_SOURCE,
            experiments=run({}, every),
            measure=_write_latency,
            held_out=True,
            note="had a part in choosing the write buffers",
        ),
        Point(
            key="X6",
            title="Read and write at 33 % each, 32 channels",
            published=403.2,
            unit="GB/s",
            source=_SOURCE,
            experiments=run(throttled, shifted),
            measure=total,
            held_out=True,
            note="had a part in choosing the write buffers",
        ),
        Point(
            key="X7",
            title="Read latency then",
            published=733,
            unit="ns",
            source=_SOURCE,
            experiments=run(throttled, shifted),
            measure=_read_latency,
            held_out=True,
            note="had a part in choosing the write buffers",
        ),
        Point(
            key="X8",
            title="Write response then",
            published=144,
            unit="ns",
            source=_SOURCE,
            experiments=run(throttled, shifted),
            measure=_write_latency,
            held_out=True,
            note="had a part in choosing the write buffers",
        ),
    ]
    found += [
        Point(
            key="X9",
            title="Write response at 10 % of the port's rate",
            published=81,
            unit="ns",
            source="AMD xbtest 6.0, U50LV",
            experiments=run({}, {0: lone}),
            measure=_write_latency,
            held_out=True,
            note="had a part in choosing the write response",
        ),
        Point(
            key="X10",
            title="Read latency, one port, 32 outstanding",
            published=9870,
            unit="ns",
            source=_SOURCE,
            experiments=run({0: program(0, 32, bytes_moved=4 * _RUN_BYTES)}, {}),
            measure=_read_latency,
            held_out=True,
        ),
    ]
    for percent, published in ((10, 203), (30, 203), (50, 235), (60, 265), (65, 310)):
        found.append(
            Point(
                key=f"L{percent}",
                title=f"Read latency at {percent} % of {BEAT_BYTES * VITIS_MHZ / 1e3:.1f} GB/s",
                published=published,
                unit="ns",
                source=_SOURCE,
                experiments=run({0: program(0, 16, percent, 2 * _RUN_BYTES)}, {}),
                measure=_read_latency,
                held_out=True,
            )
        )
    return found
