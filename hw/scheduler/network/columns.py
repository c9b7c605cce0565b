"""The columns of a convolution on the matrix array: taps of 64 bytes, weights and parameters in packets.

A packet is what the array takes for one tap tile of one column tile: 16 beats of 256 bytes of weights, and
before the first tap tile 3 beats of parameters.  In a beat cell c, which has the columns 2 c and 2 c + 1,
takes bytes 8 c to 8 c + 7: of beat b the weights of inputs 4 b to 4 b + 3, first column first.  The 24
bytes of parameters of a cell are those of its two columns: bias (4), multiplier (3), shift (1), zero (1).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.scheduler.network.form import FOLDED_CHANNELS, GRANULE, WORD_GRANULES, Form
from hw.scheduler.network.integers import Factor, output_scales
from hw.scheduler.network.network import Convolution, Value, Window

#: Inputs and columns of the array.
INPUTS = COLUMNS = 64
#: Bytes of a beat, and beats of weights and of parameters.
BEAT_BYTES = 256
WEIGHT_BEATS, PARAMETER_BEATS = 16, 3
_PARAMETER_BYTES = 12


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


def columns_of(convolution: Convolution, form: Form) -> Iterator[Columns]:
    """Yield the parts of a convolution that one command each computes.

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
    elif width == each and COLUMNS % each == 0 and form.is_plain:
        tiles = _tiles(window, range(WORD_GRANULES), form.granules)
        yield Columns(first=0, count=outputs, tiles=tiles, group_step=WORD_GRANULES)
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
    convolution: Convolution, columns: Columns, form: Form, before: Value, after: Value, *, halves: bool
) -> NDArray[np.uint8]:
    """Return the packets of a pass over ``columns``, of shape ``(beats, BEAT_BYTES)``."""
    matrix = matrix_of(convolution, form)
    sums = matrix.astype(np.int64).sum(axis=(0, 1, 2))
    biases = convolution.bias.astype(np.int64) - before.zero * sums
    factors = output_scales(before.scale, convolution.weight_scales, after.scale)
    beats = []
    width = COLUMNS // 2 if halves else COLUMNS
    for tile in range(-(-columns.count // width)):
        first = columns.first + tile * width
        used = range(first, min(first + width, columns.first + columns.count))
        parameters = np.zeros((width, _PARAMETER_BYTES), np.uint8)
        for number, column in enumerate(used):
            factor = Factor.of(factors[column])
            record = (
                int(biases[column]).to_bytes(4, "little", signed=True)
                + factor.multiplier.to_bytes(3, "little")
                + factor.shift.to_bytes(1, "little")
                + after.zero.to_bytes(1, "little", signed=True)
            )
            parameters[number, : len(record)] = np.frombuffer(record, np.uint8)
        parameters = np.tile(parameters, (COLUMNS // width, 1)).reshape(COLUMNS // 2, PARAMETER_BEATS, 8)
        beats.append(parameters.transpose(1, 0, 2).reshape(PARAMETER_BEATS, BEAT_BYTES))
        for taps in columns.tiles:
            weights = np.zeros((INPUTS, width), np.int8)
            for number, tap in enumerate(taps):
                granule = tap.granule + tile * columns.group_step
                if granule < form.granules:
                    part = matrix[tap.row, tap.column, granule * GRANULE : (granule + 1) * GRANULE]
                    weights[number * GRANULE : (number + 1) * GRANULE, : len(used)] = part[:, used]
            weights = np.tile(weights, (1, COLUMNS // width))
            by_beat = weights.reshape(WEIGHT_BEATS, 4, COLUMNS // 2, 2).transpose(0, 2, 3, 1)
            beats.append(by_beat.reshape(WEIGHT_BEATS, BEAT_BYTES).view(np.uint8))
    return np.concatenate(beats)
