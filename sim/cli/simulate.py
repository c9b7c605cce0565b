"""``loomwork sim``: files in, files out, around `sim.run.run.run`."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hw.errors import InputError
from sim.host.paths import check_distinct, check_writable
from sim.host.process import undone_when_terminated
from sim.memory.trace import read_trace, write_bus_trace
from sim.run.adapter import SATURATED, EngineAdapter
from sim.run.files import OutputFile
from sim.run.memories import is_host_port
from sim.run.result import RunResult

if TYPE_CHECKING:
    from sim.run.run import Target

_ROOT = Path(__file__).resolve().parents[2]


def simulate(
    target: Target,
    *,
    files: Mapping[str, Path],
    output_path: Path | None,
    report_path: Path | None,
    trace_path: Path | None,
    waves: bool,
    seed: int,
    memory_mode: str,
    backend: str,
    control_only: bool = False,
) -> bool:
    """Run one launch from file to file, print its figures, and return whether it was bit-exact.

    ``files``: the engine's own files by their options, read and written: see `EngineAdapter.input_files` and
    `output_files`. The output file is written even where it differs from the golden model. It holds
    `EngineAdapter.results` and the golden model's integers as ``golden_int``; waveforms lie beside it under
    its name. The bus trace has every access to the host's memory. A control-only simulation writes no output,
    no file of the engine's and no waveforms. See `sim.run.run.run` for the rest.

    Raises `InputError` before any work, when a file cannot be read or written, or the engine cannot use it.
    """
    from sim.run.run import run

    engine, board, config, adapter = target.engine, target.board, target.config, target.adapter
    given, further = _by_direction(adapter, files)
    for name, wanted, what in (
        ("--report", report_path, "cycles"),
        ("--waves", waves, "waveforms"),
        ("--trace", trace_path, "a bus"),
        ("--no-data", control_only, "control"),
    ):
        if wanted and backend == "golden":
            legal = f"left out with --backend golden: only gates have {what}"
            raise InputError(name, wanted if wanted is True else str(wanted), legal)
    own_paths: list[tuple[str, Path | None]] = [(f"--{kind.option}", path) for kind, path in further]
    for name, given_one in (("--output", output_path), *own_paths, ("--waves", waves or None)):
        if control_only and given_one is not None:
            raise InputError(name, str(given_one), "left out with --no-data: nothing is computed")
    for kind, path in further:
        if kind.needs not in given:
            raise InputError(f"--{kind.option}", str(path), f"left out without --{kind.needs}")
    host_ports = [port for port in target.table.ports if is_host_port(port)]
    if trace_path is not None and not host_ports:
        legal = f"left out: the engine {engine.name} has no port to the host's memory"
        raise InputError("--trace", str(trace_path), legal)
    if output_path is None and (waves or backend == "golden"):
        reason = "waveforms lie beside it" if waves else "nothing else comes of the golden backend"
        raise InputError("--output", None, f"given: {reason}")
    written_paths = (
        ("--output", output_path),
        ("--report", report_path),
        ("--trace", trace_path),
        *own_paths,
    )
    check_distinct(*((f"--{name}", path) for name, path in given.items()), *written_paths)
    tensors = adapter.read_files(given, config, seed=seed)
    for name, file in written_paths:
        check_writable(name, file)
    written = []
    with work_directory(f"{engine.name}-{board.name}") as directory:
        result = run(
            engine.name,
            config,
            board,
            tensors,
            directory=directory,
            seed=seed,
            memory_mode=memory_mode,
            waves=output_path.absolute().with_suffix(".vcd") if waves and output_path else None,
            traces={board.host.name: directory / "bus.trace"} if trace_path and board.host else None,
            backend=backend,
            control_only=control_only,
            target=target,
        )
        if trace_path is not None:
            write_bus_trace(trace_path, read_trace(directory / "bus.trace"), host_ports)
            written.append(trace_path)
    if output_path is not None:
        adapter.write_results(output_path, result.outputs, result.golden)
        written.append(output_path)
    for kind, path in further:
        kind.write(path, result.job)
        written.append(path)
    if result.measured is not None and report_path is not None:
        from sim.report.report import save

        save(result.measured, report_path)
        written.append(report_path)
    if result.waves is not None:
        written.append(result.waves)
    print_result(result, written)
    return not result.mismatches


def _by_direction(
    adapter: EngineAdapter, files: Mapping[str, Path]
) -> tuple[dict[str, Path], list[tuple[OutputFile, Path]]]:
    """Part the files of an engine into those to read, by option, and those to write."""
    outputs = {kind.option: kind for kind in adapter.output_files}
    given = {name: path for name, path in files.items() if name not in outputs}
    for name, path in given.items():
        adapter.input_file(name, str(path))
    return given, [(outputs[name], path) for name, path in files.items() if name in outputs]


def print_result(result: RunResult, written: Sequence[Path]) -> None:
    """Print the figures of a run, the files written, and the differences from the golden model."""
    if result.measured is not None:
        from sim.host.console import console
        from sim.report.figures import summary

        console().print(summary([result.measured]))
        if result.measured.bit_exact is None:
            print("control only: cycles and bytes measured, data not computed")
    for path in written:
        print(path)
    if result.measured is not None:
        page = Path("docs") / f"{result.measured.engine}.md"
        where = f"; {page} lists the formats that have room" if (_ROOT / page).exists() else ""
        for name, share in result.measured.errors.items():
            if name.startswith(SATURATED) and share:
                what = name.removeprefix(SATURATED).removesuffix("_ratio")
                print(f"loomwork: warning: {share:.2%} of the {what} saturated{where}", file=sys.stderr)
    for line in result.mismatches:
        print(f"loomwork: {line}", file=sys.stderr)


@contextlib.contextmanager
def work_directory(name: str) -> Iterator[Path]:
    """Return a directory of this process alone; it is removed unless a failed run left files in it."""
    directory = Path("build/run").absolute() / f"{name}-{os.getpid()}"
    try:
        with undone_when_terminated():
            yield directory
    except BaseException:
        if any(path.is_file() for path in directory.rglob("*")):
            raise
        shutil.rmtree(directory, ignore_errors=True)
        raise
    shutil.rmtree(directory, ignore_errors=True)
