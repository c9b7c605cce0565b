"""``loomwork launch``, ``replay`` and ``verify``: files in, files out, around `sim.run.card`."""

import shlex
from collections.abc import Mapping
from pathlib import Path

from sim.cli.simulate import print_result, work_directory
from sim.host.paths import check_directory, check_distinct, check_writable
from sim.report.page import render
from sim.report.report import save
from sim.run.card import replay, verify, write_launch
from sim.run.launch_folder import BOARD, EXPECTED, GOLDEN, MANIFEST, PAGE, REPORT, RESULTS, read_manifest
from sim.run.run import Target, find_adapter


def write(target: Target, board_file: Path, given: Mapping[str, Path], directory: Path, *, seed: int) -> None:
    """Write a launch folder and print the next steps."""
    check_directory("--output", directory)
    manifest = write_launch(target, board_file, given, directory, seed=seed)
    placed = sum(entry.size_bytes for entry in manifest.pointers if entry.given)
    whole = sum(entry.size_bytes for entry in manifest.pointers)
    print(f"{directory}: {placed:,} bytes of input in {whole:,} bytes of buffers")
    print(f"for a {manifest.kernel} of configuration {manifest.config_hash} on {target.board.title}")
    folder = shlex.quote(str(directory))
    bench = f"make -C PACKAGE/tb SIM=icarus LAUNCH={shlex.quote(str(directory.absolute()))}"
    print(f"next: python3 host.py {folder} with the host.py of the package, or {bench} under cocotb")
    print(f"then: loomwork verify {folder}")


def run_replay(directory: Path, *, memory_mode: str, seed: int, waves: bool) -> None:
    """Replay a launch folder and print where its results are; waveforms lie beside it under its name."""
    folder = directory.absolute()
    wave_path = folder.with_name(f"{folder.name}.vcd") if waves else None
    with work_directory(f"replay-{directory.absolute().name}") as work:
        written = replay(directory, work=work, memory_mode=memory_mode, seed=seed, waves=wave_path)
    for path in filter(None, (directory / RESULTS, written)):
        print(path)


def run_verify(directory: Path, *, output_path: Path | None, report_path: Path | None) -> bool:
    """Verify a launch folder, print figures and differences, and return whether it was bit-exact.

    The report is written to ``report_path``, and to the folder with its page.
    """
    kept = [directory / name for name in (MANIFEST, GOLDEN, BOARD, REPORT, PAGE)]
    kept += [
        path
        for folder in ("inputs", "buffers", EXPECTED, RESULTS)
        for path in sorted((directory / folder).glob("*"))
    ]
    written_paths = (("--output", output_path), ("--report", report_path))
    check_distinct(*(("the launch folder's own", path) for path in kept), *written_paths)
    for name, path in written_paths:
        check_writable(name, path)
    result = verify(directory)
    written = []
    if output_path is not None and result.outputs:
        adapter = find_adapter(read_manifest(directory).engine)
        adapter.write_results(output_path, result.outputs, result.golden)
        written.append(output_path)
    if result.measured is not None:
        for path in filter(None, (report_path, directory / REPORT)):
            save(result.measured, path)
            written.append(path)
        render([result.measured], directory / PAGE)
        written.append(directory / PAGE)
    else:
        print("no report: the counters could not be read, contradict each other, or tell of an error")
    print_result(result, written)
    return result.bit_exact
