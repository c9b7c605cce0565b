"""The scheduler engine's simulation side: a network's sources to its region of the memory, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hw.board import Board
from hw.errors import InputError
from hw.scheduler.config import SchedulerConfig
from hw.scheduler.graph.graph import TensorKind
from hw.scheduler.predict import SchedulerWorkload
from hw.scheduler.program.dataflow import Dataflow, Item
from sim.golden.scheduler import Words, execute, to_bytes, to_words
from sim.run.adapter import Buffer, Case, Demo, EngineAdapter, Launch, Tensor

#: Name of the array that chooses the sources that are not given.
SEED = "seed"
#: Name of what the run must leave alone, among the integers that are compared.
UNWRITTEN = "(unwritten memory)"
#: What lies in the region outside of the sources before the launch.
_EMPTY = 0x5A


@dataclass(frozen=True, kw_only=True)
class SchedulerJob:
    """One launch."""

    sources: Mapping[str, Words]  #: Words of every item that lies in memory before.
    region: NDArray[np.uint8]  #: The program's region of the memory before the launch, uint8.


class SchedulerAdapter(EngineAdapter):
    """See `sim.run.adapter.EngineAdapter`; a job is a `SchedulerJob`.

    The input tensors are the program's sources by name, arrays of any type and shape with as many bytes as
    the tensor has.  Those that are not given are random, by ``seed`` (a whole number, default 0).

    The integers compared are every tensor the program writes to memory, outputs and spills, as uint8 with
    the padding of the last word, and all of the region that it must not write.  The results are the network's
    outputs, uint8, without padding.
    """

    name = "scheduler"

    def job(self, tensors: Mapping[str, Tensor], config: SchedulerConfig) -> SchedulerJob:
        """Check the given sources and make up the others; see `EngineAdapter.job`."""
        dataflow = _dataflow(config)
        known = [item.name for item in dataflow.sources]
        for name in tensors:
            if name not in known and name != SEED:
                shown = ", ".join(known[:8]) + (f" and {len(known) - 8} more" if len(known) > 8 else "")
                raise InputError("tensor name", name, f"{SEED} or a source of the network: {shown}")
        seed = _seed(tensors) if SEED not in known else 0
        region = np.full(config.program.memory_words * config.word_bytes, _EMPTY, np.uint8)
        sources = {}
        for number, item in enumerate(dataflow.sources):
            if item.name in tensors:
                content = _given(item, np.asarray(tensors[item.name]))
            else:
                generator = np.random.default_rng([seed, number])
                content = generator.integers(0, 256, item.size_bytes, np.uint8)
            sources[item.name] = to_words(content, config.word_bytes)
            region[_place(item, config)] = to_bytes(sources[item.name])
        return SchedulerJob(sources=sources, region=region)

    def launch(self, job: SchedulerJob, config: SchedulerConfig, board: Board) -> Launch:
        """Place the region: read and written."""
        buffer = Buffer(argument="memory", data=job.region, size_bytes=job.region.size, output=True)
        return Launch(scalars={}, buffers=(buffer,))

    def golden(self, job: SchedulerJob, config: SchedulerConfig) -> dict[str, Tensor]:
        """Run `sim.golden.scheduler.execute`."""
        dataflow = _dataflow(config)
        saved = execute(dataflow, job.sources, config.word_bytes)
        kept = job.region[_unwritten(dataflow, config)]
        return {**{name: to_bytes(words) for name, words in saved.items()}, UNWRITTEN: kept}

    def outputs(
        self, job: SchedulerJob, config: SchedulerConfig, buffers: Mapping[str, NDArray[np.uint8]]
    ) -> dict[str, Tensor]:
        """Read every saved tensor from its home, and what lies outside of them."""
        dataflow, region = _dataflow(config), buffers["memory"]
        saved: dict[str, Tensor] = {item.name: region[_place(item, config)] for item in dataflow.saved}
        return {**saved, UNWRITTEN: region[_unwritten(dataflow, config)]}

    def results(
        self, job: SchedulerJob, config: SchedulerConfig, integers: Mapping[str, Tensor]
    ) -> dict[str, Tensor]:
        """Give the outputs of the network."""
        return {
            item.name: integers[item.name][: item.size_bytes]
            for item in _dataflow(config).saved
            if item.kind is TensorKind.OUTPUT
        }

    def errors(
        self, job: SchedulerJob, config: SchedulerConfig, integers: Mapping[str, Tensor]
    ) -> dict[str, float]:
        """Give nothing: the words mean no real numbers."""
        return {}

    def workload(self, job: SchedulerJob, config: SchedulerConfig) -> SchedulerWorkload:
        """Give the program, which is all: what a launch does depends on no tensor."""
        return SchedulerWorkload(program=config.program)

    def label(self, config: SchedulerConfig) -> str:
        """Name the network and its scratchpad."""
        name = config.program.dataflow.name if config.program.dataflow is not None else ""
        return f"{name} in {config.scratchpad_bytes / 1024:,.5g} KiB" if name else ""

    def cases(self) -> Iterator[Case]:
        """See `sim.engines.scheduler.cases`."""
        from sim.engines.scheduler.cases import scheduler_cases

        return scheduler_cases()

    def demo(self, board: Board) -> Demo:
        """See `sim.engines.scheduler.demo.scheduler_demo`."""
        from sim.engines.scheduler.demo import scheduler_demo

        return scheduler_demo(board)


def _dataflow(config: SchedulerConfig) -> Dataflow:
    if config.program.dataflow is None:
        raise InputError("program.dataflow", None, "given: it says what the program is to compute")
    return config.program.dataflow


def _seed(tensors: Mapping[str, Tensor]) -> int:
    value = np.asarray(tensors.get(SEED, 0))
    if value.size != 1 or value.dtype.kind not in "iu" or not 0 <= int(value.reshape(())) < 2**32:
        raise InputError(SEED, value.tolist(), "one whole number from 0 to 2^32 - 1")
    return int(value.reshape(()))


def _given(item: Item, tensor: Tensor) -> NDArray[np.uint8]:
    if tensor.nbytes != item.size_bytes:
        raise InputError(f"bytes of tensor {item.name}", tensor.nbytes, f"{item.size_bytes}")
    return np.frombuffer(np.ascontiguousarray(tensor).tobytes(), np.uint8)


def _place(item: Item, config: SchedulerConfig) -> slice:
    """Give the bytes of an item's home in the region."""
    assert item.home is not None  # sources and saved items have one
    first = item.home * config.word_bytes
    return slice(first, first + -(-item.size_bytes // config.word_bytes) * config.word_bytes)


def _unwritten(dataflow: Dataflow, config: SchedulerConfig) -> NDArray[np.bool_]:
    """Mark the bytes of the region that no saved item has its home in."""
    mask = np.ones(config.program.memory_words * config.word_bytes, np.bool_)
    for item in dataflow.saved:
        mask[_place(item, config)] = False
    return mask


ADAPTER = SchedulerAdapter()
