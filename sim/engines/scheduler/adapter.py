"""The scheduler engine's simulation side: a network's sources to its region of the memory, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hw.board import Board
from hw.errors import InputError
from hw.launch import Buffer, Launch, Tensor
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.default_plan import default_plan
from hw.scheduler.graph import graph
from hw.scheduler.predict import SchedulerWorkload
from hw.scheduler.program.dataflow import Dataflow
from hw.scheduler.program.image import encode, record_bytes
from hw.scheduler.program.lower import lower
from hw.scheduler.program.program import Program
from sim.golden.scheduler import Words, execute, to_bytes, to_words
from sim.plans.commands import checked_plan
from sim.run.adapter import PLAN, UNWRITTEN, Case, Demo, EngineAdapter

#: Name of the array that chooses the sources that are not given.
SEED = "seed"
#: What lies in the region outside of the sources before the launch.
_EMPTY = 0x5A


@dataclass(frozen=True, kw_only=True)
class SchedulerJob:
    """One launch."""

    program: Program
    dataflow: Dataflow  #: What the program is to compute.
    image: bytes  #: The program image; empty where the program is frozen in the kernel.
    sources: Mapping[str, Words]  #: Words of every tensor that lies in memory before.
    region: NDArray[np.uint8]  #: The program's region of the memory before the launch, uint8.

    def place(self, tensor: graph.Tensor) -> slice:
        """Return the bytes of a source or a saved tensor in the region."""
        size, home = self.program.word_bytes, self.dataflow.homes[tensor.name]
        return slice(home * size, (home + -(-tensor.size_bytes // size)) * size)

    @property
    def unwritten(self) -> NDArray[np.bool_]:
        """The bytes of the region where no saved tensor lies."""
        mask = np.ones(self.region.size, np.bool_)
        for item in self.dataflow.saved:
            mask[self.place(item)] = False
        return mask


class SchedulerAdapter(EngineAdapter):
    """See `sim.run.adapter.EngineAdapter`; a job is a `SchedulerJob`.

    The program is the one frozen in the configuration, or lowered from a plan: the one given as `PLAN`, an
    array of no dimension that holds a `hw.scheduler.plan.plan.Plan`, else `hw.scheduler.default_plan`'s.

    The input tensors are the program's sources by name, arrays of any type and shape with as many bytes as
    the tensor has.  Those that are not given are random, by ``seed`` (a whole number, default 0).

    The integers compared are every tensor the program writes to memory, outputs and spills, as uint8 with
    the padding of the last word, and all of the region that it must not write.  The results are the network's
    outputs, uint8, without padding.
    """

    name = "scheduler"

    def read_plan(self, path: Path) -> Tensor:
        """Read a plan.json; see `EngineAdapter.read_plan`."""
        return np.array(checked_plan(path), object)

    def job(self, tensors: Mapping[str, Tensor], config: SchedulerConfig) -> SchedulerJob:
        """Lower the plan, check the given sources and make up the others; see `EngineAdapter.job`."""
        program, dataflow = _program(tensors, config)
        known = [item.name for item in dataflow.sources]
        for name in tensors:
            if name not in known and name not in (SEED, PLAN):
                shown = ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
                raise InputError("tensor name", name, f"{SEED} or a source of the network: {shown}")
        seed = _seed(tensors) if SEED not in known else 0
        job = SchedulerJob(
            program=program,
            dataflow=dataflow,
            image=b"" if config.program is not None else encode(program),
            sources={
                item.name: to_words(_content(item, tensors, (seed, number)), config.word_bytes)
                for number, item in enumerate(dataflow.sources)
            },
            region=np.full(program.memory_words * config.word_bytes, _EMPTY, np.uint8),
        )
        for item in dataflow.sources:
            job.region[job.place(item)] = to_bytes(job.sources[item.name])
        return job

    def launch(self, job: SchedulerJob, config: SchedulerConfig, board: Board) -> Launch:
        """Place the region, read and written, and the program image."""
        region = Buffer(argument="memory", data=job.region, size_bytes=job.region.size, output=True)
        if not job.image:
            return Launch(scalars={}, buffers=(region,))
        image = np.frombuffer(job.image, np.uint8)
        return Launch(
            scalars={"program_records": image.size // record_bytes(config.word_bytes)},
            buffers=(region, Buffer(argument="program", data=image, size_bytes=image.size)),
        )

    def golden(self, job: SchedulerJob, config: SchedulerConfig) -> dict[str, Tensor]:
        """Run `sim.golden.scheduler.execute`."""
        saved = execute(job.dataflow, job.sources, config.word_bytes)
        return {
            **{name: to_bytes(words) for name, words in saved.items()},
            UNWRITTEN: job.region[job.unwritten],
        }

    def outputs(
        self, job: SchedulerJob, config: SchedulerConfig, buffers: Mapping[str, NDArray[np.uint8]]
    ) -> dict[str, Tensor]:
        """Read every saved tensor from where it lies, and what lies outside of them."""
        region = buffers["memory"]
        saved: dict[str, Tensor] = {item.name: region[job.place(item)] for item in job.dataflow.saved}
        return {**saved, UNWRITTEN: region[job.unwritten]}

    def results(
        self, job: SchedulerJob, config: SchedulerConfig, integers: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Return the outputs of the network."""
        return {
            item.name: integers[item.name][: item.size_bytes]
            for item in job.dataflow.saved
            if item.kind is graph.TensorKind.OUTPUT
        }

    def workload(self, job: SchedulerJob, config: SchedulerConfig) -> SchedulerWorkload:
        """Return the program, which is all: what a launch does depends on no tensor."""
        return SchedulerWorkload(program=job.program)

    def label(self, job: SchedulerJob, config: SchedulerConfig) -> str:
        """Name the network, and say how much of the scratchpad it uses."""
        used = job.program.scratchpad_words * config.word_bytes
        return f"{job.dataflow.name}, {used / 1024:,.5g} KiB of scratchpad used" if job.dataflow.name else ""

    def cases(self) -> Iterator[Case]:
        """See `sim.engines.scheduler.cases`."""
        from sim.engines.scheduler.cases import scheduler_cases

        return scheduler_cases()

    def demo(self, board: Board) -> Demo:
        """See `sim.engines.scheduler.demo.scheduler_demo`."""
        from sim.engines.scheduler.demo import scheduler_demo

        return scheduler_demo(board)


def _program(tensors: Mapping[str, Tensor], config: SchedulerConfig) -> tuple[Program, Dataflow]:
    program = config.program
    if program is None:
        plan = tensors[PLAN].item() if PLAN in tensors else default_plan(config.word_bytes)
        program = lower(plan)
        config.check_program(program)
    elif PLAN in tensors:
        raise InputError("plan", "given", "left out: the program of this kernel is frozen")
    if program.dataflow is None:
        raise InputError("program.dataflow", None, "given: it says what the program is to compute")
    return program, program.dataflow


def _seed(tensors: Mapping[str, Tensor]) -> int:
    value = np.asarray(tensors.get(SEED, 0))
    if value.size != 1 or value.dtype.kind not in "iu" or not 0 <= int(value.reshape(())) < 2**32:
        raise InputError(SEED, value.tolist(), "one whole number from 0 to 2^32 - 1")
    return int(value.reshape(()))


def _content(item: graph.Tensor, tensors: Mapping[str, Tensor], seed: tuple[int, int]) -> NDArray[np.uint8]:
    """Return the bytes of a source: those given, or random ones."""
    if item.name not in tensors:
        return np.random.default_rng(seed).integers(0, 256, item.size_bytes, np.uint8)
    tensor = np.asarray(tensors[item.name])
    if tensor.nbytes != item.size_bytes:
        raise InputError(f"bytes of tensor {item.name}", tensor.nbytes, f"{item.size_bytes}")
    return np.frombuffer(np.ascontiguousarray(tensor).tobytes(), np.uint8)


ADAPTER = SchedulerAdapter()
