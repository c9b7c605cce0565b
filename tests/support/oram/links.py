"""Boards with another link to the host, or another HBM."""

from __future__ import annotations

from dataclasses import replace

from hw.board import Board


def with_link(board: Board, **timing: float) -> Board:
    """Return a board with some numbers of its `HostTiming` replaced."""
    host = replace(board.host, timing=replace(board.host.timing, **timing))
    return replace(board, memories=(board.memory, host))


def with_hbm(board: Board, **timing: int) -> Board:
    """Return a board with some numbers of its `HbmTiming` replaced."""
    memory = replace(board.memory, timing=replace(board.memory.timing, **timing))
    return replace(board, memories=(memory, board.host))


def with_fast_link(board: Board) -> Board:
    """Return a board whose link never limits, as in docs/oram.md."""
    rates = ("bytes_per_second", "large_bytes_per_second", "large_shared_bytes_per_second")
    return with_link(
        board,
        **dict.fromkeys(rates, 1e11),
        read_bursts=1024,
        write_bursts=1024,
        read_in_flight_bytes=1 << 20,
    )
