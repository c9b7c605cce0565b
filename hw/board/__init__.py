"""Boards: what a card offers a kernel, read from ``boards/*.yaml``, with the timing of its memories."""

from hw.board.board import Board, ClockBudget, Memory
from hw.board.files import board_names, load_board

__all__ = ["Board", "ClockBudget", "Memory", "board_names", "load_board"]
