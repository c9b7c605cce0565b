"""The columns of a convolution on the matrix array: taps of 64 bytes, weights and parameters in packets.

A packet serves one tap tile of one column tile.  It has 16 beats of weights, and with the first tap tile 3
more of parameters (`hw.network.matrix.layouts`).  In a beat cell c, which has the
columns 2 c and 2 c + 1, takes bytes 8 c to 8 c + 7.  Beat b holds the weights of inputs 60 - 4 b to 63 - 4 b.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.lib.arithmetic.float_scale import MULTIPLIER_BITS, SUM_BITS, float_scale_fields
from hw.network.compile.form import FOLDED_CHANNELS, GRANULE, WORD_GRANULES, Form
from hw.network.compile.operands import results_of
from hw.network.graph.network import Convolution, Value, Window

#: Inputs of the array: the bytes of a word.
INPUTS = GRANULE * WORD_GRANULES
#: Inputs of a beat, columns and bytes of a cell.
_BEAT_INPUTS, _CELL_COLUMNS, _CELL_BYTES = 4, 2, 8


@dataclass(frozen=True, kw_only=True)
class TapGranule:
    """One granule of a tap: row and column of the window, and the granule of the pixel."""

    row: int
    column: int
    granule: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Columns:
    """Neighbouring columns of a convolution that one command computes, and the taps they read."""

    first: int  #: First output channel.
    count: int
    tiles: tuple[tuple[TapGranule, ...], ...]  #: Up to four granules each, neighbours in memory.
    group_step: int = 0  #: See `MatrixCommand.group_step`.


def window_of(convolution: Convolution, form: Form) -> Window:
    """Return the window on granules: the fold's own, or the convolution's."""
    return convolution.window if form.fold is None else form.fold.window


def columns_of(convolution: Convolution, form: Form, array: int) -> Iterator[Columns]:
    """Yield the parts of a convolution that one command each computes, on an array of ``array`` columns.

    A group of whole granules is a part of its own.  Of small groups that do not cross column tiles, a column
    tile reads only the inputs it needs.  Any other grouped convolution reads all inputs, with weights of 0.
    """
    window = window_of(convolution, form)
    outputs, groups = convolution.weights.shape[3], convolution.groups
    whole = range(form.granules)
    if groups == 1:
        yield Columns(first=0, count=outputs, tiles=_tiles(window, whole, form.granules))
        return
    width, each = convolution.weights.shape[2], outputs // groups
    if width % GRANULE == 0 and each % GRANULE == 0 and form.is_plain:
        for group in range(groups):
            granules = range(group * width // GRANULE, (group + 1) * width // GRANULE)
            yield Columns(first=group * each, count=each, tiles=_tiles(window, granules, form.granules))
    elif width == each and array % each == 0 and form.is_plain:
        step = array // GRANULE
        tiles = _tiles(window, range(step), form.granules)
        yield Columns(first=0, count=outputs, tiles=tiles, group_step=step)
    else:
        yield Columns(first=0, count=outputs, tiles=_tiles(window, whole, form.granules))


def _tiles(window: Window, granules: range, pixel: int) -> tuple[tuple[TapGranule, ...], ...]:
    """Cut the granules of a window into words; those of a row of whole pixels are neighbours in memory."""
    found = []
    joined = len(granules) == pixel and window.dilations[1] == 1
    for row in range(window.kernel[0]):
        taps = [
            [TapGranule(row=row, column=column, granule=granule) for granule in granules]
            for column in range(window.kernel[1])
        ]
        for run in [list(itertools.chain(*taps))] if joined else taps:
            found += [tuple(run[at : at + WORD_GRANULES]) for at in range(0, len(run), WORD_GRANULES)]
    return tuple(found)


def matrix_of(convolution: Convolution, form: Form) -> NDArray[np.int8]:
    """Return the weights as they meet the stored bytes, groups on the diagonal.

    Shape ``(window rows, window columns, bytes of a pixel, output channels)``.
    """
    window = window_of(convolution, form)
    rows, columns, width, outputs = convolution.weights.shape
    found = np.zeros((*window.kernel, form.granules * GRANULE, outputs), np.int8)
    if form.fold is not None:
        down, across = form.fold.pixels
        for row in range(rows):
            for column in range(columns):
                (y, i), (x, j) = divmod(row, down), divmod(column, across)
                first = FOLDED_CHANNELS * (i * across + j)
                found[y, x, first : first + width] = convolution.weights[row, column]
        return found
    each = outputs // convolution.groups
    for group in range(convolution.groups):
        to = slice(group * each, (group + 1) * each)
        positions = np.array(form.positions[group * width : (group + 1) * width])
        found[:, :, positions, to] = convolution.weights[..., to]
    return found


def packets(
    convolution: Convolution,
    columns: Columns,
    form: Form,
    before: Value,
    after: Value,
    *,
    width: int,
    copies: int,
) -> NDArray[np.uint8]:
    """Return the packets of a pass over ``columns``, of shape ``(beats, bytes of a beat)``.

    ``width``: columns of a column tile; each stands ``copies`` times in the array.
    """
    matrix = matrix_of(convolution, form)
    lifted = matrix.astype(np.int64)
    if before.group_shifts:
        lifted[:, :, : len(before.lifts)] <<= before.lifts[:, np.newaxis]
    sums = lifted.sum(axis=(0, 1, 2))
    biases = convolution.bias.astype(np.int64) - before.zero * sums
    factors, zeros = results_of(convolution, before, after)
    found = []
    for tile in range(-(-columns.count // width)):
        first = columns.first + tile * width
        used = range(first, min(first + width, columns.first + columns.count))
        for number, taps in enumerate(columns.tiles):
            weights = np.zeros((INPUTS, width), np.int8)
            for place, tap in enumerate(taps):
                granule = tap.granule + tile * columns.group_step
                if granule < form.granules:
                    part = matrix[tap.row, tap.column, granule * GRANULE : (granule + 1) * GRANULE]
                    weights[place * GRANULE : (place + 1) * GRANULE, : len(used)] = part[:, used]
            by_beat = np.tile(weights, (1, copies)).reshape(
                INPUTS // _BEAT_INPUTS, _BEAT_INPUTS, -1, _CELL_COLUMNS
            )
            by_beat = by_beat[::-1].transpose(0, 2, 3, 1)
            found.append(by_beat.reshape(INPUTS // _BEAT_INPUTS, -1).view(np.uint8))
            if number == 0:
                found.append(_parameters(biases, factors, zeros, used, width, copies))
    return np.concatenate(found)


def _parameters(
    biases: NDArray[np.int64],
    factors: NDArray[np.float32],
    zeros: NDArray[np.int64],
    used: range,
    width: int,
    copies: int,
) -> NDArray[np.uint8]:
    """Return the beats of parameters of a column tile; columns that are not used have results of 0."""
    scales = np.zeros((width, _CELL_BYTES), np.uint8)
    stored = np.zeros(width, np.int8)
    for number, column in enumerate(used):
        multiplier, exponent = float_scale_fields(float(factors[column]))
        fields = int(biases[column]) % 2**SUM_BITS | multiplier << SUM_BITS
        fields |= exponent << SUM_BITS + MULTIPLIER_BITS
        scales[number] = np.frombuffer(fields.to_bytes(_CELL_BYTES, "little"), np.uint8)
        stored[number] = zeros[column]
    by_cell = np.tile(scales, (copies, 1)).reshape(-1, _CELL_COLUMNS, _CELL_BYTES)
    last = np.zeros((len(by_cell), 1, _CELL_BYTES), np.uint8)
    last[:, 0, :_CELL_COLUMNS] = np.tile(stored, copies).reshape(-1, _CELL_COLUMNS).view(np.uint8)
    return np.concatenate([by_cell, last], axis=1).transpose(1, 0, 2).reshape(_CELL_COLUMNS + 1, -1)
