"""Boards: a card's resources, memories and clock for a kernel, read from ``boards/*.yaml``."""

from hw.board.board import Board, ClockBudget, Memory
from hw.board.files import board_names, load_board

__all__ = ["Board", "ClockBudget", "Memory", "board_names", "load_board"]
