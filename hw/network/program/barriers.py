"""Programs of barriers: each command waits for all before it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from hw.network.commands import Command, Core, core_of
from hw.network.program.program import NO_COUNTS, Counts, NetworkProgram


def finished_before(commands: Sequence[Command]) -> list[Counts]:
    """Return the commands of each core before each command, and all of them."""

    def following(counts: Counts, command: Command) -> Counts:
        core = core_of(command)
        return tuple(count + (core == each) for each, count in zip(Core, counts, strict=True))

    return list(itertools.accumulate(commands, following, initial=NO_COUNTS))


def is_barriers(program: NetworkProgram) -> bool:
    """Tell whether each command waits for all before it."""
    before = finished_before([step.command for step in program.steps])
    return all(step.waits == counts for step, counts in zip(program.steps, before, strict=False))
