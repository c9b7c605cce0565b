"""The workload of a launch: its cost depends on the program alone, not on the values of tensors."""

from dataclasses import dataclass

from hw.scheduler.program.program import SchedulerProgram


@dataclass(frozen=True, kw_only=True)
class SchedulerWorkload:
    """One launch of the scheduler engine; the program has a dataflow."""

    program: SchedulerProgram
