"""From a command as plain data to the fields of the gates: the order of its loops, and reuse of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hw.errors import InputError, check_range
from hw.lib.arithmetic.float_scale import float_scale_fields
from hw.lib.arithmetic.sum_exceptions import exception_fields
from hw.network.commands import TapTile, VectorCommand, VectorKind
from hw.network.normalization import LEAST_SHIFT as LEAST_SUM_SHIFT
from hw.network.vector.config import VectorConfig
from hw.network.vector.layouts import (
    COUNT_BITS,
    FACTOR_BITS,
    LEAST_SHIFT,
    SHIFT_BITS,
    STEPS_BITS,
    TAP_BITS,
    PixelSettings,
)
from hw.network.vector.wide_fields import (
    WIDE_KINDS,
    WORD_KINDS,
    check_wide,
    pixel_words,
    takes_two,
    word_fields,
)

#: Kinds that read a window of the first source.
_WINDOWS = (VectorKind.MAX, VectorKind.MEAN, VectorKind.MEAN16)
#: Kinds that read a second source.
_PAIRS = (VectorKind.ADD, VectorKind.MULTIPLY, VectorKind.ADD16)
#: Passes over the words of a softmax's row: maximum, sum, results.
PASSES = 3
#: Most elements of a mean, which its sum has bits for.
MOST_ELEMENTS = 1 << 15


@dataclass(frozen=True, kw_only=True)
class Places:
    """Rows of the unit's tables at which a command's own begin."""

    tap: int = 0
    scale: int = 0
    table: int = 0
    exponential: int = 0
    channel: int = 0


@dataclass(frozen=True, kw_only=True)
class Loops:
    """The loops of a command, and how a window reuses the columns of the one before.

    With ``reuse`` a row has one window more, before the first one.
    """

    rows: int
    outer: int
    passes: int
    inner: int
    columns: int  #: Steps across the window.
    taps: int
    words_inner: bool
    reuse: bool
    pairs: bool
    new: int  #: Columns that a window reads.
    silent: bool = False  #: Windows have no results.

    @property
    def reads(self) -> int:
        """Steps of a word, or of two from different ports."""
        return self.rows * self.outer * self.passes * self.inner * self.columns * self.taps

    @property
    def results(self) -> int:
        """Words written."""
        return 0 if self.silent else self.rows * self.outer * (self.inner - self.reuse)


def loops_of(config: VectorConfig, command: VectorCommand) -> Loops:
    """Return the loops of a command.

    A maximum whose windows overlap reads each column once, if they overlap by no more than a stride.  Where a
    window has two new columns, both ports read; of a mean of int16 one port reads.
    """
    if command.kind in WORD_KINDS:
        return _word_loops(config, command)
    words = -(-command.target.granules // config.granules)
    softmax = command.kind is VectorKind.SOFTMAX
    windows = command.kind in _WINDOWS
    kernel, stride = (command.kernel_columns if windows else 1), command.bounds.stride_x
    reuse = (
        command.kind is VectorKind.MAX
        and command.columns > 1
        and command.column_step == 1
        and stride < kernel <= 2 * stride
        and command.sources[0].across == stride * command.column_granules
    )
    new = stride if reuse else kernel
    taps = command.taps if windows else 1
    # The factors of two means must be two cycles apart.
    apart = -(-new // 2) * taps > 1 or len(command.scales) < 2
    pairs = windows and command.kind is not VectorKind.MEAN16 and new > 1 and apart
    pixels = command.columns + reuse
    return Loops(
        rows=command.rows,
        outer=pixels if softmax else words,
        passes=PASSES if softmax else 1,
        inner=words if softmax else pixels,
        columns=-(-new // 2) if pairs else new,
        taps=taps,
        words_inner=softmax,
        reuse=reuse,
        pairs=pairs,
        new=new,
    )


def _word_loops(config: VectorConfig, command: VectorCommand) -> Loops:
    """Return the loops of statistics or a LayerNorm: tiles of one word or of two, then pixels."""
    statistics, words = command.kind is VectorKind.STATS, 2 if takes_two(command) else 1
    return Loops(
        rows=command.rows,
        outer=-(-pixel_words(config, command) // words),
        passes=1,
        inner=command.columns,
        columns=words if statistics else 1,
        taps=1,
        words_inner=False,
        reuse=False,
        pairs=words == 2 and not statistics,
        new=words,
        silent=statistics,
    )


def vector_fields(config: VectorConfig, command: VectorCommand, places: Places) -> dict[str, Any]:
    """Return the fields of a command (`layouts.VectorFields`).

    Raises `InputError` for a command that the unit cannot run.
    """
    loops, kind = loops_of(config, command), command.kind
    _check(config, command, loops)
    for name, last, rows in (
        ("tap rows", places.tap + loops.taps, config.taps),
        ("scales", places.scale + len(command.scales), config.scales),
        ("tables", places.table + 1, config.tables),
        ("tables of exponentials", places.exponential + 1, config.exponentials),
        ("rows of channels", places.channel + loops.outer * (kind is VectorKind.NORM), config.channels),
    ):
        check_range(name, last, 0, rows)
    target, bounds = command.target, command.bounds
    source, granules = command.sources[0], config.granules
    kernel, stride = command.kernel_columns, bounds.stride_x
    mask = config.shape.words * config.shape.granules - 1
    column = {"granules": command.column_granules, "step": command.column_step}
    # The first window of a row with reuse keeps columns for the next one; it lies a stride before the first
    # window's own ones.
    ahead = kernel - 2 * stride if loops.reuse else 0
    step = 2 if loops.pairs else 1

    def walk(start: int, down: int, across: int, between: int) -> dict[str, int]:
        levels = (across, granules) if loops.words_inner else (granules, across)
        numbers = (start, down, *levels, between)
        names = ("start", "row", "outer", "inner", "column")
        return {name: number & mask for name, number in zip(names, numbers, strict=True)}

    first = source.base + ahead * column["granules"]
    between = step * column["granules"]
    if kind in _PAIRS:
        other = command.sources[1]
        second = walk(other.base, other.down, other.across, 0)
    else:
        second = walk(first + column["granules"], source.down, source.across, between)
    out = target.base - loops.reuse * target.pitch
    places_across = (stride, 0) if loops.words_inner else (0, stride)
    kept = 2 * stride - kernel if loops.reuse else 0
    words = -(-target.granules // granules)
    addition, scale = command.addition, places.scale
    least = LEAST_SUM_SHIFT if kind in WIDE_KINDS else LEAST_SHIFT
    # A mean adds up its elements as they are.
    factors = (1, 1) if kind is VectorKind.MEAN else (addition.first, addition.second) if addition else (0, 0)
    found = {
        "kind": int(kind),
        **{name: getattr(loops, name) for name in ("rows", "outer", "passes", "inner", "columns", "taps")},
        "first": walk(first, source.down, source.across, between),
        "second": second,
        "target": walk(out, command.columns * target.pitch, target.pitch, 0),
        "column": {
            "start": ahead * column["step"],
            "row": 0,
            "outer": places_across[0],
            "inner": places_across[1],
            "column": step * column["step"],
        },
        "stride_y": bounds.stride_y,
        "height": bounds.height,
        "width": bounds.width,
        "words_inner": int(loops.words_inner),
        "last_enable": (1 << target.granules - (words - 1) * granules) - 1,
        "first_tap": places.tap,
        "reads_second": int(loops.pairs or kind in _PAIRS),
        "pairs": int(loops.pairs),
        "pair_step": column["step"],
        "odd": int(loops.pairs and loops.new % 2),
        "reuses": int(loops.reuse),
        "keep_column": kept // step,
        "keep_second": kept % step,
        "zero_first": source.zero & 255,
        "zero_second": (command.sources[1] if kind in _PAIRS else source).zero & 255,
        "zero": target.zero & 255,
        "low": target.low & 255,
        "high": target.high & 255,
        "factor_first": factors[0],
        "factor_second": factors[1],
        "shift": addition.shift - least if addition else 0,
        "exceptions": exception_fields(addition.exceptions if addition else command.exceptions),
        "ties_odd": int(command.zero_first and target.zero % 2),
        "scale": scale,
        "counted": int(kind is VectorKind.MEAN and len(command.scales) > 1),
        "table": places.table,
        "exponential": places.exponential,
        "channels": command.channels,
        "steps": command.steps,
        **dict.fromkeys(("silent", "counts_words", "last_word", "last_read", "byte", "pixel"), 0),
        "channel_row": 0,
        "pixel_settings": dict.fromkeys(PixelSettings().members, 0),
    }
    return found | word_fields(config, command, channel=places.channel) if kind in WORD_KINDS else found


def _check(config: VectorConfig, command: VectorCommand, loops: Loops) -> None:
    counts = 1 << COUNT_BITS
    for name in ("rows", "outer", "inner"):
        check_range(name, getattr(loops, name), 1, counts - 1)
    for name in ("columns", "taps"):
        check_range(name, getattr(loops, name), 1, (1 << TAP_BITS) - 1)
    check_range("height", command.bounds.height, 1, counts - 1)
    check_range("width", command.bounds.width, 1, counts - 1)
    if command.kind is VectorKind.MEAN:
        check_range("elements of a window", command.taps * command.kernel_columns, 1, MOST_ELEMENTS)
    if command.addition is not None:
        check_range("factor", command.addition.first, 0, (1 << FACTOR_BITS) - 1)
        check_range("factor", command.addition.second, 0, (1 << FACTOR_BITS) - 1)
        least = LEAST_SUM_SHIFT if command.kind in WIDE_KINDS else LEAST_SHIFT
        most = least + (1 << SHIFT_BITS) - 1
        check_range("shift of an addition", command.addition.shift, least, most)
    if command.kind in WIDE_KINDS:
        check_wide(config, command)
    if command.kind is VectorKind.SOFTMAX:
        check_range("channels", command.channels, 1, 4096)
        check_range("steps of a softmax", command.steps, 1, (1 << STEPS_BITS) - 1)


def tap_row(config: VectorConfig, tile: TapTile) -> dict[str, int]:
    """Return the row of the unit's tap table (`layouts.TapRow`); all granules are of one pixel."""
    if len({*tile.columns}) > 1 or not all(tile.valid):
        raise InputError("granules of a window's tap", tile.columns, "of one pixel")
    mask = config.shape.words * config.shape.granules - 1
    return {"offset": tile.offset & mask, "row": tile.row, "column": tile.columns[0]}


def scale_row(scale: float) -> dict[str, int]:
    """Return the row of the unit's scales (`layouts.ScaleRow`)."""
    multiplier, exponent = float_scale_fields(scale)
    return {"multiplier": multiplier, "exponent": exponent}
