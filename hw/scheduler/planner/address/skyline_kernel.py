"""One search for addresses, compiled: blocks fall onto a skyline, lowest valley first.

In every packing all blocks can fall until each lies on the floor or on another one.  Such packings are built
upwards, at a step whose skyline is lowest.  A choice places a block on the level skyline over this step, or
nothing: then the skyline of this step rises to the least height that another block over it could have.  Among
steps the search takes one with few choices; in a packing without a free word there is often only one.
"""

from typing import NamedTuple

import numpy as np

from hw.scheduler.compiled import compiled
from hw.scheduler.planner.order.lattice import Integers, copy_into, set_all

#: Outcome of a search: all blocks placed, no packing exists, or a limit was met.
PLACED, IMPOSSIBLE, STOPPED = 1, -1, 0

#: Most levels for each block; deeper searches are abandoned.
_LEVELS_PER_BLOCK = 4

#: Higher than any address.
_HIGH = 1 << 60

#: A choice that leaves a point of the skyline empty.
_NOTHING = -1


class BlockArrays(NamedTuple):
    """The blocks to be packed."""

    #: ``first``, ``last``, ``size``: shape (blocks,): steps, both included, and units.
    first: Integers
    last: Integers
    size: Integers
    #: ``over``, ``over_from``: shape (spans of all blocks,), (steps + 1,): blocks of each step, by falling
    #: priority; where each step's begin.
    over: Integers
    over_from: Integers


class Skyline(NamedTuple):
    """A packing in progress."""

    #: ``lies``, ``address``: shape (blocks,): 1 for placed blocks; their addresses, and those that the others
    #: would have on this skyline.
    lies: Integers
    address: Integers
    #: ``height``, ``choices``: shape (steps,): lowest address of further blocks; number of further blocks
    #: that could lie on the skyline of each step.
    height: Integers
    choices: Integers
    #: Shape (steps + 1,): 1 where a further block spans the previous step and this one.
    joined: Integers
    #: ``left``, ``failures``: shape (steps,): units of the further blocks; 1 plus the search's failures at
    #: each step.
    left: Integers
    failures: Integers


class Levels(NamedTuple):
    """The decisions so far."""

    #: ``low``, ``high``, ``step``, ``raised``: shape (levels,): the decision's steps, both included; its own
    #: step, and the height of that step if it stays empty.
    low: Integers
    high: Integers
    step: Integers
    raised: Integers
    #: ``tried``, ``total``, ``chosen``: shape (levels,): choices tried, all choices, and the block just
    #: placed, or -1.
    tried: Integers
    total: Integers
    chosen: Integers
    choice: Integers  #: Shape (levels, blocks + 1)
    height: Integers  #: Shape (levels, steps): skyline before the decision.


@compiled
def _settle(begin: int, end: int, capacity: int, blocks: BlockArrays, sky: Skyline) -> int:
    """Raise steps to the lowest address of their further blocks; return a step with too little room, or -1.

    Only the steps from ``begin`` to ``end`` have changed.
    """
    while begin <= end:
        low, high = begin, end
        for step in range(begin, end + 1):
            for index in range(blocks.over_from[step], blocks.over_from[step + 1]):
                block = blocks.over[index]
                first, last = blocks.first[block], blocks.last[block]
                if sky.lies[block] == 1 or step > max(begin, first):
                    continue
                rest = sky.height[first]
                for under in range(first + 1, last + 1):
                    rest = max(rest, sky.height[under])
                sky.address[block] = rest
                low, high = min(low, first), max(high, last)
        begin, end = high + 1, low - 1
        for step in range(low, high + 1):
            if sky.left[step] == 0:
                continue
            rest = _HIGH
            for index in range(blocks.over_from[step], blocks.over_from[step + 1]):
                if sky.lies[blocks.over[index]] == 0:
                    rest = min(rest, sky.address[blocks.over[index]])
            if rest > sky.height[step]:
                sky.height[step] = rest
                begin, end = min(begin, step), max(end, step)
            if sky.height[step] + sky.left[step] > capacity:
                return step
    return -1


@compiled
def _lands(block: int, height: int, blocks: BlockArrays, sky: Skyline) -> bool:
    """Whether the skyline under a block is level, and at this height."""
    step, last = blocks.first[block], blocks.last[block]
    while step <= last and sky.height[step] == height:
        step += 1
    return step > last


@compiled
def _survey(low: int, high: int, blocks: BlockArrays, sky: Skyline) -> None:
    """Find which steps are joined by further blocks, and count the choices of each step."""
    set_all(sky.joined[low : high + 2], 0)
    set_all(sky.choices[low : high + 1], 0)
    for block in range(len(blocks.size)):
        first, last = blocks.first[block], blocks.last[block]
        if sky.lies[block] == 1 or first < low or last > high:
            continue
        choice = 1 if _lands(block, sky.address[block], blocks, sky) else 0
        sky.choices[first] += choice
        for step in range(first + 1, last + 1):  # faster than slices of a few steps
            sky.joined[step] = 1
            sky.choices[step] += choice


@compiled
def _select(low: int, high: int, capacity: int, sky: Skyline) -> tuple[int, int, int]:
    """Return a step to decide, and the first and last of the steps that further blocks join to it.

    It has the lowest height of its part, and few choices in relation to its failures.
    """
    best, best_low, best_high, best_choices = -1, low, high, 0
    begin = low
    while begin <= high:
        if sky.left[begin] == 0:
            begin += 1
            continue
        end = begin
        while end < high and sky.joined[end + 1] == 1:
            end += 1
        lowest = sky.height[begin : end + 1].min()
        for step in range(begin, end + 1):
            if sky.choices[step] == 0 or sky.height[step] != lowest:
                continue
            choices = sky.choices[step]
            if lowest + sky.left[step] < capacity:
                choices += 1  # room for a gap
            if best < 0 or choices * sky.failures[best] < best_choices * sky.failures[step]:
                best, best_low, best_high, best_choices = step, begin, end, choices
        begin = end + 1
    return best, best_low, best_high


@compiled
def _above(step: int, low: int, high: int, blocks: BlockArrays, sky: Skyline) -> int:
    """Return the least height of a block over a step, if none lies on the skyline there.

    A higher block rests on a wall of the valley that it spans, or on a further block in the valley.
    """
    height = sky.height[step]
    left, right = step, step
    while left > low and sky.height[left - 1] == height:
        left -= 1
    while right < high and sky.height[right + 1] == height:
        right += 1
    raised = _HIGH
    if left > low and sky.joined[left] == 1:
        raised = min(raised, sky.height[left - 1])
    if right < high and sky.joined[right + 1] == 1:
        raised = min(raised, sky.height[right + 1])
    for block in range(len(blocks.size)):
        inside = blocks.first[block] >= left and blocks.last[block] <= right
        beside = blocks.last[block] < step or blocks.first[block] > step
        if inside and beside and sky.lies[block] == 0:
            raised = min(raised, height + blocks.size[block])
    return raised


@compiled
def _open(level: int, capacity: int, blocks: BlockArrays, sky: Skyline, levels: Levels) -> None:
    """List the choices of a level whose steps are set."""
    step, low, high = levels.step[level], levels.low[level], levels.high[level]
    copy_into(levels.height[level, low : high + 1], sky.height[low : high + 1])
    count = 0
    for index in range(blocks.over_from[step], blocks.over_from[step + 1]):
        block = blocks.over[index]
        if sky.lies[block] == 1 or not _lands(block, sky.height[step], blocks, sky):
            continue
        new = True  # identical blocks are one choice
        for other in levels.choice[level, :count]:
            if (
                blocks.first[other] == blocks.first[block]
                and blocks.last[other] == blocks.last[block]
                and blocks.size[other] == blocks.size[block]
            ):
                new = False
        if new:
            levels.choice[level, count] = block
            count += 1
    levels.raised[level] = _above(step, low, high, blocks, sky)
    if levels.raised[level] + sky.left[step] <= capacity:
        levels.choice[level, count] = _NOTHING
        count += 1
    levels.total[level], levels.tried[level], levels.chosen[level] = count, 0, -1


@compiled
def _take_back(
    level: int, begin: int, end: int, blocks: BlockArrays, sky: Skyline, levels: Levels
) -> tuple[int, int]:
    """Undo the choice of a level; return the changed steps, including those from ``begin`` to ``end``."""
    for step in range(levels.low[level], levels.high[level] + 1):
        if sky.height[step] != levels.height[level, step]:
            sky.height[step] = levels.height[level, step]
            begin, end = min(begin, step), max(end, step)
    block = levels.chosen[level]
    if block >= 0:
        levels.chosen[level] = -1
        sky.lies[block] = 0
        sky.left[blocks.first[block] : blocks.last[block] + 1] += blocks.size[block]
    return begin, end


@compiled
def _choose(level: int, blocks: BlockArrays, sky: Skyline, levels: Levels) -> tuple[int, int]:
    """Make the next choice of a level; return the first and the last changed step."""
    block, step = levels.choice[level, levels.tried[level]], levels.step[level]
    levels.tried[level] += 1
    if block == _NOTHING:
        sky.height[step] = levels.raised[level]
        return step, step
    levels.chosen[level] = block
    sky.lies[block] = 1
    sky.address[block] = sky.height[step]
    sky.left[blocks.first[block] : blocks.last[block] + 1] -= blocks.size[block]
    sky.height[blocks.first[block] : blocks.last[block] + 1] += blocks.size[block]
    return blocks.first[block], blocks.last[block]


@compiled
def descend(
    blocks: BlockArrays, capacity: int, decisions: int, sky: Skyline, levels: Levels, flag: Integers
) -> int:
    """Search for a packing, depth first, with a limit of decisions; return the outcome.

    `room_for` allocates the work arrays; the addresses are in the skyline afterwards.  The flag, see
    `hw.scheduler.planner.watch.Watch`, ends the search early.
    """
    last_step = len(sky.height) - 1
    low, high, level, made = 0, last_step, -1, 0
    failed = _settle(low, high, capacity, blocks, sky)
    while True:
        begin, end = last_step + 1, -1
        if failed < 0:
            if sky.left.max() == 0:
                return PLACED
            if flag[0] != 0 or made == decisions or level + 1 == len(levels.step):
                return STOPPED
            if sky.left[low : high + 1].max() == 0:
                low, high = 0, last_step  # this part is done: continue with the others
            _survey(low, high, blocks, sky)
            level += 1
            made += 1
            levels.step[level], levels.low[level], levels.high[level] = _select(low, high, capacity, sky)
            _open(level, capacity, blocks, sky, levels)
        else:
            sky.failures[failed] += 1
            if level >= 0:
                begin, end = _take_back(level, begin, end, blocks, sky, levels)
        while level >= 0 and levels.tried[level] == levels.total[level]:
            # Decisions about other steps cannot help these: return to one that can.
            low, high = levels.low[level], levels.high[level]
            sky.failures[levels.step[level]] += 1
            level -= 1
            while level >= 0:
                begin, end = _take_back(level, begin, end, blocks, sky, levels)
                if levels.low[level] <= high and levels.high[level] >= low:
                    break
                level -= 1
        if level < 0:
            return IMPOSSIBLE
        low, high = levels.low[level], levels.high[level]
        first, last = _choose(level, blocks, sky, levels)
        failed = _settle(min(begin, first), max(end, last), capacity, blocks, sky)


def room_for(blocks: BlockArrays) -> tuple[Skyline, Levels]:
    """Return an empty skyline and no levels."""
    count, steps = len(blocks.size), len(blocks.over_from) - 1
    left = np.zeros(steps, np.int64)
    for first, last, size in zip(blocks.first, blocks.last, blocks.size, strict=True):
        left[first : last + 1] += size
    depth = _LEVELS_PER_BLOCK * count
    sky = Skyline._make(
        (
            *np.zeros((2, count), np.int64),
            *np.zeros((2, steps), np.int64),
            np.zeros(steps + 1, np.int64),
            left,
            np.ones(steps, np.int64),
        )
    )
    choice, height = np.zeros((depth, count + 1), np.int64), np.zeros((depth, steps), np.int64)
    return sky, Levels._make((*np.zeros((7, depth), np.int64), choice, height))
