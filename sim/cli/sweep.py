"""``loomwork sweep``: a file in, a database out, and the front of designs."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from hw.errors import InputError

#: Share of the free memory that workers may take.
_FILL = 0.8


def sweep(
    spec: Annotated[Path, typer.Argument(help="What is swept, .yaml; see docs/sweep.md.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Database to write, or to go on with [the spec's name, .db]."),
    ] = None,
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
    from sim.sweep.spec import read_spec
    from sim.sweep.sweep import run_sweep
    from sim.sweep.table import print_results

    if address and executor != "ray":
        raise InputError("--address", address, "left out without --executor ray")
    asked = read_spec(spec)
    database = output or Path(spec.with_suffix(".db").name)
    check_distinct(("SPEC", spec), ("--output", database))
    check_writable("--output", database)
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
