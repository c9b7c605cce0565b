"""Which core of the kernel works when, by the signals of a launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hw.errors import LoomworkError
from hw.network.commands import Core
from hw.network.program.program import NetworkProgram
from sim.run.signals import Cycles, SignalLog, cycles_in

#: Bursts at a port that are no further apart are one transfer.
_GAP_CYCLES = 256


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command in its unit, in cycles since the launch's start."""

    core: Core
    operator: str  #: As in `hw.network.program.program.Step`.
    begin: int  #: It is in its unit, and those before it are finished.
    end: int  #: Its last word is written.
    working: int  #: Cycles from ``begin`` to ``end`` in which the unit works.

    @property
    def cycles(self) -> int:
        """From its begin to its end."""
        return self.end - self.begin


@dataclass(frozen=True, kw_only=True, eq=False)
class Activity:
    """A launch, cycle by cycle."""

    cycles: int  #: From start to done.
    commands: tuple[Command, ...]  #: Of all cores, by their begin.
    working: Mapping[Core, NDArray[np.bool_]]  #: Whether a core works, for each cycle.
    #: Whether a word is taken at a memory port, for each cycle: of weights, tensors in and tensors out.
    weights: NDArray[np.bool_]
    reads: NDArray[np.bool_]
    writes: NDArray[np.bool_]

    @cached_property
    def at_once(self) -> list[int]:
        """Cycles in which 0, 1, 2, ... cores work."""
        together = np.sum([*self.working.values()], axis=0)
        return [int((together == count).sum()) for count in range(len(self.working) + 1)]

    def share(self, core: Core) -> float:
        """Return the share of cycles in which a core works."""
        return float(self.working[core].mean())


def activity_of(log: SignalLog, program: NetworkProgram, cycles: int) -> Activity:
    """Return a launch's activity; ``cycles``: of the launch, as the kernel counts them.

    Raises `LoomworkError` when the log has other commands than the program.
    """
    start = int(log.pulses("launch_done")[-1]) - cycles
    cores = sorted({step.core for step in program.steps})
    working = {core: _within(log.high(f"{core.name.lower()}_works") - start, cycles) for core in cores}
    commands = [each for core in cores for each in _commands(log, program, core, start, working[core])]

    def taken(port: str) -> NDArray[np.bool_]:
        return _within(log.high(port, f"{port}_ready") - start, cycles)

    return Activity(
        cycles=cycles,
        commands=tuple(sorted(commands, key=lambda each: each.begin)),
        working=working,
        weights=taken("gmem1_R"),
        reads=taken("gmem0_R"),
        writes=taken("gmem0_W"),
    )


def _within(spans: Cycles, cycles: int) -> NDArray[np.bool_]:
    found = np.zeros(cycles, bool)
    numbers = cycles_in(spans)
    found[numbers[(numbers >= 0) & (numbers < cycles)]] = True
    return found


def _commands(
    log: SignalLog, program: NetworkProgram, core: Core, start: int, working: NDArray[np.bool_]
) -> list[Command]:
    """Return a core's commands: each from its predecessor's end, or from when its unit has it, to its end."""
    name = core.name.lower()
    steps = [step for step in program.steps if step.core is core]
    takes, ends = (log.pulses(f"{name}_{each}") - start for each in ("takes", "ends"))
    if not len(steps) == len(takes) == len(ends):
        counts = f"{len(takes)} taken and {len(ends)} finished"
        raise LoomworkError(f"the {name} unit has {len(steps)} commands, and the log {counts}")
    begins = np.maximum(takes, np.concatenate([takes[:1], ends[:-1]]))
    worked = np.concatenate([[0], np.cumsum(working)])
    return [
        Command(
            core=core,
            operator=step.operator,
            begin=int(begin),
            end=int(end),
            working=int(worked[end] - worked[begin]),
        )
        for step, begin, end in zip(steps, begins, ends, strict=True)
    ]


def runs(busy: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the spans with words at a port: first cycle, and first cycle after it."""
    places = np.flatnonzero(busy)
    gaps = np.flatnonzero(np.diff(places) > _GAP_CYCLES)
    first, last = places[np.append(0, gaps + 1)[: len(places)]], places[np.append(gaps, -1)[: len(places)]]
    return list(zip(first.tolist(), (last + 1).tolist(), strict=True))


def joined(commands: Sequence[Command]) -> list[Command]:
    """Join commands of one operator that follow each other on a core."""
    found: list[Command] = []
    for core in Core:
        for each in (each for each in commands if each.core is core):
            before = found[-1] if found else None
            if before and (before.core, before.operator) == (core, each.operator):
                found[-1] = Command(
                    core=core,
                    operator=each.operator,
                    begin=before.begin,
                    end=each.end,
                    working=before.working + each.working,
                )
            else:
                found.append(each)
    return found
