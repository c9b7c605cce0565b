"""How long a residual waits for banks of the scratchpad that the feeds read, cycle by cycle; compiled.

A feed is granted in every cycle, and a residual's request whose bank no feed reads in this cycle.
Constants come with the calls: a compiled function is cached with its own file alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hw.scheduler.compiled import compiled

Integers = NDArray[np.int64]

#: Granules of a word, and slices.
_SLICES = 4


class ResidualCommand(NamedTuple):
    """A matrix command with a residual; addresses in granules."""

    steps: int  #: Of the whole output.
    block_steps: int  #: Most steps of a block.
    feeds: int
    n_tiles: int
    columns: int  #: Of the output.
    base: int
    across: int
    down: int
    group_step: int
    height: int
    width: int
    stride_y: int
    stride_x: int
    residual_base: int
    residual_pitch: int  #: From a step to the next.
    residual_granules: int  #: Of a column tile.


class ReadTiming(NamedTuple):
    """The scratchpad, and the way of words and results."""

    banks: int
    words: int
    ahead: int  #: Reads that a port has granted and not taken, at most.
    response_cycles: int  #: From a grant to the word.
    result_cycles: int  #: From a step to its result at the drain.
    results: int  #: That are announced and not taken, at most.
    lead: int  #: Cycles from the residual's first grant to the feeds'.


@compiled
def _bank(granule: int, timing: ReadTiming) -> int:
    word = granule // _SLICES % timing.words
    return (word + word // timing.banks) % timing.banks


@compiled
def _feed(
    command: ResidualCommand, tap: Integers, tile: int, step: int, timing: ReadTiming, banks: Integers
) -> None:
    """Set the bank of each slice that each feed reads for a step; it stays -1 where none is read."""
    for feed in range(command.feeds):
        pixel = step * command.feeds + feed
        y, x = pixel // command.columns, pixel % command.columns
        if not 0 <= y * command.stride_y + tap[1] < command.height:
            continue
        at = command.base + y * command.down + x * command.across + tap[0] + tile * command.group_step
        for granule in range(_SLICES):
            column = x * command.stride_x + tap[2 + granule]
            if tap[2 + _SLICES + granule] and 0 <= column < command.width:
                banks[feed, (at + granule) % _SLICES] = _bank(at + granule, timing)


@compiled
def _residual(number: int, command: ResidualCommand) -> int:
    """Return the first granule of a residual's word, in the order of results."""
    block = number // (command.block_steps * command.n_tiles)
    first = block * command.block_steps
    number -= first * command.n_tiles
    steps = min(command.block_steps, command.steps - first)
    tile, step = number // steps, number % steps
    at = command.residual_base + (first + step) * command.residual_pitch
    return at + tile * command.residual_granules


@compiled
def _ask(command: ResidualCommand, timing: ReadTiming, sent: int, asked: Integers, banks: Integers) -> int:
    """Grant each slice its next word of the residual, if it may; return the words granted in all slices."""
    total = command.steps * command.n_tiles
    low = total
    for piece in range(_SLICES):
        if asked[piece] < total and asked[piece] - sent < timing.ahead:
            at = _residual(asked[piece], command)
            granule = (piece - at) % _SLICES
            bank = _bank(at + granule, timing)
            read = granule < command.residual_granules
            if not read or (bank != banks[0, piece] and bank != banks[1, piece]):
                asked[piece] += 1
        low = min(low, asked[piece])
    return low


@compiled
def _following(
    block: int, tile: int, step: int, tiles: int, command: ResidualCommand
) -> tuple[int, int, int]:
    """Return the step after one: the next of its sweep, of the next sweep, or of the next block."""
    step += 1
    if step == min(command.block_steps, command.steps - block * command.block_steps):
        step = 0
        tile += 1
        if tile == tiles * command.n_tiles:
            tile = 0
            block += 1
    return block, tile, step


@compiled
def residual_waits(command: ResidualCommand, taps: Integers, timing: ReadTiming) -> tuple[int, int]:
    """Return the cycles by which the last step, and the last result, are late.

    ``taps``: of each k tile its offset, its row, and of each granule its column and whether it is valid.
    """
    total, tiles = command.steps * command.n_tiles, len(taps)
    granted_at = np.zeros(total, np.int64)  # when the last slice of each residual word was granted
    stepped_at = np.zeros(total, np.int64)  # when the step of each result was taken
    fetched_at = np.zeros(timing.ahead, np.int64)
    asked = np.zeros(_SLICES, np.int64)  # residual words that each slice has granted
    banks = np.full((2, _SLICES), -1, np.int64)  # that the feeds read in this cycle
    granted = words = sent = fetched = stepped = last_step = last_sent = 0
    # The word that the feeds read next, and the step that is taken next: block, sweep and step.
    block = tile = step = own_block = own_tile = own_step = 0
    cycle = -timing.lead
    while sent < total:
        banks[:] = -1
        if cycle >= 0 and fetched < total * tiles and fetched - stepped < timing.ahead:
            at = block * command.block_steps + step
            _feed(command, taps[tile % tiles], tile // tiles, at, timing, banks)
            fetched_at[fetched % timing.ahead] = cycle
            fetched += 1
            block, tile, step = _following(block, tile, step, tiles, command)
        low = _ask(command, timing, sent, asked, banks)
        while granted < low:
            granted_at[granted] = cycle
            granted += 1
        if (
            sent < min(words, granted)
            and stepped_at[sent] + timing.result_cycles <= cycle
            and granted_at[sent] + timing.response_cycles <= cycle
        ):
            sent += 1
            last_sent = cycle
        last = own_tile % tiles == tiles - 1
        if (
            stepped < fetched
            and fetched_at[stepped % timing.ahead] + timing.response_cycles <= cycle
            and (not last or words - sent < timing.results)
        ):
            if last:
                stepped_at[words] = cycle
                words += 1
            stepped += 1
            last_step = cycle
            own_block, own_tile, own_step = _following(own_block, own_tile, own_step, tiles, command)
        cycle += 1
    ideal = timing.response_cycles + total * tiles - 1
    return last_step - ideal, last_sent - ideal - timing.result_cycles
