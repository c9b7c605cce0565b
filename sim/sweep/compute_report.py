"""A design's layers as the tables of SCALE-Sim, to compare with its own.

Files and columns are those of SCALE-Sim 3: ``COMPUTE_REPORT.csv`` and ``TIME_REPORT.csv``, a line a layer.
"""

from collections.abc import Iterator
from pathlib import Path

from hw.errors import InputError, check_one_of
from sim.sweep.points import FIDELITIES, Evaluation, PointResult
from sim.sweep.results import SweepResults

_COMPUTE = (
    "LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles, Overall Util %, "
    "Mapping Efficiency %, Compute Util %,"
)
_TIME = "LayerID, Time (us),"


def compute_report(results: SweepResults, number: int | None, directory: Path) -> dict[Path, str]:
    """Return the tables of a point by their paths; without a number, of the best by the first objective.

    ``LayerID`` is the layer's number in its file, from 0.  Both totals are from start to done.  Utilization
    is the share of useful multiply-accumulates in the slots of all cycles; mapping efficiency of busy cycles;
    compute utilization of cycles without a stall.

    Raises `InputError` for a sweep without a file of layers, a point without figures, and an engine without
    multipliers.
    """
    if not results.spec.read:
        raise InputError("--scale-sim", str(directory), "left out: the sweep read no file of layers")
    known = [point.number for point in results.points if point.figures]
    if number is None:
        number = min(results.front, key=results.objectives).number
    check_one_of("--point", number, known)
    point = next(point for point in results.points if point.number == number)
    compute, times = [_COMPUTE], [_TIME]
    for layer, outcome, weight in _layers(results, point):
        figures, stalled, busy = outcome.figures, _stalled(outcome), _busy(outcome)
        total, useful = figures["cycles"], figures["useful_macs"]
        if not figures["mac_slots"]:
            raise InputError("--scale-sim", str(directory), f"left out: {outcome.engine} has no multipliers")
        slots = figures["mac_slots"] / total
        shares = [100 * useful / (slots * cycles) for cycles in (total, busy or total, total - stalled)]
        numbers = [weight * total, weight * total, weight * stalled]
        line = ", ".join([f"{layer}", *(f"{value:.0f}" for value in numbers), *map(str, shares)])
        compute.append(f"{line},")
        times.append(f"{layer}, {weight * figures['microseconds']},")
    files = {"COMPUTE_REPORT.csv": compute, "TIME_REPORT.csv": times}
    return {directory / name: "\n".join(lines) + "\n" for name, lines in files.items()}


def _layers(results: SweepResults, point: PointResult) -> Iterator[tuple[int, Evaluation, float]]:
    """Yield each layer's number, its evaluation by the dearest fidelity, and how often it is done."""
    for engine, read in results.spec.read.items():
        for workload, number in read.numbers.items():
            found = [
                outcome
                for outcome in point.outcomes
                if (outcome.engine, outcome.workload) == (engine, workload) and not outcome.failure
            ]
            best = max(found, key=lambda outcome: FIDELITIES.index(outcome.fidelity))
            yield number, best, results.spec.workloads[workload].weight


def _stalled(outcome: Evaluation) -> float:
    cycles = outcome.document["cycles"]
    if "cycles_stall" in cycles:
        return float(sum(cycles["cycles_stall"].values()))
    return float(sum(count for name, count in cycles.items() if name.startswith("cycles_stall_")))


def _busy(outcome: Evaluation) -> float:
    return float(outcome.document["cycles"].get("cycles_busy", 0))
