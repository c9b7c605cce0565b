"""A launch as the host prepares it: the program, its image and the content of its region."""

from dataclasses import dataclass

import numpy as np

from hw.errors import InputError
from hw.launch import Buffer, Launch, Tensors
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.default_plan import default_plan
from hw.scheduler.driver.region import Bytes, MemoryRegion
from hw.scheduler.plan.plan import Plan
from hw.scheduler.program.image import encode, record_bytes
from hw.scheduler.program.lower import lower
from hw.scheduler.program.program import SchedulerProgram


@dataclass(frozen=True, kw_only=True)
class SchedulerJob:
    """One launch."""

    program: SchedulerProgram
    region: MemoryRegion
    content: Bytes  #: The region before the launch.
    image: bytes  #: The program image; empty where the program is frozen in the kernel.

    @property
    def launch(self) -> Launch:
        """Scalars and buffers of the kernel call: the region, read and written, and the program image."""
        region = Buffer(argument="memory", data=self.content, size_bytes=self.content.size, output=True)
        if not self.image:
            return Launch(scalars={}, buffers=(region,))
        image = np.frombuffer(self.image, np.uint8)
        return Launch(
            scalars={"program_records": image.size // record_bytes(self.program.word_bytes)},
            buffers=(region, Buffer(argument="program", data=image, size_bytes=image.size)),
        )


def launch_program(config: SchedulerConfig, plan: Plan | None = None) -> SchedulerProgram:
    """Return the program of a launch: the frozen one, or a plan lowered (`default_plan` when None).

    Raises `InputError` for a plan that does not fit the configuration, or that meets a frozen program.
    """
    if config.program is not None:
        if plan is not None:
            raise InputError("plan", "given", "left out: the program of this kernel is frozen")
        return config.program
    program = lower(plan if plan is not None else default_plan(config.word_bytes))
    config.check_program(program)
    return program


def make_job(
    region: MemoryRegion, sources: Tensors, config: SchedulerConfig, *, fill: int = 0
) -> SchedulerJob:
    """Lay out the sources of a program that fits the configuration; see `MemoryRegion.write_sources`."""
    return SchedulerJob(
        program=region.program,
        region=region,
        content=region.write_sources(sources, fill=fill),
        image=b"" if config.program is not None else encode(region.program),
    )
