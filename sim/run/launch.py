"""A launch in the simulator: a design and buffers in, counters and bytes out."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hw.board import Board
from hw.design import Design
from hw.launch import Buffers, Launch
from sim.bench.plan import PROGRESS_FILE, Answer, BenchPlan
from sim.bench.top import TOP, bench_top
from sim.build.control import without_data
from sim.build.simulator import Built, SimulationError, build, run
from sim.host.files import refused
from sim.host.progress import ProgressLine
from sim.memory.config import CONFIG_VARIABLE, model_sources
from sim.run.adapter import FaultyLaunch
from sim.run.layout import linked, place_buffers, register_writes
from sim.run.memories import memory_parameters, ports_by_memory

#: The watchdog ends a kernel after this factor of the predicted cycles, plus these cycles.
_LIMIT_FACTOR, _LIMIT_EXTRA_CYCLES = 16, 200_000
_SHOWN_VIOLATIONS = 5
_MEMORY_CONFIG = "memory.cfg"


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """The results of a simulated launch."""

    built: Built  #: The simulator it ran in.
    answer: Answer  #: Counters, cycles and statistics of the memories.
    buffers: Buffers  #: Bytes of every output buffer, by argument name.
    addresses: Mapping[str, int]  #: Of all buffers, by argument name.
    waves: Path | None  #: The waveform file, when one was asked for.


def build_kernel(design: Design, *, trace: bool = False) -> Built:
    """Build the simulator of a kernel with its memories; see `sim.build.simulator.build`."""
    board = design.board
    behind = ports_by_memory(design.table.ports, board)
    # Kernels that differ only in their header, as by a memory's timing, share a simulator.
    header, gap, text = design.verilog.partition("\n\n")
    gates = "\n" * header.count("\n") + gap + text
    constant = design.constant_ports
    if not trace:  # waveforms show every signal
        gates = without_data(gates, design.top_name, constant)
    bench, visible = bench_top(
        gates,
        design.top_name,
        behind,
        clock_mhz=board.clock_mhz,
        constant=constant,
        signals=[*design.signals.values()],
    )
    sources = {"kernel.v": gates, "bench.sv": bench, **model_sources()}
    return build(sources, top=TOP, visible=visible, trace=trace)


def simulate(
    design: Design,
    launch: Launch,
    *,
    directory: Path,
    expected_cycles: int,
    memory_mode: str = "model",
    seed: int = 0,
    waves: Path | None = None,
    traces: Mapping[str, Path] | None = None,
    signals: Path | None = None,
    memory_board: Board | None = None,
) -> Simulated:
    """Build the simulator unless it is cached, and run a launch in it; see `sim.run.run.run`.

    ``directory`` is emptied first.  After a good run it holds the logs, after a failed one everything; an
    interrupted run removes it.  ``expected_cycles``, of all calls, is for the progress line and the
    watchdog.  ``signals``: file for the design's signals, see `sim.run.signals`.  ``memory_board``: a board
    with other memory timing than the design's own.

    Raises `InputError` when launch, table and board do not match, or a folder cannot be written. Raises
    `ToolError` when the simulator cannot be built, and `SimulationError` when the kernel hangs, breaks a rule
    of AXI or writes outside of its buffers.
    """
    table, board = design.table, memory_board or design.board
    placement = {port.name: port.channel for port in design.ports}
    buffers = place_buffers(launch, table, placement, board)
    faults = FaultyLaunch.of(launch)
    parameters = memory_parameters(
        table.ports,
        placement,
        buffers,
        board,
        mode=memory_mode,
        seed=seed,
        traces=traces or {},
        tampers=faults.tampers,
    )
    behind = ports_by_memory(table.ports, board)
    plan = BenchPlan(
        calls=register_writes(launch, table, buffers),
        counters={register.argument.name: register.offset for register in table.counter_registers},
        buffers=buffers,
        memories=tuple(behind),
        refusals=[
            (refusal.call, memory, ports.index(refusal.port), refusal.write, refusal.skip)
            for refusal in faults.refusals
            for memory, ports in behind.items()
            if refusal.port in ports
        ],
        cycle_limit=_LIMIT_FACTOR * expected_cycles + _LIMIT_EXTRA_CYCLES,
    )
    with refused("directory", directory):
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
    built = build_kernel(design, trace=waves is not None)
    wave_file = None if waves is None else waves.absolute().with_suffix(f".{built.trace}")
    try:
        plan.save(directory)
        (directory / _MEMORY_CONFIG).write_text(parameters)
        for buffer in launch.buffers:
            if buffer.data is not None:
                np.save(directory / f"{buffer.argument}.npy", linked(buffer, buffers))
        with ProgressLine("Simulating") as activity:
            run(
                built,
                module="sim.bench.kernel",
                directory=directory,
                environ={CONFIG_VARIABLE: str((directory / _MEMORY_CONFIG).absolute())},
                arguments=(
                    f"+progress={PROGRESS_FILE}",
                    *((f"+signals={signals.absolute()}",) if signals else ()),
                ),
                waves=wave_file,
                tick=_watch(directory / PROGRESS_FILE, activity, expected_cycles),
            )
        answer = Answer.load(directory)
        if answer.violations:
            shown = "; ".join(answer.violations[:_SHOWN_VIOLATIONS])
            more = len(answer.violations) - _SHOWN_VIOLATIONS
            raise SimulationError(f"{shown}{f'; and {more} more' if more > 0 else ''}; see {directory}")
        results = {b.argument: np.load(directory / b.file) for b in buffers if b.output}
    except SimulationError as error:
        if wave_file is not None and wave_file.exists():
            raise SimulationError(f"{error}; waveforms until then: {wave_file}") from error
        raise
    except BaseException:
        shutil.rmtree(directory, ignore_errors=True)
        if wave_file is not None:
            wave_file.unlink(missing_ok=True)
        raise
    for data in directory.glob("*.npy"):
        data.unlink()
    addresses = {buffer.argument: buffer.address for buffer in buffers}
    return Simulated(built=built, answer=answer, buffers=results, addresses=addresses, waves=wave_file)


def _watch(progress: Path, activity: ProgressLine, expected_cycles: int) -> Callable[[], None]:
    """Return a function that shows the simulation's progress."""

    def show() -> None:
        try:
            lines = progress.read_text().split()
        except OSError:
            return
        if lines:
            cycles = int(lines[-1])
            rate = cycles / max(activity.seconds, 1e-3)
            activity.update(f"{cycles:,} of about {expected_cycles:,} cycles, {rate:,.0f} a second")

    return show
