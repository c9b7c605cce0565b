"""The granules that a command reads and writes, in the order of its gates.

Granules that a unit reads and does not use are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.network.attention.order import WordRun, word_reads, word_writes
from hw.network.commands import AttentionCommand, Command, MatrixCommand, TapTile, VectorCommand
from hw.network.config import NetworkConfig
from hw.network.matrix.feed_command import MOST_STEPS
from hw.network.vector.fields import Places, loops_of, vector_fields

#: Granules of a word.
_WORD = 4
#: In place of a granule that is not accessed.
NONE = -1

Granules = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Reads:
    """Requests of one read port, in order."""

    granules: Granules  #: Of each request, shape ``(requests, 4)``; `NONE` where it reads none.
    before: NDArray[np.int64]  #: Of each request: the first write of the command that surely comes after it.
    gated: bool = False  #: A `Follow` counts these requests.


@dataclass(frozen=True, kw_only=True, eq=False)
class Accesses:
    """All accesses of a command.

    Writes of a command are done in order.  ``grid``: tiles, and reads of a tile, that a `Follow` may gate.
    """

    reads: tuple[Reads, ...]
    writes: Granules  #: Of each word written, shape ``(words, 4)``; `NONE` where it writes none.
    grid: tuple[int, int] = (0, 0)


def accesses(command: Command, taps: tuple[TapTile, ...], config: NetworkConfig) -> Accesses:
    """Return the accesses of a command; ``taps``: the program's."""
    if isinstance(command, AttentionCommand):
        return _attention(command, config)
    own = taps[command.first_tap : command.first_tap + command.taps]
    if isinstance(command, MatrixCommand):
        return _matrix(command, own, config)
    return _vector(command, own, config)


def _words(addresses: Granules, count: int | NDArray[np.int64], config: NetworkConfig) -> Granules:
    """Return the first ``count`` granules from each address on."""
    numbers = np.arange(_WORD)
    found = (addresses[..., None] + numbers) % (config.shape.words * config.shape.granules)
    return np.where(numbers < np.asarray(count)[..., None], found, NONE)


def _matrix(command: MatrixCommand, taps: tuple[TapTile, ...], config: NetworkConfig) -> Accesses:
    each, parts, tiles = 1 + command.halves, command.bits // 8, command.column_tiles
    pixels, tile = command.rows * command.columns, config.columns // 16
    results = -(-pixels // each)
    # Of each result, in order: its number in its column tile, and the tile.
    blocks = [np.arange(at, min(at + MOST_STEPS, results)) for at in range(0, results, MOST_STEPS)]
    number = np.concatenate([block for block in blocks for _ in range(tiles)])
    of_tile = np.concatenate([np.full(len(block), n) for block in blocks for n in range(tiles)])
    last = command.target.granules - parts * tile * (tiles - 1)
    pairs = np.minimum(each, pixels - each * number)  # pixels of a result
    if parts == 1:
        ends = [pairs * last]
    elif command.halves:
        ends = [np.full(len(pairs), last), np.where(pairs == 2, last, 0)]
    else:
        ends = [np.full(len(pairs), min(last, tile)), np.full(len(pairs), max(last - tile, 0))]
    counts = [np.where(of_tile == tiles - 1, end, tile) for end in ends]

    def words(base: int, pitch: int) -> Granules:
        """Return the words of all results, one or two each, in a tensor of this pitch."""
        first = base + number * each * pitch + of_tile * tile * parts
        second = pitch if command.halves else tile
        found = [_words(first + part * second, count, config) for part, count in enumerate(counts)]
        return np.stack(found, axis=1).reshape(-1, _WORD)

    reads = [_feed(command, taps, config, feed, blocks) for feed in range(each)]
    if command.residual is not None:
        granules = words(command.residual.base, command.residual.across)
        reads.append(Reads(granules=granules, before=np.arange(len(granules))))
    writes = words(command.target.base, command.target.pitch)
    return Accesses(reads=tuple(reads), writes=writes, grid=(command.taps, len(blocks[0])))


def _feed(
    command: MatrixCommand,
    taps: tuple[TapTile, ...],
    config: NetworkConfig,
    feed: int,
    blocks: list[NDArray[np.int64]],
) -> Reads:
    """Return the reads of one feed: by block, column tile, k tile and word."""
    pixel = (1 + command.halves) * np.arange(blocks[-1][-1] + 1) + feed
    y, x = np.divmod(pixel, command.columns)
    source, bounds = command.source, command.bounds
    modulus = config.shape.words * config.shape.granules
    found = np.empty((len(taps), len(pixel), _WORD), np.int64)
    exists = pixel < command.rows * command.columns
    for n, tap in enumerate(taps):
        row = y * bounds.stride_y + tap.row
        address = source.base + y * source.down + x * source.across + tap.offset
        for g in range(_WORD):
            column = x * bounds.stride_x + tap.columns[g]
            inside = exists & (row >= 0) & (row < bounds.height) & (column >= 0) & (column < bounds.width)
            found[n, :, g] = np.where(inside & tap.valid[g], address + g, NONE)
    parts, before, word = [], [], 0
    words = command.bits // 8  # of a result
    granule, pixel_granules = np.arange(_WORD), source.across // bounds.stride_x
    for block in blocks:
        part = found[:, block]
        for tile in range(command.column_tiles):
            moved = np.where(part == NONE, NONE, (part + tile * command.group_step) % modulus)
            if command.group_step:
                # Words of the last groups may end behind their pixel, where weights are zero.
                moved[:, :, tile * command.group_step + granule >= pixel_granules] = NONE
            parts.append(moved.reshape(-1, _WORD))
            before.append(np.tile(word + words * np.arange(len(block)), len(taps)))
            word += words * len(block)
    return Reads(granules=np.concatenate(parts), before=np.concatenate(before), gated=True)


def _vector(command: VectorCommand, taps: tuple[TapTile, ...], config: NetworkConfig) -> Accesses:
    fields, loops = vector_fields(config.vector, command, Places()), loops_of(config.vector, command)
    sizes = (loops.rows, loops.outer, loops.passes, loops.inner, loops.columns, loops.taps)
    row, outer, turn, inner, column, tap = np.indices(sizes).reshape(6, -1)

    def walk(name: str) -> NDArray[np.int64]:
        steps = fields[name]
        across = steps["outer"] * outer + steps["inner"] * inner + steps["column"] * column
        return np.asarray(steps["start"] + steps["row"] * row + across)

    last_word = inner == loops.inner - 1 if loops.words_inner else outer == loops.outer - 1
    count = np.where(last_word, fields["last_enable"].bit_length(), config.vector.granules)
    rows = [(each.offset, each.row, each.columns[0]) for each in taps[: loops.taps]]
    offset, down, across = np.array(rows)[tap].T
    # With reuse, the first window of a row only keeps columns for the next one.
    results = loops.inner - loops.reuse
    first_result = (row * loops.outer + outer) * results
    last_pass = turn == loops.passes - 1
    before = np.where(last_pass, first_result + np.maximum(0, inner - loops.reuse), first_result)

    def inside(further: int) -> NDArray[np.bool_]:
        y, x = row * fields["stride_y"] + down, walk("column") + across + further
        return np.asarray((y >= 0) & (y < fields["height"]) & (x >= 0) & (x < fields["width"]))

    def read(addresses: Granules, here: Any, further: int = 0) -> Reads:
        asked = count
        if fields["counts_words"]:
            # Of a pixel that is read word by word, the last word has granules of its own.
            last_read = walk("column") + further == fields["last_word"]
            asked = np.where(last_read, fields["last_read"].bit_length(), config.vector.granules)
        return Reads(granules=_words(addresses, np.where(here, asked, 0), config), before=before, gated=True)

    reads = [read(walk("first") + offset, inside(0))]
    if loops.pairs:
        # The last step of a window of odd width has one column.
        step = fields["pair_step"]
        second = inside(step) & ~((column == loops.columns - 1) & bool(fields["odd"]))
        reads.append(read(walk("second") + offset, second, step))
    elif fields["reads_second"]:
        reads.append(read(walk("second"), True))
    ends = last_pass & (column == loops.columns - 1) & (tap == loops.taps - 1) & (inner >= loops.reuse)
    ends &= not loops.silent
    grid = loops.rows * loops.outer, loops.passes * loops.inner * loops.columns * loops.taps
    return Accesses(reads=tuple(reads), writes=_words(walk("target")[ends], count[ends], config), grid=grid)


def _attention(command: AttentionCommand, config: NetworkConfig) -> Accesses:
    def words(run: WordRun) -> Granules:
        return _words(run.addresses, run.granules, config)

    runs = word_reads(config.attention, command).values()
    reads = tuple(Reads(granules=words(run), before=run.before) for run in runs)
    return Accesses(reads=reads, writes=words(word_writes(config.attention, command)))
