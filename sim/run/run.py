"""One launch of an engine on a board: tensors in, simulated, compared bit for bit, reported."""

from __future__ import annotations

import dataclasses
import functools
import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hw.board import Board
from hw.config import check_control_only, check_fits, config_dict, config_hash, config_of
from hw.energy import Activity
from hw.energy.launch import predicted_activity
from hw.engine import Engine
from hw.errors import InputError, check_one_of
from hw.launch import Buffers, Launch, Tensors
from hw.lib.arguments import STATUS, ArgumentTable
from hw.prediction import Prediction
from hw.registry import find_engine, simulation_side
from sim.build.design import simulated_design
from sim.host.background import in_background
from sim.host.progress import ProgressLine
from sim.run.adapter import SATURATED, EngineAdapter
from sim.run.memories import MODES, channel_traffic
from sim.run.result import RunResult

if TYPE_CHECKING:
    from sim.run.launch import Simulated

BACKENDS = ("rtl", "golden")
#: Python packages that a report names with their versions.
_PACKAGES = ("loomwork", "amaranth", "numpy")


def find_adapter(engine_name: str) -> EngineAdapter:
    """Return the simulation side of an engine."""
    module = importlib.import_module(f"{simulation_side(engine_name)}.adapter")
    adapter: EngineAdapter = module.ADAPTER
    return adapter


def run(
    engine_name: str,
    config: Any,
    board: Board,
    tensors: Tensors,
    *,
    directory: Path,
    seed: int = 0,
    memory_mode: str = "model",
    waves: Path | None = None,
    traces: Mapping[str, Path] | None = None,
    signals: Path | None = None,
    backend: str = "rtl",
    control_only: bool = False,
    target: Target | None = None,
) -> RunResult:
    """Run one launch of an engine on a user's tensors and compare it with the golden model.

    * ``directory``: gets a folder ``simulation`` with the simulator's log, and everything of a failed run.
    * ``memory_mode``, ``seed``: ``"model"`` (calibrated), ``"fast"`` (fixed latency and bandwidth) or
      ``"jitter"`` (waits by seed).
    * ``waves``: waveform file to write, its suffix replaced by ``.fst`` or ``.vcd``, whichever this machine
      can write.
    * ``traces``: files for every transfer at the ports of a memory, by the memory's name; see
      `sim.memory.trace`. The host memory's trace is compared with the expected one.
    * ``signals``: file for the changes of the signals that the engine names (`hw.engine.Engine.signals`); see
      `sim.run.signals`.
    * ``backend``: ``"rtl"``, or ``"golden"``: the same launch on the golden model alone.
    * ``control_only``: whether gates that only compute (`hw.engine.Engine.data_cells`) are left out. Cycles,
      bytes and counters are those of the whole kernel; no outputs are compared.
    * ``target``: engine, configuration and board where they are known to fit each other.

    Raises `InputError` when a value is illegal, the engine does not fit the board or cannot be simulated
    without data, or a folder cannot be written. Raises `ToolError` when the simulator cannot be built, and
    `SimulationError` when the kernel hangs, breaks a rule of AXI or writes outside of its buffers.
    """
    for name, value, legal in (("memory_mode", memory_mode, MODES), ("backend", backend, BACKENDS)):
        check_one_of(name, value, legal)
    if control_only and backend != "rtl":
        raise InputError("backend", backend, "rtl for a control-only simulation")
    target = target or Target.of(engine_name, config, board)
    prepared = target.prepare(tensors, control_only=control_only)
    adapter, job = target.adapter, prepared.job
    launch = adapter.launch(job, config, board)
    if backend == "golden":
        with ProgressLine("Golden model"):
            golden = adapter.golden(job, config)
        return RunResult(
            outputs=adapter.results(job, config, golden), integers=golden, golden=golden, job=job
        )

    expected = None if control_only else in_background(lambda: adapter.golden(job, config))
    simulated = prepared.simulate(
        launch,
        directory=directory,
        memory_mode=memory_mode,
        seed=seed,
        waves=waves,
        traces=traces,
        signals=signals,
    )
    seen = measured(simulated, prepared, memory_mode=memory_mode, seed=seed)
    further: tuple[str, ...] = ()
    # A kernel that stopped has a short trace; its fault is reported anyway.
    stopped = prepared.faults(seen.counters)
    if expected and board.host is not None and traces and board.host.name in traces and not stopped:
        further = adapter.trace_mismatches(job, config, traces[board.host.name], simulated.addresses)
    with ProgressLine("Golden model"):
        exact = expected.result() if expected else None
    result = prepared.judge(exact, simulated.buffers, seen, further=further)
    return dataclasses.replace(
        result,
        waves=simulated.waves,
        traces=traces or {},
        signals=signals,
        addresses=simulated.addresses,
    )


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Counters and statistics of a kernel call."""

    counters: Mapping[str, int]  #: The kernel's, by name.
    #: ``memory``, ``simulation``, ``hardware``: as `sim.run.accounting.build_report` takes them.
    memory: Sequence[Mapping[str, Any]]
    simulation: Mapping[str, Any] | None = None
    hardware: Mapping[str, Any] | None = None
    #: Of the tools that made the figures, beside Loomwork's own.
    tool_versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Target:
    """An engine in a configuration that fits a board, with its simulation side."""

    engine: Engine[Any, Any]
    config: Any
    board: Board

    @classmethod
    def of(cls, engine_name: str, config: Any, board: Board) -> Target:
        """Find the engine; ``config`` may be a mapping of fields, see `hw.config.config_of`.

        Raises `InputError` when a field is wrong, or the engine does not fit the board.
        """
        engine = find_engine(engine_name)
        config = config_of(engine, config, board)
        check_fits(engine, config, board)
        return cls(engine=engine, config=config, board=board)

    @functools.cached_property
    def adapter(self) -> EngineAdapter:
        """The engine's simulation side."""
        return find_adapter(self.engine.name)

    @functools.cached_property
    def table(self) -> ArgumentTable:
        """The kernel's arguments and counters."""
        return self.engine.arguments(self.config, self.board)

    @functools.cached_property
    def placement(self) -> dict[str, int]:
        """Memory channel of each port."""
        return self.engine.placement(self.config, self.board)

    def prepare(self, tensors: Tensors, *, control_only: bool = False) -> Prepared:
        """Make a job of a user's tensors.

        Raises `InputError` when a value is illegal, or the engine's control cannot be simulated alone.
        """
        if control_only:
            check_control_only(self.engine)
        make = self.adapter.control_job if control_only else self.adapter.job
        with ProgressLine("Preparing the launch"):
            job = make(tensors, self.config)
        return Prepared(target=self, job=job, control_only=control_only)


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A checked job of an engine, and whether its control alone is simulated."""

    target: Target
    job: Any
    control_only: bool = False

    @functools.cached_property
    def prediction(self) -> Prediction:
        """The analytic model's prediction of the job."""
        target = self.target
        workload = target.adapter.workload(self.job, target.config)
        return target.engine.predict(workload, target.config, target.board)

    @functools.cached_property
    def activity(self) -> Activity:
        """The activity of the predicted launch."""
        target = self.target
        return predicted_activity(target.engine, target.config, target.board, self.prediction)

    def faults(self, counters: Mapping[str, int]) -> tuple[str, ...]:
        """Return the faults that ended the kernel; see `sim.run.adapter.EngineAdapter.faults`."""
        return self.target.adapter.faults(self.target.config, counters)

    def simulate(
        self,
        launch: Launch,
        *,
        directory: Path,
        memory_mode: str,
        seed: int,
        waves: Path | None = None,
        traces: Mapping[str, Path] | None = None,
        signals: Path | None = None,
    ) -> Simulated:
        """Simulate a launch of the job; see `run` and `sim.run.launch.simulate`."""
        from sim.run.launch import simulate

        return simulate(
            simulated_design(
                self.target.engine,
                self.target.config,
                self.target.board,
                control_only=self.control_only,
                packaged=waves is not None,  # of models there is nothing to be seen
            ),
            launch,
            directory=directory / "simulation",
            expected_cycles=self.prediction.cycles_total,
            memory_mode=memory_mode,
            seed=seed,
            waves=waves,
            traces=traces,
            signals=signals,
        )

    def judge(
        self,
        golden: Tensors | None,
        buffers: Buffers,
        measured: Measured | None,
        *,
        further: tuple[str, ...] = (),
    ) -> RunResult:
        """Compare a launch's output bytes with the golden model's integers, and make the report.

        ``further`` are mismatches found elsewhere.  Without ``measured`` there is no report, without
        ``golden`` there are no outputs.  A launch that a memory's error ended has neither.
        """
        from sim.run.accounting import build_report

        target, job = self.target, self.job
        adapter, config = target.adapter, target.config
        faults = self.faults(measured.counters) if measured else ()
        if faults and STATUS in target.table.counters:
            return RunResult(outputs={}, integers={}, golden=golden or {}, job=job, mismatches=faults)
        integers = {} if golden is None else adapter.outputs(job, config, buffers)
        unverified = () if golden is None else adapter.unverified(job, config, buffers)
        mismatches = faults + unverified + compare(integers, golden or {}) + further
        report = None
        if measured:
            report = build_report(
                engine=target.engine.name,
                board=target.board.name,
                clock_mhz=target.board.clock_mhz,
                config=config_dict(config),
                config_hash=config_hash(target.engine.name, config, target.board),
                tool_versions={name: version(name) for name in _PACKAGES} | dict(measured.tool_versions),
                counters=measured.counters,
                job_cycles=adapter.job_cycles(job, config, buffers),
                simulation=measured.simulation,
                hardware=measured.hardware,
                prediction=self.prediction,
                activity=self.activity,
                memory=measured.memory,
                bit_exact=None if golden is None else not mismatches,
                errors={} if golden is None else adapter.errors(job, config, integers),
                label=adapter.label(job, config),
            )
        return RunResult(
            outputs={} if golden is None else adapter.results(job, config, integers),
            integers=integers,
            golden=golden or {},
            job=job,
            mismatches=mismatches,
            measured=report,
        )


def measured(simulated: Simulated, prepared: Prepared, *, memory_mode: str, seed: int) -> Measured:
    """Return the counters and statistics of a simulated call.

    Raises `SimulationError` when a memory's error ended the call.
    """
    from sim.build.simulator import SimulationError

    answer, target = simulated.answer, prepared.target
    (call,) = answer.calls
    if STATUS in target.table.counters and (faults := prepared.faults(call.counters)):
        raise SimulationError(" ".join(faults))
    # Without the cells that compute nothing saturates; a figure of 0 would be wrong.
    kept = [name for name in call.counters if not (prepared.control_only and name.startswith(SATURATED))]
    return Measured(
        counters={name: call.counters[name] for name in kept},
        memory=channel_traffic(target.table.ports, target.placement, target.board, answer.memories),
        simulation={
            "memory_mode": memory_mode,
            "seed": seed,
            "cycles_start_to_done": call.cycles_start_to_done,
            "cycles_simulated": answer.cycles_simulated,
            "run_seconds": answer.simulation_seconds,
            "build_seconds": simulated.built.seconds,
            "build_cached": simulated.built.cached,
            "control_only": prepared.control_only,
        },
        tool_versions=simulated.built.versions,
    )


def compare(integers: Tensors, golden: Tensors) -> tuple[str, ...]:
    """Return a line with the first difference of each tensor that differs from the golden model."""
    lines = []
    for name in sorted({*integers, *golden}):
        ours, theirs = integers.get(name), golden.get(name)
        if ours is None or theirs is None:
            lines.append(f"{name} is missing from the {'outputs' if ours is None else 'golden model'}")
        elif (ours.dtype, ours.shape) != (theirs.dtype, theirs.shape):
            lines.append(
                f"{name} is {ours.dtype} {ours.shape}, the golden model's {theirs.dtype} {theirs.shape}"
            )
        else:
            different = np.argwhere(ours != theirs)
            if len(different):
                first = tuple(int(i) for i in different[0])
                count = f"{len(different):,} of {ours.size:,} elements"
                values = f"{ours[first]}, the golden model's {theirs[first]}"
                lines.append(f"{name} differs in {count}, first at {list(first)}: {values}")
    return tuple(lines)
