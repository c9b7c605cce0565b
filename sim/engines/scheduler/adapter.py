"""The scheduler engine's adapter: a plan and sources to a launch, and the golden result."""

from collections.abc import Iterator

import numpy as np

from hw.board import Board
from hw.errors import InputError
from hw.launch import Buffers, Launch, Tensor, Tensors
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.driver.job import SchedulerJob, launch_program, make_job
from hw.scheduler.driver.region import MemoryRegion
from hw.scheduler.driver.workload import SchedulerWorkload
from sim.golden.scheduler import execute, to_bytes, to_words
from sim.plans.commands import PLAN, checked_plan
from sim.run.adapter import UNWRITTEN, Case, EngineAdapter
from sim.run.files import InputFile, tensor_file

#: Name of the array that seeds the random sources.
SEED = "seed"
#: Byte that fills the region outside of the sources before the launch.
_EMPTY = 0x5A


class SchedulerAdapter(EngineAdapter):
    """See `sim.run.adapter.EngineAdapter`; a job is a `SchedulerJob`.

    The program is frozen in the configuration, or lowered from a plan.  The plan is the tensor `PLAN`, an
    array of no dimension that holds a `hw.scheduler.plan.plan.Plan`, or by default `default_plan`.

    The input tensors are the program's sources by name, arrays of any type and shape with as many bytes as
    the tensor.  Missing sources are random, by ``seed`` (a whole number, default 0).

    The integers compared are every tensor that the program writes to memory, as uint8 padded to whole words,
    and every byte of the region that it must not write.  The results are the network's outputs, uint8,
    without padding.
    """

    name = "scheduler"
    input_files = (
        tensor_file(
            {
                "NAME": "A source of the plan, by its name: as many bytes as the tensor; random without.",
                "seed": "Of random sources; 0 without.",
            }
        ),
        InputFile(
            option="plan",
            suffix=".json",
            help="Plan to execute, .json (scheduler).",
            read=lambda path, config, seed: {PLAN: np.array(checked_plan(path), object)},
        ),
    )

    examples = ("--plan plan.json",)

    def job(self, tensors: Tensors, config: SchedulerConfig) -> SchedulerJob:
        """Lower the plan, check the sources and draw those that are missing; see `EngineAdapter.job`."""
        plan = tensors[PLAN].item() if PLAN in tensors else None
        region = MemoryRegion(program=launch_program(config, plan))
        region.check_names([name for name in tensors if name != PLAN], others=(SEED,))
        items = region.dataflow.sources
        seed = 0 if SEED in [item.name for item in items] else _seed(tensors)
        drawn = {
            item.name: np.random.default_rng((seed, number)).integers(0, 256, item.size_bytes, np.uint8)
            for number, item in enumerate(items)
            if item.name not in tensors
        }
        return make_job(region, {**tensors, **drawn}, config, fill=_EMPTY)

    def launch(self, job: SchedulerJob, config: SchedulerConfig, board: Board) -> Launch:
        """See `SchedulerJob.launch`."""
        return job.launch

    def golden(self, job: SchedulerJob, config: SchedulerConfig) -> dict[str, Tensor]:
        """Run `sim.golden.scheduler.execute`."""
        region, size = job.region, config.word_bytes
        sources = {
            item.name: to_words(job.content[region.place(item)], size) for item in region.dataflow.sources
        }
        saved = execute(region.dataflow, sources, size)
        return {
            **{name: to_bytes(words) for name, words in saved.items()},
            UNWRITTEN: job.content[region.unwritten],
        }

    def outputs(self, job: SchedulerJob, config: SchedulerConfig, buffers: Buffers) -> dict[str, Tensor]:
        """Read every saved tensor, and every byte outside of them."""
        content = buffers["memory"]
        return {**job.region.read_saved(content), UNWRITTEN: content[job.region.unwritten]}

    def results(self, job: SchedulerJob, config: SchedulerConfig, integers: Tensors) -> dict[str, Tensor]:
        """Return the outputs of the network."""
        return job.region.outputs(integers)

    def workload(self, job: SchedulerJob, config: SchedulerConfig) -> SchedulerWorkload:
        """Return the program; cycles and bytes depend on no tensor's values."""
        return SchedulerWorkload(program=job.program)

    def items(self, job: SchedulerJob) -> tuple[int, str]:
        """Return an inference: the plan is executed once."""
        return 1, "inferences"

    def label(self, job: SchedulerJob, config: SchedulerConfig) -> str:
        """Return the network's name and the scratchpad it uses."""
        used = job.program.scratchpad_words * config.word_bytes
        return (
            f"{job.region.dataflow.name}, {used / 1024:,.5g} KiB of scratchpad used"
            if job.region.dataflow.name
            else ""
        )

    def cases(self) -> Iterator[Case]:
        """See `sim.engines.scheduler.cases`."""
        from sim.engines.scheduler.cases import scheduler_cases

        return scheduler_cases()


def _seed(tensors: Tensors) -> int:
    value = np.asarray(tensors.get(SEED, 0))
    if value.size != 1 or value.dtype.kind not in "iu" or not 0 <= int(value.reshape(())) < 2**32:
        raise InputError(SEED, value.tolist(), "one whole number from 0 to 2^32 - 1")
    return int(value.reshape(()))


ADAPTER = SchedulerAdapter()
