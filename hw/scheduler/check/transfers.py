"""Rules of the transfers: each moves the right bytes, is in time, and the queues cannot stand still.

The ``homes`` of plan.json are the DRAM addresses of the tensors that are ever off chip.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

from hw.scheduler.check.space import Block, overlapping
from hw.scheduler.check.view import View


def transfer_problems(document: dict[str, Any], view: View) -> list[str]:
    """Find what is wrong with transfers and homes; episodes and streams are known to be right.

    That a read from memory starts after the write is complete need not be looked for: the write ends with the
    episode it saves, and the episodes of a tensor follow each other.  The replay would see it, too.
    """
    problems = _home_problems(document, view)
    if problems:
        return problems
    for number, transfer in enumerate(document["transfers"]):
        problems += _field_problems(number, transfer, document, view)
    if problems:
        return problems
    return [
        *_count_problems(document, view),
        *_queue_problems(document, view),
    ]


def _label(number: int, transfer: dict[str, Any]) -> str:
    return f"transfer {number} ({transfer['direction']} of {transfer['tensor']!r})"


def _home_problems(document: dict[str, Any], view: View) -> list[str]:
    problems = []
    moved = {transfer["tensor"] for transfer in document["transfers"]}
    homes: dict[str, int] = document["homes"]
    for tensor, address in homes.items():
        if tensor not in view.size:
            problems.append(f"home of {tensor!r}, a tensor the graph has not")
        elif tensor not in moved:
            problems.append(f"home of {tensor!r}, which is never off chip")
        if address < 0 or address % view.word_bytes:
            problems.append(f"home of {tensor!r} at {address}, not a whole number of words")
    problems += [f"tensor {tensor!r} is moved but has no home" for tensor in sorted(moved - set(homes))]
    if problems:
        return problems
    placed = [
        Block(begin=0, end=1, low=low, high=low + view.size[tensor], label=repr(tensor))
        for tensor, low in homes.items()
    ]
    for one, other in overlapping(placed):
        problems.append(
            f"homes of {one.label} and {other.label} overlap from {other.low} to {min(one.high, other.high)}"
        )
    end = max((block.high for block in placed), default=0)
    if document["memory_bytes"] != end:
        problems.append(f"memory_bytes is {document['memory_bytes']}, the homes end at {end}")
    return problems


def _field_problems(number: int, transfer: dict[str, Any], document: dict[str, Any], view: View) -> list[str]:
    label, tensor = _label(number, transfer), transfer["tensor"]
    chosen = [kind for kind in ("episode", "stream") if transfer[kind] is not None]
    if len(chosen) != 1:
        return [f"{label} names {len(chosen)} of an episode and a stream, not one"]
    kind = chosen[0]
    index, entries = transfer[kind], document[f"{kind}s"]
    if not 0 <= index < len(entries):
        return [f"{label} names {kind} {index} of {len(entries)}"]
    target = entries[index]
    if target["tensor"] != tensor:
        return [f"{label} names {kind} {index}, which is of {target['tensor']!r}"]
    problems = [
        f"{label} has {key} {transfer[key]}, not {wanted}"
        for key, wanted in (
            ("size_bytes", view.size[tensor]),
            ("dram_address", document["homes"][tensor]),
            ("scratchpad_address", target["address"]),
        )
        if transfer[key] != wanted
    ]
    times = _stream_times if kind == "stream" else _episode_times
    return problems + [f"{label} {problem}" for problem in times(transfer, target, view)]


def _stream_times(transfer: dict[str, Any], stream: dict[str, Any], view: View) -> list[str]:
    problems, step = [], stream["step"]
    if transfer["direction"] != stream["direction"]:
        problems.append(f"goes against its stream, a {stream['direction']}")
    for key, wanted in (("start_step", step), ("deadline_step", step + 1)):
        if transfer[key] != wanted:
            problems.append(f"has {key} {transfer[key]}, not {wanted}")
    return problems


def _episode_times(transfer: dict[str, Any], episode: dict[str, Any], view: View) -> list[str]:
    tensor, start, deadline = transfer["tensor"], transfer["start_step"], transfer["deadline_step"]
    first, last = episode["first_step"], episode["last_step"]
    made = view.made_at[tensor]
    if transfer["direction"] == "write":
        if view.is_source(tensor):
            return ["writes what lies off chip from the start"]
        if first != made:
            return [f"saves an episode that begins in step {first}, not in {made} where it is written"]
        if not made <= start < deadline:
            return [f"runs from step {start} to {deadline}: not after it is written in {made}"]
        if deadline > last + 1:
            return [f"has deadline {deadline}, after its episode ends in step {last}"]
        return []
    if first == made:
        return [f"fills an episode that step {first} writes"]
    if start < first:
        return [f"starts in step {start}, before its episode in {first}"]
    use = min(step for step in view.used_at[tensor] if step >= first)
    if not start <= deadline <= use:
        return [f"runs from step {start} to {deadline}: not in time for the use in step {use}"]
    return []


def _count_problems(document: dict[str, Any], view: View) -> list[str]:
    """Find what is moved too often or never: an episode is filled or written, a tensor is saved once."""
    problems = []
    moved = Counter[tuple[str, str, int]]()
    written, read = Counter[str](), Counter[str]()
    for transfer in document["transfers"]:
        kind = "episode" if transfer["stream"] is None else "stream"
        moved[kind, transfer["direction"], transfer[kind]] += 1
        (written if transfer["direction"] == "write" else read)[transfer["tensor"]] += 1
    for number, episode in enumerate(document["episodes"]):
        tensor = episode["tensor"]
        reads, writes = moved["episode", "read", number], moved["episode", "write", number]
        wanted = 0 if episode["first_step"] == view.made_at[tensor] else 1
        if reads != wanted:
            problems.append(f"episode {number} ({tensor!r}) is read {reads} times, not {wanted}")
        if writes > 1:
            problems.append(f"episode {number} ({tensor!r}) is saved {writes} times")
    for number, stream in enumerate(document["streams"]):
        count = moved["stream", stream["direction"], number]
        if count != 1:
            problems.append(f"stream {number} ({stream['tensor']!r}) has {count} transfers, not one")
    for tensor in view.size:
        if view.is_source(tensor):
            continue
        if written[tensor] > 1:
            problems.append(f"tensor {tensor!r} is written to memory {written[tensor]} times")
        elif not written[tensor] and view.kind[tensor] == "output":
            problems.append(f"output {tensor!r} is never written to memory")
        elif not written[tensor] and read[tensor]:
            problems.append(f"tensor {tensor!r} is read from memory, where it was never written")
    return problems


def _queue_problems(document: dict[str, Any], view: View) -> list[str]:
    """Find transfers that stand behind one that cannot run by then: both queues run strictly in order.

    A stream moves only while its operator computes, and the operator waits for the whole reads that are due;
    a whole write moves only when its step is computed, and a stream must drain before that.
    """
    problems = []
    for direction in ("read", "write"):
        queue = [
            (number, transfer)
            for number, transfer in enumerate(document["transfers"])
            if transfer["direction"] == direction
        ]
        started, obstacle, behind = 0, -1, ""
        for number, transfer in queue:
            label, streams = _label(number, transfer), transfer["stream"] is not None
            start = transfer["start_step"]
            if start < started:
                problems.append(f"{label} stands behind a transfer that starts in step {started}")
            started = max(started, start)
            if streams == (direction == "read"):
                if start > obstacle:
                    obstacle, behind = start, label
            else:
                due = start if streams else transfer["deadline_step"]
                if obstacle >= due:
                    problems.append(f"{label} is due in step {due} but stands behind {behind}")
        problems += _stream_order(direction, queue, view)
    return problems


def _stream_order(direction: str, queue: list[tuple[int, dict[str, Any]]], view: View) -> list[str]:
    """Find streams of one step in another order than the operator's, which takes one operand at a time."""
    problems = []
    by_step: dict[int, list[tuple[int, dict[str, Any]]]] = {}
    for number, transfer in queue:
        if transfer["stream"] is not None:
            by_step.setdefault(transfer["start_step"], []).append((number, transfer))
    for step, streams in by_step.items():
        operator = view.operators[step]
        for (_, before), (number, after) in itertools.pairwise(streams):
            stuck = _stuck(operator, direction, before["tensor"], after["tensor"])
            if stuck:
                problems.append(f"{_label(number, after)} stands behind {before['tensor']!r}: {stuck}")
    return problems


def _stuck(operator: dict[str, Any], direction: str, before: str, after: str) -> str:
    """Say why an operator, or the members of a group, could not move on; empty when they can."""
    key = "inputs" if direction == "read" else "outputs"
    members = operator["members"] or [operator]
    sides = [
        next(index for index, member in enumerate(members) if tensor in member[key])
        for tensor in (before, after)
    ]
    if sides[0] == sides[1]:
        names = members[sides[0]][key]
        wrong = names.index(before) > names.index(after)
        return f"the operator takes {after!r} first" if wrong else ""
    if direction == "write":
        return "members of a group drain together"
    # The member further down reads what the one further up makes: only past that can its stream wait, or
    # only before that can the other's.
    lower = max(sides)
    made = {name for member in members[:lower] for name in member["outputs"]}
    names = members[lower]["inputs"]
    exchanged = [index for index, name in enumerate(names) if name in made]
    own = names.index(before if sides[0] == lower else after)
    if sides[0] == lower:
        return "its member must take its buffer first" if own > min(exchanged, default=own) else ""
    return "its member takes it before its buffer" if own < max(exchanged, default=own) else ""
