"""One launch of an engine on a board: tensors in, simulated, compared bit for bit, reported."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hw.board import Board
from hw.config import check_fits, config_dict, config_hash
from hw.errors import InputError
from hw.registry import find_engine, simulation_side
from sim.build.design import kernel_design
from sim.host.background import in_background
from sim.run.adapter import EngineAdapter, Tensor
from sim.run.memories import MODES, channel_traffic
from sim.run.result import RunResult

if TYPE_CHECKING:
    from sim.run.launch import Simulated

BACKENDS = ("rtl", "golden")


def find_adapter(engine_name: str) -> EngineAdapter:
    """Give the simulation side of an engine."""
    module = importlib.import_module(f"{simulation_side(engine_name)}.adapter")
    adapter: EngineAdapter = module.ADAPTER
    return adapter


def run(
    engine_name: str,
    config: Any,
    board: Board,
    tensors: Mapping[str, Tensor],
    *,
    directory: Path,
    seed: int = 0,
    memory_mode: str = "model",
    waves: Path | None = None,
    traces: Mapping[str, Path] | None = None,
    backend: str = "rtl",
) -> RunResult:
    """Run one launch of an engine, on tensors as a user gives them, and compare it with the golden model.

    Parameters
    ----------
    directory
        Gets a folder ``simulation`` with the simulator's log, and all that speaks of a failed run.
    memory_mode, seed
        ``"model"`` (calibrated), ``"fast"`` (fixed latency and bandwidth) or ``"jitter"`` (waits by seed).
    waves
        Waveform file to write, its suffix replaced by ``.fst`` or ``.vcd``, whichever this machine can write.
    traces
        Files for every transfer at the ports of a memory, by the memory's name; see `sim.memory.trace`. That
        of the host's memory is compared with what the host should have seen.
    backend
        ``"rtl"``, or ``"golden"``: the same launch on the golden model alone.

    Raises `InputError` when a value is illegal, the engine does not fit the board, or a folder cannot be
    written, `ToolError` when the simulator cannot be built, and `SimulationError` when the kernel hangs,
    breaks a rule of AXI or writes where it must not.
    """
    for name, value, legal in (("memory_mode", memory_mode, MODES), ("backend", backend, BACKENDS)):
        if value not in legal:
            raise InputError(name, value, "one of " + ", ".join(legal))
    engine, adapter = find_engine(engine_name), find_adapter(engine_name)
    check_fits(engine, config, board)
    job = adapter.job(tensors, config)
    launch = adapter.launch(job, config, board)
    if backend == "golden":
        golden = adapter.golden(job, config)
        return RunResult(
            outputs=adapter.results(job, config, golden), integers=golden, golden=golden, job=job
        )

    from sim.run.launch import simulate

    prediction = engine.predict(adapter.workload(job, config), config, board)
    expected = in_background(lambda: adapter.golden(job, config))
    table, placement = engine.arguments(config, board), engine.placement(config, board)
    simulated = simulate(
        kernel_design(engine, config, board),
        table,
        placement,
        board,
        launch,
        directory=directory / "simulation",
        expected_cycles=prediction.cycles_total,
        memory_mode=memory_mode,
        seed=seed,
        waves=waves,
        traces=traces,
    )
    integers = adapter.outputs(job, config, simulated.buffers)
    golden = expected.result()
    answer = simulated.answer
    (call,) = answer.calls
    mismatches = adapter.faults(config, call.counters) + compare(integers, golden)
    if board.host is not None and traces and board.host.name in traces:
        mismatches += adapter.trace_mismatches(job, config, traces[board.host.name], simulated.addresses)

    from sim.run.accounting import build_report

    report = build_report(
        engine=engine.name,
        board=board.name,
        clock_mhz=board.clock_mhz,
        config=config_dict(config),
        config_hash=config_hash(engine.name, config, board),
        tool_versions=_versions(simulated),
        counters=call.counters,
        job_cycles=adapter.job_cycles(job, config, simulated.buffers),
        simulation={
            "memory_mode": memory_mode,
            "seed": seed,
            "cycles_start_to_done": call.cycles_start_to_done,
            "cycles_simulated": answer.cycles_simulated,
            "run_seconds": answer.simulation_seconds,
            "build_seconds": simulated.built.seconds,
            "build_cached": simulated.built.cached,
        },
        prediction=prediction,
        memory=channel_traffic(table.ports, placement, board, answer.memories),
        bit_exact=not mismatches,
        errors=adapter.errors(job, config, integers),
        label=adapter.label(job, config),
    )
    return RunResult(
        outputs=adapter.results(job, config, integers),
        integers=integers,
        golden=golden,
        job=job,
        mismatches=mismatches,
        measured=report,
        waves=simulated.waves,
        traces=traces or {},
        addresses=simulated.addresses,
    )


def compare(integers: Mapping[str, Tensor], golden: Mapping[str, Tensor]) -> tuple[str, ...]:
    """Give a line for each tensor that is not the golden model's bit for bit, with its first difference."""
    lines = []
    for name in sorted({*integers, *golden}):
        ours, theirs = integers.get(name), golden.get(name)
        if ours is None or theirs is None:
            lines.append(f"{name} is missing from the {'simulation' if ours is None else 'golden model'}")
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


def _versions(simulated: Simulated) -> dict[str, str]:
    return {name: version(name) for name in ("loomwork", "amaranth", "numpy")} | dict(
        simulated.built.versions
    )
