"""The figures of reports as rows of text, one cell a run, for tables on the page and the terminal."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from sim.host.plain import plain
from sim.report.report import Report
from sim.report.schema import glossary
from sim.report.sections import Source
from sim.report.text import MISSING, percent, scaled, signed_percent, times, whole

#: Cell of a run whose RTL differs from its golden model.
FAILED = "NO"

#: Dotted name of a figure, or the start of several, and how it is printed.
Row = tuple[str, str, Callable[[Any], str]]


def _microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:,.2f}"


def _microjoules(picojoules: float) -> str:
    return f"{1e-6 * picojoules:,.2f}"


def _watts(value: float) -> str:
    return f"{value:.2f}"


def _number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"


def _scientific(value: float) -> str:
    return f"{value:.2e}"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _exact(value: bool | None) -> str:
    return "not computed" if value is None else "yes" if value else FAILED


#: Words for each source of figures, behind "measured".
MEASURED: Mapping[Source, str] = {
    "simulation": "in simulation",
    "testbench": "in a testbench, memory without latency",
    "hardware": "on hardware",
}


def _measured(source: Source) -> str:
    return MEASURED[source]


def _known(show: Callable[[Any], str]) -> Callable[[Any], str]:
    """Print a figure that only simulations have, or only hardware."""
    return lambda value: MISSING if value is None else show(value)


#: Longest text of a configuration's value that is shown whole.
_LONGEST = 100


def _value(value: Any) -> str:
    text = json.dumps(value)
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2]} … ({len(text):,} characters)"


#: Texts around figures of a prediction that is a lower bound.
_BOUNDED = {
    "prediction.predicted_cycles": "at least {}",
    **{
        f"prediction.predicted_{error}": "{}, of a lower bound"
        for error in ("cycles_error_ratio", "read_error_bytes", "write_error_bytes")
    },
}


#: Every figure of a run, under its heading.
TABLE: Mapping[str, tuple[Row, ...]] = {
    "Correctness": (
        ("bit exact", "bit_exact", _exact),
        ("measured", "measured_on", _measured),
        ("{}", "errors.*", _scientific),
    ),
    "Cycles": (
        ("total", "cycles.cycles_total", whole),
        ("time, µs", "cycles.kernel_microseconds", lambda value: f"{value:,.2f}"),
        ("busy", "cycles.cycles_busy", whole),
        ("stall: {}", "cycles.cycles_stall.*", whole),
        ("idle", "cycles.cycles_idle", whole),
        ("job {}", "cycles.job_cycles.*", whole),
    ),
    "Multipliers": (
        ("useful MACs", "work.useful_macs", whole),
        ("MAC slots a cycle", "work.mac_slots_per_cycle", whole),
        ("utilization", "work.mac_utilization_ratio", percent),
        ("MACs a second", "work.macs_per_second", scaled),
    ),
    "Bytes": (
        ("compulsory", "traffic.compulsory_bytes", whole),
        ("moved, useful", "traffic.useful_bytes", whole),
        ("moved, on the bus", "traffic.bus_bytes", _known(whole)),
        ("useful over compulsory", "traffic.useful_over_compulsory_ratio", _known(times)),
    ),
    "Energy": (
        ("total, µJ", "energy.energy_total_picojoules", _known(_microjoules)),
        ("low end, µJ", "energy.energy_low_picojoules", _known(_microjoules)),
        ("high end, µJ", "energy.energy_high_picojoules", _known(_microjoules)),
        ("{}, µJ", "energy.source_picojoules.*", _microjoules),
        ("average power, W", "energy.average_watts", _known(_watts)),
        ("its low end, W", "energy.average_low_watts", _known(_watts)),
        ("its high end, W", "energy.average_high_watts", _known(_watts)),
    ),
    "Roofline": (
        ("compute bound, cycles", "roofline.compute_bound_cycles", whole),
        ("memory bound, cycles", "roofline.memory_bound_cycles", whole),
        ("bound by", "roofline.bound_by", str),
        ("cycles over bound", "roofline.cycles_over_bound_ratio", times),
    ),
    "Prediction": (
        ("cycles", "prediction.predicted_cycles", whole),
        ("error of cycles", "prediction.predicted_cycles_error_ratio", signed_percent),
        ("a lower bound: values of inputs add to it", "prediction.predicted_lower_bound", _yes),
        ("error of bytes read", "prediction.predicted_read_error_bytes", whole),
        ("error of bytes written", "prediction.predicted_write_error_bytes", whole),
        ("job {}", "prediction.predicted_job_cycles.*", whole),
    ),
    "Simulation": (
        ("memory", "simulation.memory_mode", _known(str)),
        ("seed", "simulation.seed", _known(str)),
        ("cycles, start to interrupt", "simulation.cycles_start_to_done", _known(whole)),
        ("cycles simulated", "simulation.cycles_simulated", _known(whole)),
        ("cycles a second", "simulation.simulated_cycles_per_second", _known(scaled)),
        ("run, s", "simulation.run_seconds", _known(lambda value: f"{value:.2f}")),
        ("build, s", "simulation.build_seconds", _known(lambda value: f"{value:.2f}")),
        ("build from cache", "simulation.build_cached", _known(_yes)),
        ("control only", "simulation.control_only", _known(_yes)),
    ),
    "Hardware": (
        ("device", "hardware.device", _known(str)),
        ("driver", "hardware.driver", _known(str)),
        ("host's wall clock, µs", "hardware.host_wall_seconds", _known(_microseconds)),
    ),
    "Workload and engine": (("{}", "details.*", _number),),
}

#: Engine, board, configuration and tools of a run.
ORIGIN: tuple[Row, ...] = (
    ("engine", "engine", str),
    ("board", "board", str),
    ("clock, MHz", "cycles.clock_mhz", _number),
    ("configuration hash", "config_hash", str),
    ("{}", "config.*", _value),
    ("Loomwork revision", "git_revision", lambda value: value or "not a checkout"),
    ("{}", "tool_versions.*", str),
)


#: The figures that say how a run went, for a terminal.
SUMMARY: tuple[Row, ...] = (
    ("equals the golden model", "bit_exact", _exact),
    ("measured", "measured_on", _measured),
    ("{}", "errors.*", _scientific),
    ("cycles, start to done", "cycles.cycles_total", whole),
    ("time at the planned clock, µs", "cycles.kernel_microseconds", lambda value: f"{value:,.2f}"),
    ("multiplier slots useful", "work.mac_utilization_ratio", percent),
    ("cycles over the roofline bound", "roofline.cycles_over_bound_ratio", times),
    ("bytes moved", "traffic.useful_bytes", whole),
    ("bytes moved over compulsory", "traffic.useful_over_compulsory_ratio", _known(times)),
    ("error of the predicted bytes read", "prediction.predicted_read_error_bytes", whole),
    ("error of the predicted bytes written", "prediction.predicted_write_error_bytes", whole),
    ("cycles, predicted", "prediction.predicted_cycles", whole),
    ("error of the predicted cycles", "prediction.predicted_cycles_error_ratio", signed_percent),
    ("energy, µJ", "energy.energy_total_picojoules", _known(_microjoules)),
    ("average power, W", "energy.average_watts", _known(_watts)),
    ("simulated cycles a second", "simulation.simulated_cycles_per_second", _known(scaled)),
    ("host's wall clock from call to end, µs", "hardware.host_wall_seconds", _known(_microseconds)),
    ("cycles of {}", "cycles.job_cycles.*", whole),
)


@dataclass(frozen=True, kw_only=True)
class Line:
    """A line of a table: label, meaning, and a cell for each run."""

    label: str
    meaning: str
    cells: tuple[str, ...]


def lines(reports: Sequence[Report], rows: Sequence[Row]) -> Iterator[Line]:
    """Return the rows with their cells; a row for each key when a figure is a table by name.

    A row without a figure in any run is left out, such as multiplications of engines without multipliers.
    """
    meanings = glossary()
    for label, path, show in rows:
        group, _, star = path.rpartition(".")
        if star != "*":
            cells = tuple(
                _BOUNDED.get(path * report.prediction.predicted_lower_bound, "{}").format(
                    show(_at(report, path))
                )
                if multiplies(report) or group != "work"
                else MISSING
                for report in reports
            )
            if set(cells) != {MISSING}:
                yield Line(label=label, meaning=meanings[path], cells=cells)
            continue
        tables = [_at(report, group) or {} for report in reports]
        for key in dict.fromkeys(key for table in tables for key in table):
            cells = tuple(show(table[key]) if key in table else MISSING for table in tables)
            yield Line(label=label.format(key.replace("_", " ")), meaning=meanings[group], cells=cells)


def multiplies(report: Report) -> bool:
    """Tell whether the engine of a run has multipliers to fill."""
    return report.work.mac_slots_per_cycle > 0


def summary(reports: Sequence[Report]) -> Table:
    """Return a table with a row for each figure of `SUMMARY` and a column for each run."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("")
    for label in labels(reports):
        table.add_column(Text(plain(label)), justify="right")
    for line in lines(reports, SUMMARY):
        cells = (Text(cell, style="bold red" if cell == FAILED else "") for cell in line.cells)
        table.add_row(Text(line.label), *cells)
    return table


def _at(report: Report, path: str) -> Any:
    part: Any = report
    for step in path.split("."):
        part = getattr(part, step, None)
    return part


def labels(reports: Sequence[Report]) -> list[str]:
    """Name every run, each differently: its own label, or its engine and board, numbered when it recurs."""
    names = [report.label or f"{report.engine} on {report.board}" for report in reports]
    unique: list[str] = []
    for name in names:
        if names.count(name) == 1:
            unique.append(name)
            continue
        number = 1
        while (numbered := f"{name} #{number}") in unique or numbered in names:
            number += 1
        unique.append(numbered)
    return unique


def named_by_file(reports: Sequence[Report], files: Sequence[Path]) -> list[Report]:
    """Name reports by their files where they have no label, and beside the label where others have it too."""
    own = [report.label for report in reports]
    return [
        report
        if own.count(report.label) == 1 and report.label
        else replace(report, label=f"{report.label} ({file.stem})" if report.label else file.stem)
        for report, file in zip(reports, files, strict=True)
    ]
