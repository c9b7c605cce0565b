"""Rules of the scratchpad: every operand in one place when it is used, and no two things in one place.

An ``episode`` of plan.json is a residency interval: the steps in which a whole tensor lies at one address.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from hw.scheduler.check.view import View


@dataclass(frozen=True, kw_only=True)
class Block:
    """Bytes ``low`` to ``high`` from time ``begin`` to ``end``, the ends excluded."""

    begin: int
    end: int
    low: int
    high: int
    label: str


AnyBlock = TypeVar("AnyBlock", bound=Block)


def overlapping(found: Iterable[AnyBlock]) -> Iterator[tuple[AnyBlock, AnyBlock]]:
    """Give each two blocks that share a time and a byte, the one that begins earlier first."""
    active: list[AnyBlock] = []
    for block in sorted(found, key=lambda block: (block.begin, block.low)):
        active = [other for other in active if other.end > block.begin]
        yield from ((other, block) for other in active if other.low < block.high and block.low < other.high)
        active.append(block)


def space_problems(document: dict[str, Any], view: View) -> list[str]:
    """Find what is wrong with episodes, streams and buffers, whatever the transfers."""
    problems = [*_episode_form(document, view), *_stream_form(document, view), *_fifo_form(document, view)]
    if problems:
        return problems
    return [
        *_operand_problems(document, view),
        *(
            f"{one.label} and {other.label} overlap in steps {other.begin} to {min(one.end, other.end) - 1}, "
            f"bytes {max(one.low, other.low)} to {min(one.high, other.high)}"
            for one, other in overlapping(blocks(document))
        ),
    ]


def blocks(document: dict[str, Any]) -> Iterator[Block]:
    """Give everything that takes room in the scratchpad; times are steps."""
    for number, episode in enumerate(document["episodes"]):
        low, begin, end = episode["address"], episode["first_step"], episode["last_step"] + 1
        label = f"episode {number} ({episode['tensor']!r})"
        yield Block(begin=begin, end=end, low=low, high=low + episode["size_bytes"], label=label)
    for kind, size in (("stream", "window_bytes"), ("fifo", "size_bytes")):
        for number, entry in enumerate(document[f"{kind}s"]):
            low, step = entry["address"], entry["step"]
            label = f"{kind} {number}" + (f" ({entry['tensor']!r})" if "tensor" in entry else "")
            yield Block(begin=step, end=step + 1, low=low, high=low + entry[size], label=label)


def used_bytes(document: dict[str, Any], steps: int) -> list[int]:
    """Give the bytes in use in each step."""
    change = [0] * (steps + 1)
    for block in blocks(document):
        change[block.begin] += block.high - block.low
        change[block.end] -= block.high - block.low
    return list(itertools.accumulate(change[:-1]))


def _placed(label: str, address: int, size: int, view: View) -> list[str]:
    problems = []
    if address % view.word_bytes or size % view.word_bytes:
        problems.append(f"{label}: address {address} and {size} bytes are not whole words")
    if size < 1:
        problems.append(f"{label} has {size} bytes")
    if address < 0 or address + size > view.capacity_bytes:
        end = address + size
        problems.append(f"{label}: bytes {address} to {end} are outside of {view.capacity_bytes}")
    return problems


def _episode_form(document: dict[str, Any], view: View) -> list[str]:
    problems = []
    for number, episode in enumerate(document["episodes"]):
        tensor, label = episode["tensor"], f"episode {number} ({episode['tensor']!r})"
        if tensor not in view.size:
            problems.append(f"{label} is of a tensor the graph has not")
            continue
        if not 0 <= episode["first_step"] <= episode["last_step"] < view.step_count:
            problems.append(f"{label}: steps {episode['first_step']} to {episode['last_step']} are no steps")
        if episode["size_bytes"] != view.size[tensor]:
            problems.append(f"{label} has {episode['size_bytes']} bytes, the tensor {view.size[tensor]}")
        problems += _placed(label, episode["address"], episode["size_bytes"], view)
    return problems


def _stream_form(document: dict[str, Any], view: View) -> list[str]:
    problems = []
    for number, stream in enumerate(document["streams"]):
        tensor, step, label = stream["tensor"], stream["step"], f"stream {number} ({stream['tensor']!r})"
        if tensor not in view.size:
            problems.append(f"{label} is of a tensor the graph has not")
            continue
        if not 0 <= step < view.step_count:
            problems.append(f"{label}: step {step} is no step")
            continue
        reads = stream["direction"] == "read"
        if tensor not in view.operators[step]["inputs" if reads else "outputs"]:
            verb = "use" if reads else "make"
            problems.append(f"{label}: the operator of step {step} does not {verb} the tensor")
            continue
        least, most = view.least_window_bytes(step, tensor), view.size[tensor]
        if not least <= stream["window_bytes"] <= most:
            problems.append(f"{label}: window of {stream['window_bytes']} bytes, not {least} to {most}")
        problems += _placed(label, stream["address"], stream["window_bytes"], view)
    together = Counter(stream["step"] for stream in document["streams"])
    for stream in document["streams"] if not problems else ():
        tensor, step = stream["tensor"], stream["step"]
        if together[step] > 1 and view.streams_alone(step, tensor):
            problems.append(f"step {step} streams {tensor!r}, which it needs whole first, among others")
    return problems


def _fifo_form(document: dict[str, Any], view: View) -> list[str]:
    problems = []
    room: Counter[int] = Counter()
    for number, fifo in enumerate(document["fifos"]):
        if not 0 <= fifo["step"] < view.step_count or not view.operators[fifo["step"]]["members"]:
            problems.append(f"fifo {number}: step {fifo['step']} executes no group")
            continue
        room[fifo["step"]] += fifo["size_bytes"]
        problems += _placed(f"fifo {number}", fifo["address"], fifo["size_bytes"], view)
    for step, operator in enumerate(view.operators):
        if room[step] < operator["fifo_bytes"]:
            problems.append(
                f"step {step} has {room[step]} bytes of fifo, its group needs {operator['fifo_bytes']}"
            )
    return problems


def _operand_problems(document: dict[str, Any], view: View) -> list[str]:
    """Find operands that are nowhere or in two places, and residency intervals without reason."""
    problems = []
    resident: dict[str, list[tuple[int, int]]] = defaultdict(list)
    passing: Counter[tuple[str, int]] = Counter()
    for stream in document["streams"]:
        passing[stream["tensor"], stream["step"]] += 1
    for number, episode in enumerate(document["episodes"]):
        tensor, first, last = episode["tensor"], episode["first_step"], episode["last_step"]
        resident[tensor].append((first, last))
        touched = [step for step in (view.made_at[tensor], *view.used_at[tensor]) if first <= step <= last]
        if not touched:
            problems.append(f"episode {number} ({tensor!r}) is touched by no operator")
        if first < view.made_at[tensor]:
            made = view.made_at[tensor]
            problems.append(f"episode {number} ({tensor!r}) begins in step {first}, is written in {made}")
    for tensor in view.size:
        made = view.made_at[tensor]
        for step in (*((made,) if made >= 0 else ()), *view.used_at[tensor]):
            places = sum(first <= step <= last for first, last in resident[tensor]) + passing[tensor, step]
            if places != 1:
                verb = "written" if step == made else "used"
                where = "is nowhere in the scratchpad" if not places else f"is there {places} times"
                problems.append(f"tensor {tensor!r} {where} in step {step}, where it is {verb}")
        for (_, last), (first, _) in itertools.pairwise(sorted(resident[tensor])):
            if first <= last:
                problems.append(f"tensor {tensor!r} has two episodes in step {first}")
    return problems
