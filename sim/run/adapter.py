"""The interface that an engine's simulation side implements: tensors to a launch, its results to figures."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hw.board import Board
from hw.errors import InputError
from hw.launch import Launch, Tensor, Tensors
from hw.lib.arguments import STATUS
from sim.host.paths import check_readable
from sim.run.files import TENSOR_FILE, InputFile, OutputFile
from sim.run.result import RunResult
from sim.run.tensors import save_results

#: Of launches by their names.
Results = Mapping[str, RunResult]

#: Name of the memory that a launch must leave as it is, among the integers that are compared.
UNWRITTEN = "(unwritten memory)"
#: What became of a launch that a memory's error ended.
BUS_ERROR = (
    "A memory answered with an error (SLVERR or DECERR), which ended the launch: status {status}, and "
)
BUS_ERROR += "no results"
#: What names of shares of saturated numbers begin with: see `EngineAdapter.errors`.
SATURATED = "saturated_"


@dataclass(frozen=True)
class Tamper:
    """What a memory does behind the kernel's back, for kernels that do not trust it: bytes of a buffer change
    when a read of it begins.  Places are bytes of the buffer, which is one that the kernel writes too; what
    lies beyond it may serve to keep copies.
    """

    argument: str  #: Name of the buffer's pointer.
    read: int  #: Where the burst begins that is waited for.
    skip: int  #: How many such bursts come before.
    to: int  #: The bytes that change
    source: int  #: become those that lie here,
    size_bytes: int  #: as many,
    mask: int  #: each XOR this.


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A burst that a memory answers with an error: see `sim.memory.view.MemoryView.refuse`."""

    port: str  #: The kernel's port.
    write: bool  #: Whether it is one of its writes, and not of its reads.
    skip: int  #: How many of these come before, in the same call.
    call: int = 0  #: Number of the call.


@dataclass(frozen=True, kw_only=True)
class FaultyLaunch(Launch):
    """A launch whose memories do something wrong."""

    tampers: tuple[Tamper, ...] = ()  #: In order where several wait for one burst.
    refusals: tuple[Refusal, ...] = ()

    @classmethod
    def of(cls, launch: Launch, **faults: Any) -> FaultyLaunch:
        """Add tampers or refusals to a launch, which keeps those that it has."""
        return cls(**(vars(launch) | faults))


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run of the regression: what is generated, what goes through it, and on which memory."""

    name: str  #: Unique within the engine; the test's name.
    board: str  #: Name of the board.
    #: The engine's configuration. Cases with equal board and configuration share one built simulator.
    config: Any
    tensors: Mapping[str, Tensor]  #: Input tensors, as a user would give them.
    #: ``"model"`` (calibrated), ``"fast"`` (fixed latency and bandwidth) or ``"jitter"`` (waits by seed).
    memory: str
    seed: int = 0  #: Seed of the memory's jitter.
    soak: bool = False  #: Whether it runs in the soak only.


@dataclass(frozen=True, kw_only=True)
class Demo:
    """What ``loomwork demo`` puts through an engine."""

    title: str  #: One line: whose tensors these are.
    config: Any  #: The engine's configuration.
    #: Input tensors of each launch, by the name of its row in the table; or a function that makes them from
    #: the launches before it.
    launches: Mapping[str, Tensors | Callable[[Results], Tensors]]
    #: Given all launches, lines to print below the table.
    conclude: Callable[[Results], Sequence[str]] = lambda results: ()
    #: Given all launches, pictures for the page by what they show: uint8 ``[rows, columns, 3]``, red, green
    #: and blue.
    pictures: Callable[[Results], Mapping[str, NDArray[np.uint8]]] = lambda results: {}
    #: Files to leave beside the reports, by name: a line that says what one shows, and what writes it to a
    #: path, given all launches.
    documents: Mapping[str, tuple[str, Callable[[Results, Path], None]]] = field(default_factory=dict)
    #: Whether launches record every transfer at the host's memory; what is recorded goes with the simulation.
    traced: bool = False
    #: Whether what was simulated is kept, and not simulated again while all that it follows from is the same:
    #: for what takes minutes.
    kept: bool = False


class EngineAdapter(abc.ABC):
    """How one engine, of a name in `hw.registry`, is simulated; the module ``adapter`` of its simulation side
    has one as ``ADAPTER``.
    """

    name: ClassVar[str]
    #: Files that a launch can be made of. A new kind of file is declared here and nowhere else.
    input_files: tuple[InputFile, ...] = (TENSOR_FILE,)
    output_files: tuple[OutputFile, ...] = ()  #: Files written after a run, beside results and report.

    def read_files(self, files: Mapping[str, Path], config: Any, *, seed: int) -> dict[str, Tensor]:
        """Read a user's files, by their options, into tensors as `job` takes them; ``seed`` is the run's.

        Raises `InputError` when the engine has no such option, or a file cannot be read or used.
        """
        tensors: dict[str, Tensor] = {}
        for option, path in files.items():
            kind = self.input_file(option, str(path))
            check_readable(f"--{option}", path)
            tensors |= kind.read(path, config, seed)
        return tensors

    def input_file(self, option: str, value: str) -> InputFile:
        """Return the kind of input file behind an option; refuse another engine's option and its ``value``
        with `InputError`.
        """
        for kind in self.input_files:
            if kind.option == option:
                return kind
        raise InputError(f"--{option}", value, f"left out: the engine {self.name} has no such option")

    @abc.abstractmethod
    def job(self, tensors: Mapping[str, Tensor], config: Any) -> Any:
        """Check and quantize the user's tensors into a job.

        Raises `InputError` on a missing tensor, wrong shape or type, NaN or infinity, or a size the
        configuration cannot do.
        """

    def control_job(self, tensors: Mapping[str, Tensor], config: Any) -> Any:
        """Return a job for a control-only simulation: `job`, without what only the values of tensors decide
        where working that out takes time.
        """
        return self.job(tensors, config)

    @abc.abstractmethod
    def launch(self, job: Any, config: Any, board: Board) -> Launch:
        """Lay the job out in memory: scalars and buffers of the kernel call."""

    @abc.abstractmethod
    def golden(self, job: Any, config: Any) -> dict[str, Tensor]:
        """Run the golden model; the same keys, shapes and types as `outputs`."""

    @abc.abstractmethod
    def outputs(self, job: Any, config: Any, buffers: Mapping[str, NDArray[np.uint8]]) -> dict[str, Tensor]:
        """Turn the bytes the kernel wrote, by argument name, into integer tensors."""

    def unverified(self, job: Any, config: Any, buffers: Mapping[str, NDArray[np.uint8]]) -> tuple[str, ...]:
        """Say what of the bytes the kernel did not seal, in a line each: `outputs` keeps that back."""
        return ()

    @abc.abstractmethod
    def results(self, job: Any, config: Any, integers: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return what the user's output file holds, in real units, from the integer outputs."""

    def errors(self, job: Any, config: Any, integers: Mapping[str, Tensor]) -> dict[str, float]:
        """Measure the integer outputs against float64: on the quantized inputs and on the user's own; nothing
        where the outputs mean no real numbers.  What begins with `SATURATED` is a share of numbers that left
        their format, of which users are warned.
        """
        return {}

    @abc.abstractmethod
    def workload(self, job: Any, config: Any) -> Any:
        """Return the job without its tensors, as `hw.engine.Engine.predict` takes it."""

    def tensors(self, workload: Any, config: Any, *, seed: int) -> Tensors:
        """Make random tensors of a workload, as `job` takes them.

        Raises `InputError` when the engine's workloads do not say what tensors they are of.
        """
        raise InputError("shape", "given", f"left out: the engine {self.name} takes workloads as files")

    def write_results(self, path: Path, results: Tensors, golden: Tensors) -> None:
        """Write the user's output file: what `results` gave, and the golden model's integers."""
        save_results(path, results, {name: golden[name] for name in golden if name != UNWRITTEN})

    def trace_mismatches(
        self, job: Any, config: Any, trace: Path, addresses: Mapping[str, int]
    ) -> tuple[str, ...]:
        """Compare what a run recorded at the host's memory (`sim.memory.trace`) with what it should have
        been, given the addresses of the launch's buffers: a line for a difference; nothing where an engine
        does not say what the host sees.
        """
        return ()

    def faults(self, config: Any, counters: Mapping[str, int]) -> tuple[str, ...]:
        """Say, a line for each, why a kernel stopped before its end, which its counter ``status`` tells;
        nothing where it did not.
        """
        status = counters.get(STATUS.name, 0)
        return (BUS_ERROR.format(status=status),) if status else ()

    def job_cycles(self, job: Any, config: Any, buffers: Mapping[str, NDArray[np.uint8]]) -> dict[str, int]:
        """Read from what the kernel wrote how many cycles each job of the launch took, by name, in order;
        nothing where a launch is one job.
        """
        return {}

    def label(self, job: Any, config: Any) -> str:
        """Name the work of a job, for reports; empty when its figures say all."""
        return ""

    @abc.abstractmethod
    def cases(self) -> Iterator[Case]:
        """Return the engine's regression: sizes at their limits, random shapes, every memory mode."""

    def demo(self, board: Board) -> Demo | None:
        """Return real input for ``loomwork demo``; None when the engine has none to show."""
        return None
