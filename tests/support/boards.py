"""A small board for tests that are not about any real one, and a real one whose memory is simpler."""

from __future__ import annotations

import dataclasses

from hw.board import Board, ClockBudget, Memory
from hw.board.memory_timing import DdrTiming
from hw.board.resources import Resources


def small_memory() -> Memory:
    """Four channels of DDR4 behind 64-bit ports."""
    return Memory(
        name="main",
        kind="ddr4",
        channels=4,
        port_data_width=64,
        channel_bytes=1 << 20,
        peak_bytes_per_second=4e9,
        realistic_bytes_per_second=3e9,
        burst_beats=16,
        protocol="axi4",
        timing=DdrTiming(),
    )


def small_board() -> Board:
    """A Zynq board of 1,000 LUT."""
    resources = Resources(lut=1000, ff=2000, dsp=64, bram36=10, uram=0)
    return Board(
        name="small",
        title="Small",
        part="xcsmall",
        family="zynq",
        platform=None,
        device=resources,
        user=resources,
        slrs=1,
        clock_mhz=100.0,
        budget=ClockBudget(uncertainty_ps=35.0, skew_ps=50.0, slr_crossing_ps=1000.0, delay_factor=1.0),
        memories=(small_memory(),),
    )


def of_fixed_latency(board: Board) -> Board:
    """Return a board whose memory has neither rows to open nor refreshes, and moves as much as it ever
    can.
    """
    rows = dict.fromkeys(("rcd_read_ck", "rp_ck", "ras_ck", "rc_ck"), 0)
    timing = dataclasses.replace(board.memory.timing, **rows, refresh_interval_ck=10**9)
    memory = dataclasses.replace(
        board.memory, timing=timing, realistic_bytes_per_second=board.memory.peak_bytes_per_second
    )
    return dataclasses.replace(board, memories=(memory,))
