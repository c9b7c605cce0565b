"""Golden model of commands on int16, on the bytes of a scratchpad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hw.network.commands import Addition, VectorCommand
from hw.network.normalization import ChannelRows
from sim.golden.normalization import normalized, scaled, statistics

#: Values and bytes of a granule.
_VALUES, _BYTES = 8, 16


@dataclass(frozen=True, kw_only=True)
class PixelStatistics:
    """What the unit keeps of a pixel."""

    total: int
    squares: int
    channels: int
    epsilon: int


#: Statistics by the row in which the unit keeps them.
Kept = dict[int, PixelStatistics]


def wide(stored: NDArray[Any]) -> NDArray[np.int64]:
    """Return the int16 of stored bytes, along the last dimension."""
    pairs = stored.astype(np.int64)
    return (pairs[..., ::2] & 255) + 256 * pairs[..., 1::2]


def stored_bytes(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int16 as signed bytes, along the last dimension."""
    return np.ascontiguousarray(values.astype("<i2")).view(np.int8).astype(np.int64)


def rounded_sums(total: NDArray[np.int64], addition: Addition) -> NDArray[np.int64]:
    """Return sums of products over a power of two, to even, as int16."""
    half = 1 << addition.shift - 1
    found = total + half >> addition.shift
    ties = (total + half) & (1 << addition.shift) - 1 == 0
    return np.clip(found - (ties & (found & 1 == 1)), -32768, 32767)


def gather(command: VectorCommand, scratchpad: NDArray[np.int8], kept: Kept) -> None:
    """Gather the statistics of pixels."""
    totals, squares = statistics(_pixels(command, scratchpad).astype(np.int16))
    for n, (total, square) in enumerate(zip(totals, squares, strict=True)):
        kept[command.pixel + n] = PixelStatistics(
            total=int(total), squares=int(square), channels=command.channels, epsilon=command.epsilon
        )


def normalize(
    command: VectorCommand, rows: ChannelRows, scratchpad: NDArray[np.int8], kept: Kept
) -> NDArray[np.int64]:
    """Return the bytes of LayerNorm's results."""
    assert rows.shift == command.shift
    values = _pixels(command, scratchpad)
    normal = np.concatenate(
        [
            normalized(
                pixel[None].astype(np.int16),
                np.array([each.total]),
                np.array([each.squares]),
                channels=each.channels,
                epsilon=each.epsilon,
            )
            for pixel, each in zip(values, (kept[command.pixel + n] for n in range(len(values))), strict=True)
        ]
    )[:, : len(rows.gains)]
    found = scaled(normal, rows, bits=command.bits)
    padded = np.zeros((len(found), command.target.granules * _BYTES * 8 // command.bits), np.int64)
    padded[:, : found.shape[1]] = found
    return padded if command.bits == 8 else stored_bytes(padded)


def _pixels(command: VectorCommand, scratchpad: NDArray[np.int8]) -> NDArray[np.int64]:
    """Return the values of the source's pixels."""
    source = command.sources[0]
    granules = np.arange(-(-command.channels // _VALUES))
    address = source.base + np.arange(command.columns)[:, None] * source.across + granules
    return wide(scratchpad[address % len(scratchpad)].reshape(command.columns, -1))
