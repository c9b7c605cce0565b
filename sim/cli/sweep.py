"""``loomwork sweep``: a file in, a database out, and the front of designs."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hw.errors import InputError
from hw.registry import known_engines
from sim.host.options import parse_dimensions

if TYPE_CHECKING:
    from sim.sweep.spec import SweepSpec

#: Share of the free memory that workers may take.
_FILL = 0.8


def sweep(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC|ENGINE", help="What is swept, .yaml (docs/sweep.md); an engine with --workload."
        ),
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Database to write, or to go on with [the spec's name, .db]."),
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option(
            "--workload", help="Layers: .csv of SCALE-Sim, .yaml of ZigZag or AccelForge, .onnx (Stream)."
        ),
    ] = None,
    board: Annotated[
        list[str] | None, typer.Option("--board", help="Board, any number; those of SPEC, or u55c, without.")
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option("--vary", help="FIELD=VALUES of the engine, as rows=8,16; some shapes without."),
    ] = None,
    dim: Annotated[
        list[str] | None,
        typer.Option("--dim", help="NAME=VALUE of a model's open dimension, or of a file's variable."),
    ] = None,
    simulate: Annotated[
        int, typer.Option("--simulate", min=0, help="Designs of the front to simulate, of an ENGINE.")
    ] = 0,
    workers: Annotated[
        int, typer.Option("--workers", min=0, help="Processes at a time; 0 for one a processor.")
    ] = 0,
    memory_gib: Annotated[
        float,
        typer.Option("--memory", min=0, help="GiB that each may take; 0 for its share of what is free."),
    ] = 0,
    executor: Annotated[Literal["local", "ray"], typer.Option("--executor", help="Who works.")] = "local",
    address: Annotated[str, typer.Option("--address", help="Ray cluster to work on, HOST:PORT.")] = "",
    join: Annotated[
        bool, typer.Option("--join", help="Work along with processes that use the same database.")
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Ask again what failed, other than predictions.")
    ] = False,
) -> None:
    """Search the designs of an engine for the few worth building; interrupted, go on where it ended."""
    from sim.host.paths import check_distinct, check_writable
    from sim.host.process import undone_when_terminated
    from sim.host.tree import available_bytes
    from sim.sweep.executor import Executor, LocalExecutor
    from sim.sweep.sweep import run_sweep
    from sim.sweep.table import print_read, print_results

    if address and executor != "ray":
        raise InputError("--address", address, "left out without --executor ray")
    dimensions = parse_dimensions(dim or ())
    if spec in known_engines():
        given: Path | None = None
        database = output or Path(f"{spec}-{workload.stem if workload else ''}.db")
    else:
        given = Path(spec)
        database = output or Path(given.with_suffix(".db").name)
    check_distinct(("SPEC", given), ("--workload", workload), ("--output", database))
    check_writable("--output", database)
    if given is None:
        asked = _of_engine(spec, workload, board or [], vary or [], dimensions, simulate)
    else:
        asked = _of_file(given, workload, board or [], vary or [], dimensions, simulate)
    print_read(asked)
    slots = workers or len(os.sched_getaffinity(0))
    with undone_when_terminated():
        works: Executor
        if executor == "ray":
            from sim.sweep.ray_executor import RayExecutor

            works = RayExecutor(address, slots=workers, memory_bytes=int(memory_gib * 2**30))
        else:
            failed = database.absolute().with_name(f"{database.stem}-failed")
            memory_bytes = int(memory_gib * 2**30) or int(_FILL * available_bytes() / slots)
            works = LocalExecutor(slots, memory_bytes=memory_bytes, directory=failed)
        try:
            results = run_sweep(asked, database, works, join=join, retry=retry)
        except KeyboardInterrupt:
            print(f"\n{database} has the results so far; the same command resumes", file=sys.stderr)
            raise
    print_results(results)
    print(database)


def _of_engine(
    engine: str,
    workload: Path | None,
    boards: list[str],
    vary: list[str],
    dimensions: dict[str, int],
    simulate: int,
) -> SweepSpec:
    """Return the sweep of an engine over the layers of a file."""
    from sim.cli.options import DEFAULT_BOARD
    from sim.sweep.input.spec_file import layers_spec

    if workload is None:
        raise InputError("--workload", None, f"given with the engine {engine}; or name a sweep's .yaml file")
    return layers_spec(
        engine,
        workload,
        boards=boards or [DEFAULT_BOARD],
        vary=vary,
        simulate=simulate,
        variables=dimensions,
    )


def _of_file(
    path: Path,
    workload: Path | None,
    boards: list[str],
    vary: list[str],
    dimensions: dict[str, int],
    simulate: int,
) -> SweepSpec:
    """Return the sweep of a file, on other boards or with other layers where options say so."""
    from sim.sweep.input.spec_file import read_spec

    for option, value in (("--vary", vary), ("--simulate", simulate)):
        if value:
            raise InputError(option, value, f"left out: {path} says it")
    if path.suffix not in (".yaml", ".yml") and not path.exists():
        names = ", ".join(sorted(known_engines()))
        raise InputError("SPEC", str(path), f"a .yaml file, or one of the engines {names}")
    return read_spec(path, dimensions, boards=boards, layers=workload)
