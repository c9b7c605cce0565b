"""Rules of the scratchpad: every operand is in one place when it is used, and no two places overlap.

An ``episode`` of plan.json is a residency interval: the steps in which a whole tensor lies at one address.
"""

import bisect
import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from hw.scheduler.check.form import UNKNOWN_WINDOW_BYTES, Operator, Plan


class Occupancy(NamedTuple):
    """An access to bytes ``low`` to ``high`` from time ``begin`` to ``end``, the ends excluded.

    It writes ``tensor``, from its first byte on, or else expects to read it; an empty name is no content.
    """

    begin: int
    end: int
    low: int
    high: int
    label: str
    tensor: str = ""
    writes: bool = True


def overlapping(found: Iterable[Occupancy]) -> Iterator[tuple[Occupancy, Occupancy]]:
    """Return all pairs that share a time and a byte, the one that begins earlier first."""
    ordered = sorted(found, key=lambda block: (block.begin, block.low))
    pairs = _in_places(ordered)
    yield from _one_by_one(ordered) if pairs is None else pairs


def _in_places(ordered: Sequence[Occupancy]) -> list[tuple[Occupancy, Occupancy]] | None:
    """Return the pairs, if any two at one time share all of their bytes or none; else None.

    Good plans are so, and thousands of entries at one time need no pairwise comparison.
    """
    lows: list[int] = []
    places: dict[int, tuple[int, dict[int, Occupancy]]] = {}  # by first byte: the end, and the entries
    ends: list[tuple[int, int, int]] = []
    pairs = []
    for number, block in enumerate(ordered):
        while ends and ends[0][0] <= block.begin:
            _, ended, low = heapq.heappop(ends)
            entries = places[low][1]
            del entries[ended]
            if not entries:
                del places[low]
                lows.pop(bisect.bisect_left(lows, low))
        high, entries = places.get(block.low, (block.high, {}))
        if entries:
            if high != block.high:
                return None
            pairs += [(other, block) for other in entries.values()]
        else:
            at = bisect.bisect_left(lows, block.low)
            if (at < len(lows) and lows[at] < block.high) or (at and places[lows[at - 1]][0] > block.low):
                return None
            lows.insert(at, block.low)
            places[block.low] = (high, entries)
        entries[number] = block
        heapq.heappush(ends, (block.end, number, block.low))
    return pairs


def _one_by_one(ordered: Sequence[Occupancy]) -> Iterator[tuple[Occupancy, Occupancy]]:
    active: list[Occupancy] = []
    for block in ordered:
        active = [other for other in active if other.end > block.begin]
        yield from ((other, block) for other in active if other.low < block.high and block.low < other.high)
        active.append(block)


def occupied(plan: Plan) -> Iterator[Occupancy]:
    """Return everything that occupies the scratchpad; times are steps."""
    for stay in plan.episodes:
        high = stay.address + stay.size_bytes
        yield Occupancy(stay.first_step, stay.last_step + 1, stay.address, high, stay.label)
    yield from windows(plan)


def windows(plan: Plan) -> Iterator[Occupancy]:
    """Return the windows of streams and the buffers of groups; times are steps."""
    places = [(each.step, each.address, each.window_bytes, each.label) for each in plan.streams]
    places += [(each.step, each.address, each.size_bytes, each.label) for each in plan.fifos]
    for step, low, size, label in places:
        yield Occupancy(step, step + 1, low, low + size, label)


def address_problems(plan: Plan) -> Iterator[str]:
    """Find places that are no whole words, or outside of the scratchpad."""
    for block in occupied(plan):
        size = block.high - block.low
        if block.low % plan.word_bytes or size % plan.word_bytes:
            yield f"{block.label}: address {block.low} and {size} bytes are not whole words"
        if size < 1:
            yield f"{block.label} has {size} bytes"
        if block.low < 0 or block.high > plan.scratchpad_bytes:
            yield f"{block.label}: bytes {block.low} to {block.high} are outside of {plan.scratchpad_bytes}"


def episode_problems(plan: Plan) -> Iterator[str]:
    """Find residency intervals with an unknown tensor, steps out of range, or not the tensor's size."""
    for episode in plan.episodes:
        if episode.tensor not in plan.tensor:
            yield f"{episode.label} is of a tensor the graph has not"
            continue
        if not 0 <= episode.first_step <= episode.last_step < len(plan.steps):
            yield f"{episode.label}: steps {episode.first_step} to {episode.last_step} are no steps"
        if episode.size_bytes != plan.size[episode.tensor]:
            yield f"{episode.label} has {episode.size_bytes} bytes, the tensor {plan.size[episode.tensor]}"


def stream_problems(plan: Plan) -> Iterator[str]:
    """Find streams without an operator that reads or writes them, and windows of a wrong size."""
    together = Counter(stream.step for stream in plan.streams)
    for stream in plan.streams:
        tensor, step = plan.tensor.get(stream.tensor), stream.step
        if tensor is None:
            yield f"{stream.label} is of a tensor the graph has not"
            continue
        if not 0 <= step < len(plan.steps):
            yield f"{stream.label}: step {step} is no step"
            continue
        operator, reads = plan.executed[step], stream.direction == "read"
        if tensor.name not in (operator.inputs if reads else operator.outputs):
            verb = "use" if reads else "make"
            yield f"{stream.label}: the operator of step {step} does not {verb} the tensor"
            continue
        least, most = least_window_bytes(plan, operator, tensor.name), plan.size[tensor.name]
        if not least <= stream.window_bytes <= most:
            yield f"{stream.label}: window of {stream.window_bytes} bytes, not {least} to {most}"
        # An operator needs all of such an operand before it consumes any other stream.
        if together[step] > 1 and plan.passes_alone(operator, tensor.name):
            yield f"step {step} streams {tensor.name!r}, which it needs whole first, among others"


def least_window_bytes(plan: Plan, operator: Operator, name: str) -> int:
    """Return the least bytes of the window of a streamed operand.

    An input's holds the rows that an output row needs and those fetched meanwhile; an output's holds a row
    being computed and a row being drained.
    """
    tensor, accesses = plan.tensor[name], operator.accesses
    axis, rows = None, 2
    if name in operator.outputs:
        axis = next((access.output_axis for access in accesses.values()), None)
    elif name in accesses:
        axis, rows = accesses[name].axis, accesses[name].held_rows
    if axis is None or axis >= len(tensor.shape):
        return min(plan.size[tensor.name], plan.whole_words(UNKNOWN_WINDOW_BYTES))
    return tensor.rows_bytes(rows, axis, plan.word_bytes)


def fifo_problems(plan: Plan) -> Iterator[str]:
    """Find FIFOs of no group, and groups whose FIFOs are not exactly one area of the right size."""
    room: dict[int, list[int]] = {step: [] for step in range(len(plan.steps))}
    for fifo in plan.fifos:
        if 0 <= fifo.step < len(plan.steps) and plan.executed[fifo.step].members:
            room[fifo.step].append(fifo.size_bytes)
        else:
            yield f"{fifo.label}: step {fifo.step} executes no group"
    for step, operator in enumerate(plan.executed):
        if room[step] != [plan.whole_words(operator.fifo_bytes)] * bool(operator.members):
            found = " and ".join(map(str, room[step])) or "0"
            yield f"step {step} has {found} bytes of fifo, its group needs {operator.fifo_bytes}"


def touch_problems(plan: Plan) -> Iterator[str]:
    """Find residency intervals that no operator uses, or that begin before their tensor is written."""
    for episode in plan.episodes:
        first, made = episode.first_step, plan.made_at[episode.tensor]
        if not any(first <= step <= episode.last_step for step in (made, *plan.used_at[episode.tensor])):
            yield f"{episode.label} is touched by no operator"
        if first < made:
            yield f"{episode.label} begins in step {first}, is written in {made}"


def operand_place_problems(plan: Plan) -> Iterator[str]:
    """Find operands that are in no place of the scratchpad, or in two."""
    passing = Counter((stream.tensor, stream.step) for stream in plan.streams)
    resident: dict[str, list[tuple[int, int]]] = {name: [] for name in plan.tensor}
    for episode in plan.episodes:
        resident[episode.tensor].append((episode.first_step, episode.last_step))
    for tensor, intervals in resident.items():
        made = plan.made_at[tensor]
        for step in [made] * (made >= 0) + plan.used_at[tensor]:
            places = sum(first <= step <= last for first, last in intervals) + passing[tensor, step]
            if places != 1:
                verb = "written" if step == made else "used"
                where = "is nowhere in the scratchpad" if not places else f"is there {places} times"
                yield f"tensor {tensor!r} {where} in step {step}, where it is {verb}"
        for (_, last), (first, _) in itertools.pairwise(sorted(intervals)):
            if first <= last:
                yield f"tensor {tensor!r} has two episodes in step {first}"


def overlap_problems(plan: Plan) -> Iterator[str]:
    """Find bytes of the scratchpad that are occupied twice in one step."""
    for one, other in overlapping(occupied(plan)):
        yield (
            f"{one.label} and {other.label} overlap in steps {other.begin} to {min(one.end, other.end) - 1}, "
            f"bytes {max(one.low, other.low)} to {min(one.high, other.high)}"
        )
