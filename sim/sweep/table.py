"""The results of a sweep, printed."""

from collections import Counter

from sim.host.console import print_table
from sim.sweep.results import SweepResults, compared, worst_prediction
from sim.sweep.spec import SweepSpec

#: Most designs of the front, and most failures, that are printed.
_SHOWN = 40


def print_read(spec: SweepSpec) -> None:
    """Print what was read from files of other tools, and the layers that no design does."""
    for engine, read in spec.read.items():
        workloads = spec.engines[engine].workloads
        left = sum(layer.macs for layer in read.left_out)
        share = f", {left / read.macs:.2%} of the multiply-accumulates" if read.macs else ""
        count = f"{len(workloads)} layer{'s' * (len(workloads) != 1)} for {engine}"
        print(f"{read.source}: {count}, {len(read.left_out)} left out{share}")
        for note in read.notes:
            print(f"note: {note}")
        if read.left_out:
            rows = [(layer.name, layer.where, f"{layer.macs:,}", layer.reason) for layer in read.left_out]
            print_table("Layers left out", ("layer", "where", "MACs", "why"), rows)


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
    if equal := sum(result.equal_to is not None for result in results.points):
        more += f"; {equal} equal to one of them"
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
        count = sum(1 for result in results.points for _ in compared(result))
        print(
            f"{count} simulations; the worst prediction is of point {worst.number}, {worst.workload}: "
            f"{worst.words}."
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.4g}"
