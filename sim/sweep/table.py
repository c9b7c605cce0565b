"""The results of a sweep, printed."""

from collections import Counter

from sim.host.console import print_table
from sim.sweep.results import SweepResults, compared, worst_prediction

#: Most designs of the front, and most failures, that are printed.
_SHOWN = 40


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
        count = sum(1 for result in results.points for _ in compared(result))
        print(
            f"{count} simulations; the worst prediction is of point {worst.number}, {worst.workload}: "
            f"{worst.words}."
        )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 1000 else f"{value:.4g}"
