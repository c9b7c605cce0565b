"""A lower bound of a plan's cycles, by this module's own arithmetic.

One pass over the steps, with whole transfers instead of words and an ideal memory. It counts three cycles of
the sequencer a step, and twelve from an operator's command to its first word (docs/scheduler.md). Inputs,
outputs and each of the two transfer engines take a cycle a word. Steps and queues wait as the plan says.
"""

import itertools
from collections import Counter
from collections.abc import Iterator

from hw.scheduler.check.form import Direction, Operator, Plan

#: Cycles of the sequencer for each step and launch; cycles from an operator's command to its first word.
_SEQUENCER_CYCLES, _PIPELINE_CYCLES = 3, 12


def cycle_problems(plan: Plan) -> Iterator[str]:
    """Find predicted cycles below the lower bound."""
    cycles, exposed = plan.totals.predicted_cycles, plan.totals.exposed_cycles
    least, moving = least_cycles(plan), _SEQUENCER_CYCLES
    for number, step in enumerate(plan.steps):
        moving += _SEQUENCER_CYCLES + max(step.compute_cycles, _words(plan, number))
    if cycles < least:
        yield f"totals.predicted_cycles is {cycles}, the plan takes {least} at the least"
    elif not 0 <= exposed <= cycles - moving:
        most = cycles - moving
        yield f"totals.exposed_cycles is {exposed}, not 0 to {most}: in the others of {cycles} words move"


def _words(plan: Plan, step: int) -> int:
    """Return the most words that one core of a step reads, or writes."""
    group = plan.executed[step]
    inner = {tensor.name: plan.whole_words(tensor.size_bytes) for tensor in group.inner}
    members: list[Operator] = group.members or [group]
    operands = [names for member in members for names in (member.inputs, member.outputs)]
    sizes = (sum(inner.get(name) or plan.size[name] for name in names) for names in operands)
    return max(sizes) // plan.word_bytes


def least_cycles(plan: Plan) -> int:
    """Return the lower bound of cycles from start to done of a plan without problems."""
    reads, writes = _Queue(plan, "read"), _Queue(plan, "write")
    clock, begun, started, computed = 0, list[int](), list[int](), list[int]()
    for number, step in enumerate(plan.steps):
        writes.run(number - 1, computed, started)
        begun.append(max(clock, writes.waited(number)))
        filled = reads.run(number, begun, begun)
        started.append(max(begun[-1], reads.waited(number)))
        drained = writes.run(number, computed, started)
        computes = max(step.compute_cycles, _words(plan, number) + _PIPELINE_CYCLES)
        clock = _SEQUENCER_CYCLES + max(started[-1] + computes, filled, drained)
        computed.append(clock)
    writes.run(len(plan.steps), computed, started)
    return max([clock, *reads.ends[-1:], *writes.ends[-1:]]) + _SEQUENCER_CYCLES


class _Queue:
    """One transfer engine: its transfers strictly in order, a word a cycle."""

    def __init__(self, plan: Plan, direction: Direction) -> None:
        self._plan, self.ends = plan, list[int]()  #: Cycle in which each finished transfer is complete.
        self._transfers = [each for each in plan.transfers if each.direction == direction]
        due = Counter[int]()
        for count, transfer in enumerate(self._transfers, 1):
            due[transfer.deadline_step] = count
        # A step waits for all transfers up to the last one that is due.
        self._due = list(itertools.accumulate((due[step] for step in range(len(plan.steps))), max))

    def waited(self, step: int) -> int:
        """Return the cycle in which all transfers that a step waits for are complete."""
        return self.ends[self._due[step] - 1] if self._due[step] else 0

    def run(self, step: int, whole: list[int], streams: list[int]) -> int:
        """Run the transfers up to a step; each starts at the cycle listed for its start step, if known yet.
        Return the earliest cycle in which the operator can end, given its streams.
        """
        held, word = 0, self._plan.word_bytes
        for transfer in self._transfers[len(self.ends) :]:
            since = whole if transfer.stream is None else streams
            if transfer.start_step > step or transfer.start_step >= len(since):
                break
            start = max([since[transfer.start_step], *self.ends[-1:]])
            self.ends.append(start + transfer.size_bytes // word)
            if transfer.stream is not None:
                # The last window of an output drains after the operator ends.
                window = self._plan.streams[transfer.stream].window_bytes // word
                held = max(held, self.ends[-1] - (window if transfer.direction == "write" else 0))
        return held
