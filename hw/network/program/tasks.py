"""A program as accesses and waits alone: all that decides in which orders its accesses may happen."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hw.network.commands import Follow
from hw.network.config import WORD_BYTES, NetworkConfig
from hw.network.program.accesses import Accesses, accesses
from hw.network.program.program import NO_COUNTS, Counts, NetworkProgram, Transfer


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """A command: its core, its accesses, and its waits as those of `Step`."""

    core: int
    accesses: Accesses
    waits: Counts = NO_COUNTS
    wait_writes: int = 0
    wait_reads: int = 0
    follow: Follow | None = None
    name: str = ""  #: For messages.


@dataclass(frozen=True, kw_only=True, eq=False)
class Tasks:
    """All commands in program order, and all transfers."""

    tasks: tuple[Task, ...]
    reads: tuple[Transfer, ...] = ()
    writes: tuple[Transfer, ...] = ()
    granules: int  #: Of the scratchpad.
    memory_words: int = 1  #: Of the program's region.


def tasks_of(program: NetworkProgram, config: NetworkConfig) -> Tasks:
    """Return a program's tasks on a kernel."""
    return Tasks(
        tasks=tuple(
            Task(
                core=step.core,
                accesses=accesses(step.command, program.taps, config),
                waits=step.waits,
                wait_writes=step.wait_writes,
                wait_reads=step.wait_reads,
                follow=step.follow,
                name=f"step {number} ({step.operator})",
            )
            for number, step in enumerate(program.steps)
        ),
        reads=program.reads,
        writes=program.writes,
        granules=config.scratchpad_bytes // (WORD_BYTES // 4),
        memory_words=program.memory_words,
    )


def with_waits(program: NetworkProgram, tasks: Tasks) -> NetworkProgram:
    """Return a program with the waits of its tasks."""
    steps = tuple(
        replace(
            step,
            waits=task.waits,
            wait_writes=task.wait_writes,
            wait_reads=task.wait_reads,
            follow=task.follow,
        )
        for step, task in zip(program.steps, tasks.tasks, strict=True)
    )
    return replace(program, steps=steps, reads=tasks.reads, writes=tasks.writes)
