"""Shuhai (Wang et al., FCCM 2020): latency and throughput of single channels of an Alveo U280."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hw.board import load_board
from hw.board.memory_timing import DdrTiming, HbmTiming
from sim.calibration.experiment import Experiment, Outcome
from sim.calibration.point import NATIVE, VITIS, Point, memory_of, stream, total
from sim.calibration.program import Program
from sim.memory.config import MemoryConfig

_SOURCE = "Shuhai, U280"
_HBM_MHZ = 450.0
#: Next row of the same bank: HBM 16 KiB on, DDR4 64 KiB with the default maps.
_ROW_BYTES, _DDR_ROW_BYTES = 1 << 14, 1 << 17


def _last_latency(outcomes: Mapping[str, Outcome]) -> float:
    (outcome,) = outcomes.values()
    return float(outcome.reads[0].latency_last)


def _serial(count: int, stride_bytes: int, base: int = 0) -> Program:
    return Program(base=base, stride_bytes=stride_bytes, beats=1, count=count, outstanding=1)


def points() -> list[Point]:
    """Give the points: idle latency, the switch, sequential and strided throughput, DDR4."""
    board = load_board("u280")
    hbm = board.memory
    assert isinstance(hbm.timing, HbmTiming)  # as the board file says
    bare = replace(hbm.timing, fabric_request_ns=0.0, fabric_response_ns=0.0)
    switched = memory_of(hbm, NATIVE, timing=bare, clock_mhz=_HBM_MHZ)
    unswitched = replace(switched, timing=replace(bare, switch_axi_cycles=0))

    def one(memory: MemoryConfig, program: Program) -> dict[str, Experiment]:
        return {"run": Experiment(bench=NATIVE, memory=memory, reads={0: program}, writes={})}

    # The accesses fit between two refreshes; a first access finds its bank closed.
    idle = (
        ("1a", "hit", 48, _serial(4, 64)),
        ("1b", "closed", 55, _serial(1, 64)),
        ("1c", "miss", 62, _serial(4, _ROW_BYTES)),
    )
    found = [
        Point(
            key=key,
            title=f"Idle read, page {state}, switch off",
            published=published,
            unit="AXI cycles",
            source=_SOURCE,
            experiments=one(unswitched, program),
            measure=_last_latency,
        )
        for key, state, published, program in idle
    ]
    # Latency by mini-switch, from the nearest to the farthest; all but the ends are from memory.
    for place, published in enumerate((55, 56, 58, 60, 71, 73, 75, 77)):
        found.append(
            Point(
                key="2" if place == 7 else f"2.{place}",
                title=f"Idle read, page hit, {place} mini-switches away",
                published=published,
                unit="AXI cycles",
                source=_SOURCE,
                experiments=one(switched, _serial(4, 64, base=4 * place * hbm.channel_bytes)),
                measure=_last_latency,
                held_out=place != 7,
            )
        )
    sequential = Program(stride_bytes=512, beats=16, count=4000)
    near_rows = Program(window_bytes=8192, stride_bytes=4096, beats=1, count=15000)
    new_rows = Program(stride_bytes=4096, beats=1, count=8000)
    for key, title, rate, program in (
        ("3", "Sequential read, one channel", 13.27, sequential),
        ("6", "32 B reads 4 KiB apart in 8 KiB", 6.7, near_rows),
        ("7", "32 B reads 4 KiB apart in 256 MiB", 2.4, new_rows),
    ):
        found.append(
            Point(
                key=key,
                title=title,
                published=rate,
                unit="GB/s",
                source=_SOURCE,
                experiments=one(switched, program),
                measure=total,
            )
        )
    found.append(
        Point(
            key="3.far",
            title="Sequential read, farthest channel",
            published=13.27,
            unit="GB/s",
            source=_SOURCE,
            experiments=one(switched, replace(sequential, base=31 * hbm.channel_bytes)),
            measure=total,
            held_out=True,
            note="throughput almost independent of distance",
        )
    )

    # Bank, row, column from the top: every access of this stride is another row of one bank.
    simple = replace(switched, timing=replace(bare, address_map="C5 R14 B2 G2"))
    strided = Program(stride_bytes=1024, beats=1, count=8000)
    found.append(
        Point(
            key="M",
            title="32 B reads 1 KiB apart, default map over bank-row-column",
            published=10.0,
            unit="x",
            source=_SOURCE,
            experiments={
                name: Experiment(bench=NATIVE, memory=memory, reads={0: strided}, writes={})
                for name, memory in (("default", switched), ("simple", simple))
            },
            measure=lambda outcomes: outcomes["default"].gb_per_s() / outcomes["simple"].gb_per_s(),
            held_out=True,
            note="nearly 10 times",
        )
    )

    ddr = next(memory for memory in board.memories if memory.kind == "ddr4")
    assert isinstance(ddr.timing, DdrTiming)  # as the board file says
    channel = memory_of(ddr, VITIS)
    for key, state, published, program in (
        ("D1", "hit", 22, _serial(4, 128)),
        ("D2", "closed", 27, _serial(1, 128)),
        ("D3", "miss", 32, _serial(4, _DDR_ROW_BYTES)),
    ):
        found.append(
            Point(
                key=key,
                title=f"DDR4 idle read, page {state}",
                published=published,
                unit="300 MHz cycles",
                source=_SOURCE,
                experiments={"run": Experiment(bench=VITIS, memory=channel, reads={0: program}, writes={})},
                measure=_last_latency,
                held_out=True,
            )
        )
    found.append(
        Point(
            key="D4",
            title="DDR4 sequential read, one channel",
            published=18.0,
            unit="GB/s",
            source=_SOURCE,
            experiments={
                "run": Experiment(
                    bench=VITIS, memory=channel, writes={}, reads={0: stream(2**30, 0, bytes_moved=2**20)}
                )
            },
            measure=total,
            held_out=True,
        )
    )
    return found
