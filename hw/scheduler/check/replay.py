"""Replay of a plan: which tensor each byte of scratchpad and memory holds, in any order the plan allows.

Time is counted in moments, three a step: the slot begins, the operator starts, the operator is done.  Every
access to the scratchpad or to memory holds from a moment to a moment.  Two accesses to one byte, one of them
a write, must not hold at once; then the order of all that matters is fixed, and one replay stands for all.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import Any

from hw.scheduler.check.space import Block, overlapping
from hw.scheduler.check.view import View

#: Content of bytes nobody may read: not yet complete, or a window.
_NOTHING = ""


@dataclass(frozen=True, kw_only=True)
class Access(Block):
    """A use of bytes; its times are moments.

    ``tensor`` is what is read or written from its first byte on; empty for a window.
    """

    tensor: str
    writes: bool


def replay_problems(document: dict[str, Any], view: View) -> list[str]:
    """Replay a plan and find each wrong byte; the document has the form of a plan and a sound graph."""
    end = 3 * view.step_count + 1
    scratchpad, memory = _operands(document, view), []
    for tensor, kind in view.kind.items():
        low = document["homes"].get(tensor, 0)
        place = {"low": low, "high": low + view.size[tensor], "tensor": tensor}
        if kind == "output":
            label = f"what is left of output {tensor!r}"
            memory.append(Access(begin=end, end=end + 1, writes=False, label=label, **place))
        elif view.is_source(tensor) and tensor in document["homes"]:
            # What lies off chip first was written before the first moment.
            memory.append(Access(begin=-2, end=-1, writes=True, label=tensor, **place))
    for number, transfer in enumerate(document["transfers"]):
        tensor, reads, size = transfer["tensor"], transfer["direction"] == "read", transfer["size_bytes"]
        start, deadline = 3 * transfer["start_step"], 3 * transfer["deadline_step"]
        label = f"transfer {number} ({transfer['direction']} of {tensor!r})"
        whole = transfer["stream"] is None
        if whole:
            begin, end = (start, deadline + 1) if reads else (start + 2, deadline)
        else:
            begin, end = start, start + (2 if reads else 3)
        for side, address, writes in (
            (memory, transfer["dram_address"], not reads),
            (scratchpad, transfer["scratchpad_address"], reads),
        ):
            if side is memory or whole:
                high = address + size
                side.append(
                    Access(
                        begin=begin,
                        end=end,
                        low=address,
                        high=high,
                        tensor=tensor,
                        writes=writes,
                        label=label,
                    )
                )
    for kind, key in (("stream", "window_bytes"), ("fifo", "size_bytes")):
        for number, entry in enumerate(document[f"{kind}s"]):
            begin, low = 3 * entry["step"], entry["address"]
            place = {"low": low, "high": low + entry[key], "tensor": _NOTHING}
            scratchpad.append(
                Access(begin=begin, end=begin + 3, writes=True, label=f"{kind} {number}", **place)
            )
    return [
        *(f"scratchpad: {problem}" for problem in _replay(scratchpad)),
        *(f"memory: {problem}" for problem in _replay(memory)),
    ]


def _operands(document: dict[str, Any], view: View) -> list[Access]:
    """Give the accesses of the operators to what lies whole in the scratchpad."""
    found = []
    for episode in document["episodes"]:
        tensor, low = episode["tensor"], episode["address"]
        made = view.made_at[tensor]
        steps = [(step, False) for step in view.used_at[tensor]] + ([(made, True)] if made >= 0 else [])
        for step, writes in steps:
            if episode["first_step"] <= step <= episode["last_step"]:
                found.append(
                    Access(
                        begin=3 * step + 1,
                        end=3 * step + 2,
                        low=low,
                        high=low + view.size[tensor],
                        tensor=tensor,
                        writes=writes,
                        label=f"{'writing' if writes else 'reading'} of {tensor!r} in step {step}",
                    )
                )
    return found


def _replay(accesses: list[Access]) -> list[str]:
    """Find accesses that collide; when there are none, the ones that read something else than they should."""
    races = [
        f"{one.label} and {other.label} use bytes {max(one.low, other.low)} at once"
        for one, other in overlapping(accesses)
        if one.writes or other.writes
    ]
    if races:
        return races
    problems = []
    content = _Content()
    # At one moment: what ends is there, then reads look, then writes begin to destroy.
    events = [(access.end, 0, number) for number, access in enumerate(accesses) if access.writes]
    events += [(access.begin, 2 if access.writes else 1, number) for number, access in enumerate(accesses)]
    for _, what, number in sorted(events):
        access = accesses[number]
        if what == 1:
            found = content.of(access.low, access.high)
            if found != {(access.tensor, access.low)}:
                wrong = sorted(name or "nothing valid" for name, _ in found - {(access.tensor, access.low)})
                problems.append(f"{access.label} finds {wrong[0]!r} in bytes {access.low} to {access.high}")
        else:
            tensor = access.tensor if what == 0 else _NOTHING
            content.put(access.low, access.high, tensor)
    return problems


class _Content:
    """What each byte holds: ``tensor`` and the address of the tensor's first byte, by ranges."""

    def __init__(self) -> None:
        self._starts = [-(2**63)]
        self._values: list[tuple[str, int]] = [(_NOTHING, 0)]

    def put(self, low: int, high: int, tensor: str) -> None:
        """Let bytes ``low`` to ``high`` (excluded) hold a tensor from its first byte on."""
        after = self._values[bisect.bisect_right(self._starts, high) - 1]
        first = bisect.bisect_left(self._starts, low)
        last = bisect.bisect_right(self._starts, high)
        self._starts[first:last] = [low, high]
        self._values[first:last] = [(tensor, low), after]

    def of(self, low: int, high: int) -> set[tuple[str, int]]:
        """Give all that bytes ``low`` to ``high`` (excluded) hold."""
        first = bisect.bisect_right(self._starts, low) - 1
        return set(self._values[first : bisect.bisect_left(self._starts, high)])
