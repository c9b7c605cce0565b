"""Rules of the transfers: each moves the right bytes in time, and the queues cannot deadlock.

The ``homes`` of plan.json are the DRAM addresses of the tensors that are ever off chip.  No rule orders a
read after the write of its tensor: the write ends within the residency interval it saves, and intervals of a
tensor do not overlap.  The replay would detect it, too.
"""

import itertools
from collections import Counter
from collections.abc import Iterator

from hw.scheduler.check.form import Episode, Operator, Plan, Stream, Transfer
from hw.scheduler.check.space import Occupancy, overlapping


def home_problems(plan: Plan) -> Iterator[str]:
    """Find DRAM addresses that are missing, superfluous or unaligned."""
    moved = {transfer.tensor for transfer in plan.transfers}
    for tensor, address in plan.homes.items():
        if tensor not in plan.tensor:
            yield f"home of {tensor!r}, a tensor the graph has not"
        elif tensor not in moved:
            yield f"home of {tensor!r}, which is never off chip"
        if address < 0 or address % plan.word_bytes:
            yield f"home of {tensor!r} at {address}, not a whole number of words"
    for tensor in sorted(moved - set(plan.homes)):
        yield f"tensor {tensor!r} is moved but has no home"


def memory_problems(plan: Plan) -> Iterator[str]:
    """Find tensors that overlap in DRAM, and a wrong ``memory_bytes``."""
    placed = [
        Occupancy(0, 1, low, low + plan.size[tensor], repr(tensor)) for tensor, low in plan.homes.items()
    ]
    for one, other in overlapping(placed):
        last = min(one.high, other.high)
        yield f"homes of {one.label} and {other.label} overlap from {other.low} to {last}"
    end = max((block.high for block in placed), default=0)
    if plan.memory_bytes != end:
        yield f"memory_bytes is {plan.memory_bytes}, the homes end at {end}"


def move_problems(plan: Plan) -> Iterator[str]:
    """Find transfers whose bytes or times contradict the episode or stream they serve."""
    for transfer in plan.transfers:
        for problem in _move(transfer, plan):
            yield f"{transfer.label} {problem}"


def _move(transfer: Transfer, plan: Plan) -> Iterator[str]:
    named = (transfer.episode is not None) + (transfer.stream is not None)
    if named != 1:
        yield f"names {named} of an episode and a stream, not one"
        return
    kind, index = transfer.target
    entries = plan.episodes if kind == "episode" else plan.streams
    if not 0 <= index < len(entries):
        yield f"names {kind} {index} of {len(entries)}"
        return
    target = entries[index]
    if target.tensor != transfer.tensor:
        yield f"names {kind} {index}, which is of {target.tensor!r}"
        return
    wanted = {
        "size_bytes": plan.size[transfer.tensor],
        "dram_address": plan.homes[transfer.tensor],
        "scratchpad_address": target.address,
    }
    if isinstance(target, Stream):
        if transfer.direction != target.direction:
            yield f"goes against its stream, a {target.direction}"
        wanted |= {"start_step": target.step, "deadline_step": target.step + 1}
    for key, value in wanted.items():
        if getattr(transfer, key) != value:
            yield f"has {key} {getattr(transfer, key)}, not {value}"
    if isinstance(target, Episode):
        problem = (_write_time if transfer.direction == "write" else _read_time)(transfer, target, plan)
        if problem:
            yield problem


def _write_time(transfer: Transfer, episode: Episode, plan: Plan) -> str:
    """Return the reason why a write cannot save this residency interval; empty when it can."""
    made, start, deadline = plan.made_at[episode.tensor], transfer.start_step, transfer.deadline_step
    if made < 0:
        return "writes what lies off chip from the start"
    if episode.first_step != made:
        return f"saves an episode that begins in step {episode.first_step}, not in {made} where it is written"
    if not made <= start < deadline:
        return f"runs from step {start} to {deadline}: not after it is written in {made}"
    if deadline > episode.last_step + 1:
        return f"has deadline {deadline}, after its episode ends in step {episode.last_step}"
    return ""


def _read_time(transfer: Transfer, episode: Episode, plan: Plan) -> str:
    """Return the reason why a read cannot fill this residency interval; empty when it can."""
    first, start, deadline = episode.first_step, transfer.start_step, transfer.deadline_step
    if first == plan.made_at[episode.tensor]:
        return f"fills an episode that step {first} writes"
    if start < first:
        return f"starts in step {start}, before its episode in {first}"
    use = min(step for step in plan.used_at[episode.tensor] if step >= first)
    if not start <= deadline <= use:
        return f"runs from step {start} to {deadline}: not in time for the use in step {use}"
    return ""


def count_problems(plan: Plan) -> Iterator[str]:
    """Find moves that are missing or duplicate: an interval is read or written, a tensor is saved once."""
    moved = Counter((transfer.target, transfer.direction) for transfer in plan.transfers)
    for number, episode in enumerate(plan.episodes):
        reads, writes = (moved[("episode", number), direction] for direction in ("read", "write"))
        wanted = int(episode.first_step != plan.made_at[episode.tensor])
        if reads != wanted:
            yield f"{episode.label} is read {reads} times, not {wanted}"
        if writes > 1:
            yield f"{episode.label} is saved {writes} times"
    for number, stream in enumerate(plan.streams):
        count = moved[("stream", number), stream.direction]
        if count != 1:
            yield f"{stream.label} has {count} transfers, not one"
    times = Counter((transfer.tensor, transfer.direction) for transfer in plan.transfers)
    for name, tensor in plan.tensor.items():
        written = times[name, "write"]
        if tensor.is_source:
            continue
        if written > 1:
            yield f"tensor {name!r} is written to memory {written} times"
        elif not written and tensor.kind == "output":
            yield f"output {name!r} is never written to memory"
        elif not written and times[name, "read"]:
            yield f"tensor {name!r} is read from memory, where it was never written"


def queue_problems(plan: Plan) -> Iterator[str]:
    """Find transfers queued behind one that cannot run in time (head-of-line blocking).

    A stream runs only while its operator computes, and the operator waits for the whole reads that are due.
    A whole write runs only after its step is computed, and a stream must drain before that.
    """
    for direction in ("read", "write"):
        started, obstacle, behind = 0, -1, ""
        for transfer in plan.transfers:
            if transfer.direction != direction:
                continue
            start, streams = transfer.start_step, transfer.stream is not None
            if start < started:
                yield f"{transfer.label} stands behind a transfer that starts in step {started}"
            started = max(started, start)
            due = start if streams else transfer.deadline_step
            if streams != (direction == "read"):
                if obstacle >= due:
                    yield f"{transfer.label} is due in step {due} but stands behind {behind}"
            elif start > obstacle:
                obstacle, behind = start, transfer.label


def stream_order_problems(plan: Plan) -> Iterator[str]:
    """Find streams of a step in another order than that of the operator, which takes operands one by one."""
    streams = [transfer for transfer in plan.transfers if transfer.stream is not None]
    streams.sort(key=lambda transfer: (transfer.direction, transfer.start_step))
    for before, after in itertools.pairwise(streams):
        if (before.direction, before.start_step) == (after.direction, after.start_step):
            reason = _deadlock(plan.executed[after.start_step], after.direction, before.tensor, after.tensor)
            if reason:
                yield f"{after.label} stands behind {before.tensor!r}: {reason}"


def _deadlock(operator: Operator, direction: str, before: str, after: str) -> str:
    """Return the reason why an operator, or the members of a group, would deadlock; empty without one."""
    members = operator.members or [operator]
    operands = [member.inputs if direction == "read" else member.outputs for member in members]
    one, other = (
        next(index for index, names in enumerate(operands) if tensor in names) for tensor in (before, after)
    )
    if one == other:
        wrong = operands[one].index(before) > operands[one].index(after)
        return f"the operator takes {after!r} first" if wrong else ""
    if direction == "write":
        return "members of a group drain together"
    # The later member also reads the earlier one's result from a FIFO.  Its stream may be second in the queue
    # only after that FIFO in its operand order, or first only before it.
    names = operands[max(one, other)]
    made = {name for member in members[: max(one, other)] for name in member.outputs}
    exchanged = [index for index, name in enumerate(names) if name in made]
    if one > other:
        late = names.index(before) > min(exchanged, default=len(names))
        return "its member must take its buffer first" if late else ""
    early = names.index(after) < max(exchanged, default=-1)
    return "its member takes it before its buffer" if early else ""
