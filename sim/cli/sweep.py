"""``loomwork sweep``: a file in, a database out, and what is worth building."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from hw.errors import InputError
from sim.host.console import print_table
from sim.host.paths import check_distinct, check_writable
from sim.host.process import undone_when_terminated
from sim.sweep.executor import Executor, LocalExecutor
from sim.sweep.results import SweepResults, worst_prediction
from sim.sweep.spec import read_spec
from sim.sweep.sweep import run_sweep

#: Share of the free memory that workers may take.
_FILL = 0.8
#: Most designs of the front that are printed.
_SHOWN = 40


def sweep_command(
    spec_path: Path,
    database: Path,
    *,
    workers: int,
    memory_gib: float,
    executor: str,
    address: str,
    join: bool,
) -> None:
    """Carry out a sweep and print its front; see `sim.sweep.sweep.run_sweep`.

    Raises `InputError` before any work, when a file or an option is wrong, or a cluster cannot be reached.
    """
    if address and executor != "ray":
        raise InputError("--address", address, "left out without --executor ray")
    spec = read_spec(spec_path)
    check_distinct(("SPEC", spec_path), ("--output", database))
    check_writable("--output", database)
    slots = workers or len(os.sched_getaffinity(0))
    with undone_when_terminated():
        works: Executor
        if executor == "ray":
            from sim.sweep.ray_executor import RayExecutor

            works = RayExecutor(address, slots=workers, memory_bytes=int(memory_gib * 2**30))
        else:
            memory_bytes = int(memory_gib * 2**30) or int(_FILL * _free_bytes() / slots)
            works = LocalExecutor(slots, memory_bytes=memory_bytes, directory=runs_directory(database))
        results = run_sweep(spec, database, works, join=join)
    print_results(results)
    print(database)


def runs_directory(database: Path) -> Path:
    """Give where simulations of a sweep that failed leave what speaks of them."""
    return database.absolute().with_name(f"{database.stem}-failed")


def print_results(results: SweepResults) -> None:
    """Print the front of a sweep, why designs were left out, and the worst prediction."""
    spec, front = results.spec, results.front
    names = list(next(iter(results.points)).point.parameters)
    boards = ["board"] if len(spec.boards) > 1 else []
    rows = []
    for result in sorted(front, key=results.objectives)[:_SHOWN]:
        signs = [1 if way == "min" else -1 for way in spec.objectives.values()]
        values = [sign * value for sign, value in zip(signs, results.objectives(result), strict=True)]
        chosen = [str(result.point.parameters[name]) for name in names]
        place = [result.point.board] * len(boards)
        rows.append((f"{result.number}", *place, *chosen, *map(_number, values), result.fidelity))
    more = f", {_SHOWN} shown" if len(front) > _SHOWN else ""
    short = [name for name in spec.scope(dict.fromkeys(names)) if name not in names]
    headers = [next((one for one in short if name.endswith(f".{one}")), name) for name in names]
    columns = ("point", *boards, *headers, *spec.objectives, "known by")
    print_table(f"Front: {len(front)} of {len(results.points):,} points{more}", columns, rows)
    if failures := Counter(result.failure for result in results.points if result.failure):
        title = f"Left out: {failures.total():,} points"
        print_table(title, ("points", "why"), [(f"{n:,}", why) for why, n in failures.most_common(8)])
    failed = [
        (f"{result.number}", outcome.fidelity, outcome.workload, outcome.failure)
        for result in results.points
        for outcome in result.outcomes
        if outcome.failure and outcome.fidelity != "prediction"
    ]
    if failed:
        title = f"Failed: {len(failed):,} simulations and syntheses"
        print_table(title, ("point", "fidelity", "workload", "why"), failed[:_SHOWN])
    if worst := worst_prediction(results):
        print(
            f"{worst.count} simulations; the worst prediction is {worst.error:+.2%}: point {worst.number}, "
            f"{worst.workload}, {worst.predicted:,.0f} cycles predicted, {worst.measured:,.0f} measured."
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.4g}"


def _free_bytes() -> int:
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
