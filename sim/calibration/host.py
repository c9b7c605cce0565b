"""Host memory over PCIe: AMD's slave-bridge example on a U250 and xbtest on a U55C."""

from __future__ import annotations

from collections.abc import Mapping

from hw.board import Memory, load_board
from sim.calibration.experiment import Experiment, Outcome
from sim.calibration.point import BEAT_BYTES, VITIS, Point, memory_of
from sim.calibration.program import Program

_EXAMPLE = "AMD Vitis_Accel_Examples host_memory_bandwidth, U250"
_BURST_BYTES = 4096
_GIB = 2**30 / 1e9
#: What an HLS kernel adds to a pass over a buffer of several bursts: the published passes take 1.17 us
#: (write) and about 1.2 us (read, 16 and 64 KiB) more than their bytes at 12.77 GB/s; the rest of that is the
#: memory's latency. A pass of one burst, 4 KiB, is published as faster than that cost allows, and is taken to
#: have none.
_WRITE_PASS_NS, _READ_PASS_NS = 420.0, 750.0
#: A pass longer than this is in its steady state: so much of it is simulated.
_LONGEST_RUN_BYTES = 1 << 21

_TABLE = {  # buffer bytes: read, write, both, in GiB/s
    2**12: (4.878, 4.692, 6.967),
    2**14: (6.038, 6.163, 8.311),
    2**16: (9.622, 9.595, 15.94),
    2**18: (10.48, 11.26, 20.85),
    2**20: (11.43, 11.73, 22.90),
    2**21: (11.62, 11.83, 23.36),
    2**24: (10.69, 11.69, 14.44),
    2**28: (10.70, 10.58, 11.59),
}


def _program(
    size_bytes: int, *, outstanding: int = 16, follow: bool = False, interval_cycles: int = 0
) -> Program:
    return Program(
        window_bytes=2**28,
        stride_bytes=_BURST_BYTES,
        beats=_BURST_BYTES // BEAT_BYTES,
        count=min(size_bytes, _LONGEST_RUN_BYTES) // _BURST_BYTES,
        outstanding=outstanding,
        follow=follow,
        interval_cycles=interval_cycles,
    )


def _pass(memory: Memory, size_bytes: int, *, read: bool, write: bool) -> dict[str, Experiment]:
    config = memory_of(memory, VITIS, working_set_bytes=size_bytes * (read + write))
    program = _program(size_bytes)
    copied = _program(size_bytes, follow=read)
    return {
        "run": Experiment(
            bench=VITIS,
            memory=config,
            reads={0: program} if read else {},
            writes={0: copied} if write else {},
        )
    }


def _rate(outcomes: Mapping[str, Outcome]) -> float:
    (outcome,) = outcomes.values()
    cost = (_READ_PASS_NS if outcome.reads else 0.0) + (_WRITE_PASS_NS if outcome.writes else 0.0)
    moved = max(result.beats for result in outcome.results) * BEAT_BYTES
    return outcome.gb_per_s(extra_ns=cost if _BURST_BYTES < moved < _LONGEST_RUN_BYTES else 0.0)


def _serial_ns(outcomes: Mapping[str, Outcome]) -> float:
    (outcome,) = outcomes.values()
    return outcome.ns(outcome.reads[0].cycles) / (outcome.reads[0].beats * BEAT_BYTES / _BURST_BYTES)


def _read_latency(outcomes: Mapping[str, Outcome]) -> float:
    (outcome,) = outcomes.values()
    return outcome.mean_latency_ns("read")


def points() -> list[Point]:
    """Give the points: serial reads, passes by buffer size, reading while writing, loaded latency."""
    memory = load_board("u55c").host
    assert memory is not None  # as the board file says
    serial = _program(2**16, outstanding=1)
    config = memory_of(memory, VITIS)
    found = [
        Point(
            key="13",
            title="Host read, 4 KiB, serial",
            published=782,
            unit="ns",
            source=_EXAMPLE,
            experiments={"run": Experiment(bench=VITIS, memory=config, reads={0: serial}, writes={})},
            measure=_serial_ns,
        ),
        Point(
            key="14a",
            title="Host write pass, 64 KiB",
            published=10.30,
            unit="GB/s",
            source=_EXAMPLE,
            experiments=_pass(memory, 2**16, read=False, write=True),
            measure=_rate,
        ),
        Point(
            key="14b",
            title="Host write pass, 1 MiB",
            published=12.60,
            unit="GB/s",
            source=_EXAMPLE,
            experiments=_pass(memory, 2**20, read=False, write=True),
            measure=_rate,
        ),
        Point(
            key="H1",
            title="Host read, many outstanding",
            published=12.77,
            unit="GB/s",
            source="AMD xbtest 6.0, U55C",
            experiments={
                "run": Experiment(
                    bench=VITIS, memory=config, reads={0: _program(2**21, outstanding=32)}, writes={}
                )
            },
            measure=_rate,
            held_out=True,
        ),
        Point(
            key="H2",
            title="Host read latency then",
            published=3835,
            unit="ns",
            source="AMD xbtest 6.0, U55C",
            experiments={
                "run": Experiment(
                    bench=VITIS, memory=config, reads={0: _program(2**21, outstanding=32)}, writes={}
                )
            },
            measure=_read_latency,
            held_out=True,
        ),
        Point(
            key="H3",
            title="Host write response at 9.6 GB/s",
            published=829,
            unit="ns",
            source="AMD xbtest 6.0, U55C",
            experiments={
                "run": Experiment(
                    bench=VITIS,
                    memory=config,
                    reads={},
                    writes={
                        0: _program(2**20, outstanding=32, interval_cycles=2 * _BURST_BYTES // BEAT_BYTES)
                    },
                )
            },
            measure=lambda outcomes: outcomes["run"].mean_latency_ns("write"),
            held_out=True,
            note="had a part in choosing the write response",
        ),
    ]
    for size, figures in _TABLE.items():
        name = f"{size >> 10} KiB" if size < 2**20 else f"{size >> 20} MiB"
        for kind, figure in zip(("read", "write", "both"), figures, strict=True):
            if (size, kind) in ((2**12, "read"), (2**16, "write"), (2**20, "write")):
                continue  # points 13 and 14
            found.append(
                Point(
                    key=f"H{name.replace(' ', '')}{kind[0]}",
                    title=f"Host {'copy, both directions' if kind == 'both' else kind + ' pass'}, {name}",
                    published=figure * _GIB,
                    unit="GB/s",
                    source=_EXAMPLE,
                    experiments=_pass(memory, size, read=kind != "write", write=kind != "read"),
                    measure=_rate,
                    held_out=True,
                    note="had a part in choosing what the host caches" if size == 2**24 else "",
                )
            )
    return found
