"""The interface of an engine's simulation side: tensors to a launch, its results to figures."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from hw.board import Board
from hw.errors import InputError
from hw.launch import Buffers, Launch, Tensor, Tensors
from hw.lib.arguments import STATUS
from sim.run.files import TENSOR_FILE, InputFile, OutputFile
from sim.run.host_call import HostCall
from sim.run.result import RunResult
from sim.run.tensors import save_results
from sim.workloads.layers import Layer

#: Of launches by their names.
Results = Mapping[str, RunResult]

#: Name, among the compared integers, of the memory that a launch must not change.
UNWRITTEN = "(unwritten memory)"
#: The fault of a launch that a memory's error ended.
BUS_ERROR = (
    "A memory answered with an error (SLVERR or DECERR), which ended the launch: status {status}, and "
    "no results"
)
#: Prefix of the names of saturated shares: see `EngineAdapter.errors`.
SATURATED = "saturated_"


@dataclass(frozen=True)
class Tamper:
    """An attack of a memory on a kernel that does not trust it.  When a read burst begins, the memory copies
    bytes of a buffer, XOR a mask, to another place in it.

    Places are byte offsets in the buffer, which the kernel also writes.  Places beyond its end keep copies.
    """

    argument: str  #: Name of the buffer's pointer.
    read: int  #: Start of the burst that triggers the copy.
    skip: int  #: Bursts at this start that pass before it.
    to: int  #: Target of the copy.
    source: int  #: Source of the copy.
    size_bytes: int  #: Bytes copied.
    mask: int  #: XOR of each copied byte.


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A burst that a memory answers with an error: see `sim.memory.view.MemoryView.refuse`."""

    port: str  #: The kernel's port.
    write: bool  #: Whether the burst is a write.
    skip: int  #: Bursts of this kind that pass before it, in the same call.
    call: int = 0  #: Number of the call.


@dataclass(frozen=True, kw_only=True)
class FaultyLaunch(Launch):
    """A launch with faults of its memories."""

    tampers: tuple[Tamper, ...] = ()  #: In order, where several have one trigger.
    refusals: tuple[Refusal, ...] = ()

    @classmethod
    def of(cls, launch: Launch, **faults: Any) -> FaultyLaunch:
        """Add tampers or refusals to a launch."""
        return cls(**(vars(launch) | faults))


@dataclass(frozen=True, kw_only=True)
class Case:
    """One run of the regression: board, configuration, tensors and memory."""

    name: str  #: Unique within the engine; the test's name.
    board: str  #: Name of the board.
    #: The engine's configuration. Cases with equal board and configuration share one built simulator.
    config: Any
    tensors: Tensors  #: Input tensors of a user.
    #: ``"model"`` (calibrated), ``"fast"`` (fixed latency and bandwidth) or ``"jitter"`` (waits by seed).
    memory: str
    seed: int = 0  #: Seed of the memory's jitter.
    soak: bool = False  #: Whether it runs in the soak only.


@dataclass(frozen=True, kw_only=True)
class Demo:
    """The launches of an engine in ``loomwork demo``."""

    title: str  #: One line: the source of the tensors.
    config: Any  #: The engine's configuration.
    #: Input tensors of each launch, by the name of its row in the table; or a function that makes them from
    #: the launches before it.
    launches: Mapping[str, Tensors | Callable[[Results], Tensors]]
    #: Returns the lines below the table, from all launches.
    conclude: Callable[[Results], Sequence[str]] = lambda results: ()
    #: Returns pictures for the page by their titles, from all launches: uint8 ``[rows, columns, 3]``, red,
    #: green and blue.
    pictures: Callable[[Results], Buffers] = lambda results: {}
    #: Further files beside the reports, by name: a title, and a function that writes the file to a path from
    #: all launches.
    documents: Mapping[str, tuple[str, Callable[[Results, Path], None]]] = field(default_factory=dict)
    #: Whether launches trace every transfer at the host's memory; traces are removed at the end.
    traced: bool = False
    #: Launches whose signals are logged, see `sim.run.signals`; logs are removed at the end.
    logged: Sequence[str] = ()
    first: bool = False  #: Whether the page begins with it.
    #: Whether results are kept until something they depend on changes: for simulations of minutes.
    kept: bool = False


@dataclass(frozen=True, kw_only=True)
class BuildFolder:
    """What a build folder was made for: it may stand where commands take an engine's name."""

    option: str  #: Of the input file that the folder is.
    config: Any  #: The engine's configuration.
    board: Board
    board_file: Path


class EngineAdapter(abc.ABC):
    """How one engine, of a name in `hw.registry`, is simulated; the module ``adapter`` of its simulation side
    has one as ``ADAPTER``.
    """

    name: ClassVar[str]
    #: Files that a launch can be made of. A new kind of file is declared here and nowhere else.
    input_files: tuple[InputFile, ...] = (TENSOR_FILE,)
    output_files: tuple[OutputFile, ...] = ()  #: Files written after a run, beside results and report.
    #: Options of example lines in ``--help``; without any, the first input file.
    examples: tuple[str, ...] = ()
    #: Fields of the configuration that a sweep of layers varies, unless the user says others, and their
    #: values: none for the board's default alone.
    space: ClassVar[Mapping[str, Sequence[Any]]] = {}

    def read_files(self, files: Mapping[str, Path], config: Any, *, seed: int) -> dict[str, Tensor]:
        """Read a user's files, by their options, into tensors as `job` takes them; ``seed`` is the run's.

        Raises `InputError` when the engine has no such option, or a file cannot be read or used.
        """
        tensors: dict[str, Tensor] = {}
        for option, path in files.items():
            kind = self.input_file(option, str(path))
            kind.check(f"--{option}", path)
            tensors |= kind.read(path, config, seed)
        return tensors

    def input_file(self, option: str, value: str) -> InputFile:
        """Return an option's input file; refuse another engine's option and its ``value`` (`InputError`)."""
        for kind in self.input_files:
            if kind.option == option:
                return kind
        raise InputError(f"--{option}", value, f"left out: the engine {self.name} has no such option")

    def find_build(self, path: Path) -> BuildFolder | None:
        """Return board and configuration of a build folder of the engine; None for any other path."""
        return None

    @abc.abstractmethod
    def job(self, tensors: Tensors, config: Any) -> Any:
        """Check and quantize the user's tensors into a job.

        Raises `InputError` on a missing tensor, a wrong shape or type, NaN or infinity, or a size beyond the
        configuration's limits.
        """

    def control_job(self, tensors: Tensors, config: Any) -> Any:
        """Return a job for a prediction or a control-only simulation: `job` without slow work on the tensors'
        values.
        """
        return self.job(tensors, config)

    @abc.abstractmethod
    def launch(self, job: Any, config: Any, board: Board) -> Launch:
        """Lay the job out in memory: scalars and buffers of the kernel call."""

    def host_call(self, job: Any, config: Any, board: Board) -> HostCall | None:
        """Describe the launch's tensors for the host library, which executes it with others on a card; None
        for an engine without such tensors.
        """
        return None

    @abc.abstractmethod
    def golden(self, job: Any, config: Any) -> dict[str, Tensor]:
        """Run the golden model; the same keys, shapes and types as `outputs`."""

    @abc.abstractmethod
    def outputs(self, job: Any, config: Any, buffers: Buffers) -> dict[str, Tensor]:
        """Turn the bytes the kernel wrote, by argument name, into integer tensors."""

    def stored(self, job: Any, config: Any, buffers: Buffers) -> dict[str, Tensor]:
        """Return the compared outputs as they lie in memory: each byte is one of a buffer, of any value."""
        return self.outputs(job, config, buffers)

    def stored_golden(self, job: Any, config: Any, golden: Tensors) -> Tensors:
        """Return the golden integers in the form of `stored`."""
        return golden

    def unverified(self, job: Any, config: Any, buffers: Buffers) -> tuple[str, ...]:
        """Return a line for each output that the kernel did not seal, which `outputs` leaves out."""
        return ()

    @abc.abstractmethod
    def results(self, job: Any, config: Any, integers: Tensors) -> dict[str, Tensor]:
        """Return the content of the user's output file, in real units, from the integer outputs."""

    def errors(self, job: Any, config: Any, integers: Tensors) -> dict[str, float]:
        """Measure the integer outputs against float64, on the quantized inputs and on the user's own; nothing
        where outputs are no real numbers.  Names with the prefix `SATURATED` are shares of numbers that
        overflowed their format; users are warned of them.
        """
        return {}

    @abc.abstractmethod
    def workload(self, job: Any, config: Any) -> Any:
        """Return the job without its tensors, as `hw.engine.Engine.predict` takes it."""

    def tensors(self, workload: Any, config: Any, *, seed: int) -> Tensors:
        """Make random tensors of a workload, as `job` takes them.

        Raises `InputError` when a workload does not determine tensors.
        """
        raise InputError("shape", "given", f"left out: the engine {self.name} takes workloads as files")

    @property
    def takes_layers(self) -> bool:
        """Whether the engine takes layers of other tools one by one."""
        return type(self).layer_shape is not EngineAdapter.layer_shape

    def layer_shape(self, layer: Layer) -> Mapping[str, Any]:
        """Return a layer of another tool as a workload's fields, as ``shape`` of a sweep's file has them.

        Raises `InputError` when the engine does no such layer.
        """
        raise InputError("layer", layer.name, f"left out: the engine {self.name} takes no layers alone")

    def write_results(self, path: Path, results: Tensors, golden: Tensors) -> None:
        """Write the user's output file: `results` and the golden model's integers."""
        save_results(path, results, {name: golden[name] for name in golden if name != UNWRITTEN})

    def trace_mismatches(
        self, job: Any, config: Any, trace: Path, addresses: Mapping[str, int]
    ) -> tuple[str, ...]:
        """Compare the trace at the host's memory (`sim.memory.trace`) with the expected one, which follows
        from the buffers' addresses.  Return a line for a difference; nothing for an engine without one.
        """
        return ()

    def faults(self, config: Any, counters: Mapping[str, int]) -> tuple[str, ...]:
        """Return a line for each fault in the counter ``status``; nothing after a normal end."""
        status = counters.get(STATUS.name, 0)
        return (BUS_ERROR.format(status=status),) if status else ()

    def job_cycles(self, job: Any, config: Any, buffers: Buffers) -> dict[str, int]:
        """Read the cycles of each job of a launch, by name, in order; nothing where a launch is one job."""
        return {}

    def job_names(self, job: Any) -> tuple[str, ...]:
        """Return the names of the jobs of a launch, in order; nothing where predictions have no jobs."""
        return ()

    def items(self, job: Any) -> tuple[int, str]:
        """Return how many items of a user's unit a launch has, and the unit, as of rates: frames, tokens."""
        return 1, "launches"

    def label(self, job: Any, config: Any) -> str:
        """Return a title of a job for reports; may be empty."""
        return ""

    @abc.abstractmethod
    def cases(self) -> Iterator[Case]:
        """Return the engine's regression: sizes at their limits, random shapes, every memory mode."""

    def demo(self, board: Board) -> Demo | None:
        """Return real input for ``loomwork demo``; None when the engine has none."""
        return None
