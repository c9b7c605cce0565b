"""``loomwork predict``: files in, the prediction of their launch out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from sim.host.console import print_table
from sim.host.paths import check_distinct, check_writable
from sim.report.forecast import Forecast, save
from sim.report.text import percent, times, whole
from sim.run.forecast import forecast
from sim.run.run import Target


def run_predict(target: Target, files: Mapping[str, Path], report_path: Path | None, *, seed: int) -> None:
    """Predict the launch of a user's files, print its figures, and write them where a path is given.

    Raises `InputError` as `sim.cli.simulate.simulate` does.
    """
    adapter = target.adapter
    check_distinct(*((f"--{name}", path) for name, path in files.items()), ("--report", report_path))
    check_writable("--report", report_path)
    found = forecast(target, adapter.read_files(files, target.config, seed=seed))
    print_table(found.label or f"{found.engine} on {found.board}", ("predicted", ""), _rows(found))
    if report_path is not None:
        save(found, report_path)
        print(report_path)


def _rows(found: Forecast) -> Iterator[tuple[str, str]]:
    """Yield the figures of a forecast for a terminal."""
    cycles, work, traffic, roofline = found.cycles, found.work, found.traffic, found.roofline
    least, most = ("at least ", "at most ") if found.predicted_lower_bound else ("", "")
    yield "cycles, start to done", f"{least}{whole(cycles.cycles_total)}"
    parts = _parts(found)
    for part, count in parts.items():
        yield f"of them {part}", whole(count)
    for cause, count in cycles.cycles_stall.items():
        if count:
            yield f"of them stalled: {cause.replace('_', ' ')}", whole(count)
    yield f"time at {cycles.clock_mhz:g} MHz, µs", f"{least}{cycles.kernel_microseconds:,.2f}"
    yield f"{found.rate.unit} a second", f"{most}{found.rate.items_per_second:,.1f}"
    if parts:
        seconds = (cycles.cycles_total - sum(parts.values())) / (cycles.clock_mhz * 1e6)
        yield (
            f"{found.rate.unit} a second, without {' and '.join(parts)}",
            f"{found.rate.items / seconds:,.1f}",
        )
    energy = found.energy
    ends = [1e-6 * end for end in (energy.energy_low_picojoules, energy.energy_high_picojoules)]
    yield "energy, µJ", f"{least}{1e-6 * energy.energy_total_picojoules:,.2f}"
    yield "range of the energy, µJ", f"{ends[0]:,.2f} to {ends[1]:,.2f}"
    each = found.rate.microjoules_per_item
    yield (
        f"energy over {found.rate.unit}, µJ each",
        least + (f"{each:.4g}" if each < 1000 else f"{each:,.0f}"),
    )
    yield "average power, W", f"{energy.average_watts:.2f}"
    yield "range of the power, W", f"{energy.average_low_watts:.2f} to {energy.average_high_watts:.2f}"
    for source, picojoules in energy.source_picojoules.items():
        if picojoules:
            yield f"energy: {source.replace('_', ' ')}, µJ", f"{1e-6 * picojoules:,.2f}"
    if work.mac_slots_per_cycle:
        yield "multiplier slots useful", f"{most}{percent(work.mac_utilization_ratio)}"
    binds = {"compute": "", "memory": ""} | {roofline.bound_by: ", binds"}
    yield f"compute bound, cycles{binds['compute']}", whole(roofline.compute_bound_cycles)
    yield f"memory bound, cycles{binds['memory']}", whole(roofline.memory_bound_cycles)
    yield "cycles over the roofline bound", f"{least}{times(roofline.cycles_over_bound_ratio)}"
    for way, streams in (("read", traffic.read_bytes), ("written", traffic.write_bytes)):
        for stream, count in streams.items():
            if count:
                yield f"bytes {way}: {stream}", whole(count)
    yield "bytes moved", f"{least}{whole(traffic.useful_bytes)}"
    yield "bytes moved over compulsory", f"{least}{times(traffic.useful_over_compulsory_ratio)}"
    for name, count in cycles.job_cycles.items():
        yield f"cycles of {name}", whole(count)


def _parts(found: Forecast) -> dict[str, int]:
    """Return the cycles of a launch in which no item is worked on, where an engine states them."""
    counts = {part: int(found.details.get(f"{part}_cycles", 0)) for part in ("initialization", "end")}
    return {part: count for part, count in counts.items() if count}
