"""A matrix command as the payloads of the matrix unit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hw.errors import InputError, check_range
from hw.network.commands import Follow, MatrixCommand, TapTile
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.drain_command import drain_command
from hw.network.matrix.feed_command import MOST_COUNT, MOST_SIDE, MOST_STEPS, MOST_TAP, TABLE_ENTRIES
from hw.network.matrix.layouts import SHIFT_BITS, packet_beats
from hw.network.matrix.word_gate import follow_fields
from hw.network.scratchpad.shape import GranuleShape


def unit_command(
    command: MatrixCommand,
    taps: Sequence[TapTile],
    shape: GranuleShape,
    config: MatrixConfig,
    *,
    follow: Follow | None = None,
) -> dict[str, Any]:
    """Return a payload of `UnitCommand`; ``taps`` are the command's own, ``follow`` the words it follows.

    Raises `InputError` for a command beyond the unit's counters.
    """
    _check(command, taps)
    check_range("table", command.table, -1, config.tables - 1)
    tile_granules = config.columns * 8 // shape.granule_bits
    feeds = 2 if command.halves else 1
    return {
        "feeds": [_feed(command, taps, shape, feed, feeds) for feed in range(2)],
        "k_tiles": command.taps,
        "two": int(command.halves),
        "drain": drain_command(command, tile_granules=tile_granules),
        "table": max(0, command.table),
        "follow": follow_fields(follow),
    }


def unit_entries(
    command: MatrixCommand, taps: Sequence[TapTile], shape: GranuleShape
) -> list[dict[str, Any]]:
    """Return the payloads of `UnitEntry` of a command."""
    row, column = _least(taps)
    entries = []
    for tap, shift in zip(taps, command.shifts or (0,) * len(taps), strict=True):
        pairs = zip(tap.columns, tap.valid, strict=True)
        entry = {
            "offset": tap.offset % (shape.words * shape.granules),
            "row": tap.row - row,
            "column": [each - column if valid else 0 for each, valid in pairs],
            "valid": sum(valid << n for n, valid in enumerate(tap.valid)),
            "shift": shift,
        }
        entries.append({"entry": entry, "two": int(command.halves)})
    return entries


def unit_weights(command: MatrixCommand, config: MatrixConfig, *, first: int) -> dict[str, Any]:
    """Return a payload of `UnitWeights` for packets whose words begin at word ``first`` of each port."""
    words = -(-command.rows * command.columns // (2 if command.halves else 1))
    blocks = -(-words // MOST_STEPS)
    beats = command.taps * packet_beats(config, parameters=False)
    beats += packet_beats(config, parameters=True) - packet_beats(config, parameters=False)
    return {
        "words": {"first": first, "words": command.column_tiles * beats * config.lines, "passes": blocks},
        "run": {"groups": blocks * command.column_tiles, "k_tiles": command.taps},
    }


def _check(command: MatrixCommand, taps: Sequence[TapTile]) -> None:
    row, column = _least(taps)
    words = -(-command.rows * command.columns // (2 if command.halves else 1))
    height = (command.rows - 1) * command.bounds.stride_y
    width = (command.columns - 1) * command.bounds.stride_x
    for name, value, most in (
        ("rows of an input", command.bounds.height, MOST_SIDE),
        ("columns of an input", command.bounds.width, MOST_SIDE),
        ("columns of an output", command.columns, MOST_SIDE),
        ("rows that outputs span", height + max(0, row), MOST_SIDE),
        ("columns that outputs span", width + max(0, column), MOST_SIDE),
        ("rows of a kernel", max(tap.row for tap in taps) - row, MOST_TAP),
        ("columns of a kernel", max(max(tap.columns) for tap in taps) - column, MOST_TAP),
        ("pads", max(-row, -column, 0), MOST_SIDE),
        ("taps of a column tile", command.taps, TABLE_ENTRIES),
        ("column tiles", command.column_tiles, MOST_COUNT),
        ("blocks of pixels", -(-words // MOST_STEPS), MOST_COUNT),
    ):
        check_range(name, value, 0, most)
    for shift in command.shifts:
        check_range("shift of a k tile", shift, 0, (1 << SHIFT_BITS) - 1)
    if command.shifts and len(command.shifts) != command.taps:
        raise InputError("shifts", command.shifts, f"none, or one for each of {command.taps} taps")
    if command.bits not in (8, 16):
        raise InputError("bits", command.bits, "8 or 16")
    exceptions = command.addition.exceptions if command.addition else ()
    zeros = command.target.zero, command.sum_target[0], command.residual.zero if command.residual else 0
    if command.bits == 16 and (command.table >= 0 or exceptions or any(zeros)):
        raise InputError("command of int16", command, "without table, exceptions and zero points")


def _least(taps: Sequence[TapTile]) -> tuple[int, int]:
    """Return the least row and column of the taps."""
    columns = [each for tap in taps for each, valid in zip(tap.columns, tap.valid, strict=True) if valid]
    return min(tap.row for tap in taps), min(columns)


def _feed(
    command: MatrixCommand, taps: Sequence[TapTile], shape: GranuleShape, feed: int, feeds: int
) -> dict[str, Any]:
    """Return the command of one feed of ``feeds``."""
    source, bounds = command.source, command.bounds
    row, column = _least(taps)

    def place(rows: int, columns: int) -> dict[str, int]:
        address = rows * source.down + columns * source.across
        return {
            "address": address % (shape.words * shape.granules),
            "row": rows * bounds.stride_y,
            "column": columns * bounds.stride_x,
        }

    y, x = divmod(feed, command.columns)
    y_step, x_step = divmod(feeds, command.columns)
    start = place(y, x)
    pixels = command.rows * command.columns
    words = -(-pixels // feeds)
    blocks = -(-words // MOST_STEPS)
    return {
        "start": {
            "address": (start["address"] + source.base) % (shape.words * shape.granules),
            "row": start["row"] + row,
            "column": start["column"] + column,
        },
        "step": place(y_step, x_step),
        "turn": place(1, -command.columns),
        "x_start": x,
        "x_step": x_step,
        "x_width": command.columns,
        "height": bounds.height,
        "width": bounds.width,
        "steps": MOST_STEPS,
        "last_steps": words - (blocks - 1) * MOST_STEPS,
        "blanks": int((words - 1) * feeds + feed >= pixels),
        "blocks": blocks,
        "n_tiles": command.column_tiles,
        "group_tiles": 1 if command.group_step else command.column_tiles,
        "group_pitch": command.group_step,
        "k_tiles": command.taps,
        "zero": source.zero % 256,
    }
