"""Derives word gates: which words each gated read needs, and the straight lines that reach them last."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from hw.network.commands import Core, Follow

#: In place of the word of a read that needs none.
FREE = -1


def follow_of(core: Core, needed: NDArray[np.int64], grid: tuple[int, int], *, written: int) -> Follow | None:
    """Return the gate that opens no read before its word, and the others as little after it as a line can.

    ``needed``: the last word of ``core`` that each read needs, or `FREE`. ``grid``: tiles, and reads of a
    tile, that a gate counts. ``written``: words that are ever there.  None if no line fits.
    """
    tiles, per_tile = grid
    size = tiles * per_tile
    if not 0 < size <= len(needed):
        return None
    counted = needed[:size].reshape(tiles, per_tile)
    tile, read = np.arange(tiles)[:, None], np.arange(per_tile)[None]
    held = counted != FREE
    if not held.any():
        return None
    best: tuple[int, Follow] | None = None
    for step, tile_step in itertools.product(_slopes(counted, held), _slopes(counted.T, held.T)):
        line = tile * tile_step + read * step
        first = int((counted - line)[held].max())
        gates = np.maximum.accumulate((line + first).reshape(-1))
        if gates[-1] >= written or gates[-1] < needed[size:].max(initial=FREE):
            continue
        late = int((gates - counted.reshape(-1))[held.reshape(-1)].sum())
        if best is None or late < best[0]:
            found = Follow(
                core=core, first=first, step=step, tile_step=tile_step, per_tile=per_tile, tiles=tiles
            )
            best = late, found
    return best and best[1]


def _slopes(rows: NDArray[np.int64], held: NDArray[np.bool_]) -> list[int]:
    """Return distances of neighbours that occur most often, and those of ends."""
    both = held[:, 1:] & held[:, :-1]
    values, counts = np.unique((rows[:, 1:] - rows[:, :-1])[both], return_counts=True)
    found = {0, *values[np.argsort(-counts)][:3].tolist()}
    for row, mask in zip(rows[:2], held[:2], strict=True):
        places = np.flatnonzero(mask)
        if len(places) > 1:
            first, last = places[0], places[-1]
            found.add(int(-(-(row[last] - row[first]) // (last - first))))
    return sorted(each for each in found if each >= 0)
