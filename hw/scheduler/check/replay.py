"""Replay of a plan: the tensor in each byte of scratchpad and memory, in every order that the plan allows.

Time is counted in moments, three a step: the slot begins, the operator starts, the operator is done.  Every
access to scratchpad or memory spans an interval of moments.  Two accesses to one byte, one of them a write,
must not overlap.  Then the order of all conflicting accesses is fixed, and one replay covers every order.
"""

import bisect
from collections.abc import Iterator

from hw.scheduler.check.form import Plan
from hw.scheduler.check.space import Occupancy, overlapping, windows

#: Content of bytes that must not be read: incomplete, or a window.
_NOTHING = ""


def replay_problems(plan: Plan) -> Iterator[str]:
    """Replay a plan with a sound graph, and find accesses that read other bytes than expected."""
    passing = [each._replace(begin=3 * each.begin, end=3 * each.end) for each in windows(plan)]
    for place, uses in (
        ("scratchpad", [*_operands(plan), *passing, *_transfers(plan, memory=False)]),
        ("memory", [*_ends(plan), *_transfers(plan, memory=True)]),
    ):
        yield from (f"{place}: {problem}" for problem in _replay(uses))


def _operands(plan: Plan) -> Iterator[Occupancy]:
    """Return the operators' accesses to whole tensors in the scratchpad."""
    for episode in plan.episodes:
        tensor, made = episode.tensor, plan.made_at[episode.tensor]
        for step in [*plan.used_at[tensor], *[made] * (made >= 0)]:
            if episode.first_step <= step <= episode.last_step:
                label = f"{'writing' if step == made else 'reading'} of {tensor!r} in step {step}"
                begin, low = 3 * step + 1, episode.address
                yield Occupancy(begin, begin + 1, low, low + plan.size[tensor], label, tensor, step == made)


def _ends(plan: Plan) -> Iterator[Occupancy]:
    """Return the host's accesses to memory: sources before the first moment, outputs after the last."""
    end = 3 * len(plan.steps) + 1
    for name, tensor in plan.tensor.items():
        low = plan.homes.get(name, 0)
        high = low + plan.size[name]
        if tensor.kind == "output":
            yield Occupancy(end, end + 1, low, high, f"what is left of output {name!r}", name, writes=False)
        elif tensor.is_source and name in plan.homes:
            yield Occupancy(-2, -1, low, high, name, name)


def _transfers(plan: Plan, *, memory: bool) -> Iterator[Occupancy]:
    """Return the transfers' accesses to memory, or to the scratchpad outside of windows."""
    for transfer in plan.transfers:
        start, deadline = 3 * transfer.start_step, 3 * transfer.deadline_step
        reads, streams = transfer.direction == "read", transfer.stream is not None
        if streams:
            begin, end = start, start + (2 if reads else 3)
        else:
            begin, end = (start, deadline + 1) if reads else (start + 2, deadline)
        if memory or not streams:
            low = transfer.dram_address if memory else transfer.scratchpad_address
            high = low + transfer.size_bytes
            yield Occupancy(begin, end, low, high, transfer.label, transfer.tensor, writes=reads != memory)


def _replay(uses: list[Occupancy]) -> Iterator[str]:
    """Find accesses that collide; without any, find those that read another tensor than expected."""
    races = [
        f"{one.label} and {other.label} use bytes {max(one.low, other.low)} at once"
        for one, other in overlapping(uses)
        if one.writes or other.writes
    ]
    if races:
        yield from races
        return
    # A cell between two neighbouring edges is always written as a whole: the tensor, and its first byte.
    edges = sorted({edge for use in uses for edge in (use.low, use.high)})
    content = [(_NOTHING, 0)] * len(edges)
    # At one moment: finished writes become visible, then reads check, then new writes destroy.
    events = [(use.end, 0, number) for number, use in enumerate(uses) if use.writes]
    events += [(use.begin, 2 if use.writes else 1, number) for number, use in enumerate(uses)]
    for _, what, number in sorted(events):
        use = uses[number]
        cells = slice(bisect.bisect(edges, use.low) - 1, bisect.bisect(edges, use.high) - 1)
        if what != 1:
            content[cells] = [(use.tensor if what == 0 else _NOTHING, use.low)] * (cells.stop - cells.start)
        elif wrong := set(content[cells]) - {(use.tensor, use.low)}:
            yield f"{use.label} finds {max(wrong)[0] or 'nothing valid'!r} in bytes {use.low} to {use.high}"
