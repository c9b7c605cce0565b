"""The report of one run: every figure with its unit in its name, checked against the others, saved as JSON.

The dataclasses here and in `sim.report.sections` are the format; `sim.report.schema` makes the JSON schema
and the glossary from them.  A report in which one figure contradicts another cannot be constructed or loaded.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from hw.errors import InputError
from sim.host.files import write_text
from sim.host.paths import check_readable
from sim.report.sections import (
    STRICT,
    Cycles,
    EnergySection,
    Hardware,
    Name,
    PredictionSection,
    Ratio,
    Roofline,
    Simulation,
    Source,
    TrafficSection,
    WorkSection,
    doc,
    require,
)

FORMAT: Literal["loomwork-report-1"] = "loomwork-report-1"

#: Most cycles from start bit to interrupt, seen by the testbench, beyond the kernel's from start to done.
REGISTER_CYCLES = 64


def derived(figures: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the figures that follow from other ``figures``, both by section of the report."""
    cycles, work, traffic = figures["cycles"], figures["work"], figures["traffic"]
    total, useful_macs = cycles["cycles_total"], work["useful_macs"]
    useful_bytes, compulsory_bytes = traffic["useful_bytes"], traffic["compulsory_bytes"]
    roofline, simulation = figures["roofline"], figures["simulation"]
    counted = traffic["useful_over_compulsory_ratio"] is not None
    compute_bound_cycles = roofline["compute_bound_cycles"]
    slots, per_cycle = total * work["mac_slots_per_cycle"], useful_macs / total
    memory_bound_cycles = math.ceil(compulsory_bytes / roofline["memory_ceiling_bytes_per_cycle"])
    bound_cycles = max(compute_bound_cycles, memory_bound_cycles)
    return {
        "cycles": {"kernel_microseconds": total / cycles["clock_mhz"]},
        "work": {
            "mac_utilization_ratio": useful_macs / slots if slots else 0.0,
            "macs_per_cycle": per_cycle,
            "macs_per_second": per_cycle * cycles["clock_mhz"] * 1e6,
        },
        "traffic": {"useful_over_compulsory_ratio": useful_bytes / compulsory_bytes if counted else None},
        "roofline": {
            "memory_bound_cycles": memory_bound_cycles,
            "bound_cycles": bound_cycles,
            "bound_by": "compute" if compute_bound_cycles >= memory_bound_cycles else "memory",
            "cycles_over_bound_ratio": total / bound_cycles,
            "intensity_macs_per_byte": useful_macs / useful_bytes if useful_bytes else 0.0,
            "compulsory_intensity_macs_per_byte": useful_macs / compulsory_bytes,
        },
        "prediction": {
            "predicted_cycles_error_ratio": (figures["prediction"]["predicted_cycles"] - total) / total
        },
        "simulation": {
            "simulated_cycles_per_second": simulation["cycles_simulated"] / simulation["run_seconds"]
        }
        if simulation is not None
        else {},
    }


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Report:
    """The figures of one run; made by `sim.run.accounting.build_report`.

    Consistent by construction: parts add up to totals, and quotients equal their numerator over denominator.
    """

    format: Annotated[Literal["loomwork-report-1"], doc("Format and its version.")]
    label: Annotated[str, doc("The user's name for the run; may be empty.")]
    engine: Annotated[Name, doc("Engine that was run.")]
    board: Annotated[Name, doc("Board it was generated for.")]
    config: Annotated[dict[str, Any], doc("The engine's configuration, every key.")]
    config_hash: Annotated[
        str, Field(pattern="^[0-9a-f]{12}$"), doc("Hash of engine, configuration and board.")
    ]
    tool_versions: Annotated[dict[str, str], doc("Versions of the tools that made the figures.")]
    git_revision: Annotated[str | None, doc("Revision of the Loomwork checkout, if it is one.")]
    bit_exact: Annotated[
        bool | None,
        doc("Whether every output bit equals the golden model's; null where no data were computed."),
    ]
    errors: Annotated[
        dict[str, Ratio],
        doc(
            "Distance of the outputs from float64, by measure, and shares of inputs, logits and results that "
            "saturated, if any."
        ),
    ]
    details: Annotated[dict[str, float | int], doc("Further figures of the engine.")]
    cycles: Annotated[Cycles, doc("Where the clock cycles went.")]
    work: Annotated[WorkSection, doc("What was computed.")]
    traffic: Annotated[TrafficSection, doc("Bytes moved.")]
    roofline: Annotated[Roofline, doc("The least cycles the work could take.")]
    prediction: Annotated[PredictionSection, doc("What the analytic model said.")]
    energy: Annotated[
        EnergySection | None,
        doc("Energy of the activity that was counted; null where bytes are unknown, and in a testbench."),
    ] = None
    measured_on: Annotated[
        Source,
        doc(
            "What ran: the gates in simulation, the package's testbench, whose memory has no latency, or "
            "hardware."
        ),
    ] = "simulation"
    simulation: Annotated[
        Simulation | None, doc("How the figures were obtained in simulation; null elsewhere.")
    ]
    hardware: Annotated[
        Hardware | None,
        doc("How the figures were obtained on hardware or in a testbench; null in simulation."),
    ] = None

    def __post_init__(self) -> None:
        simulated = self.measured_on == "simulation"
        for source, given in (("simulation", simulated), ("hardware", not simulated)):
            if (getattr(self, source) is not None) != given:
                raise InputError(
                    source, getattr(self, source), f"given as measured_on says: {self.measured_on}"
                )
        if self.measured_on == "testbench" and self.energy is not None:
            raise InputError("energy", self.energy, "null in a testbench, whose memory has no latency")
        control_only = self.simulation is not None and self.simulation.control_only
        if (self.bit_exact is None) != control_only or (control_only and self.errors):
            legal = f"{'null, without errors,' if control_only else 'given'} as control_only says"
            raise InputError("bit_exact", self.bit_exact, legal)
        if self.simulation is not None:
            counted, seen = self.cycles.cycles_total, self.simulation.cycles_start_to_done
            if not counted <= seen <= counted + REGISTER_CYCLES:
                legal = f"from {counted}, what the kernel counted, to {counted + REGISTER_CYCLES}"
                raise InputError("cycles_start_to_done", seen, legal)
        if self.energy is not None:
            self.energy.check_watts(self.cycles.kernel_microseconds)
        for section, figures in derived(asdict(self)).items():
            for field, legal in figures.items():
                require(field, getattr(getattr(self, section), field), legal, "what the counters give")

    @property
    def simulated(self) -> Simulation:
        """The simulation of a run that was one."""
        if self.simulation is None:
            raise InputError("measured_on", self.measured_on, "simulation where its figures are asked for")
        return self.simulation


#: Checks, reads and writes reports.
ADAPTER: TypeAdapter[Report] = TypeAdapter(Report)


def refusal(error: ValidationError) -> str:
    """Return the first error of a report in one line, with its place."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(step) for step in first["loc"]) or "report"
    return f"{place}: {first['msg'].removeprefix('Value error, ')}"


def save(report: Report, path: Path) -> None:
    """Write ``report`` to ``path`` as JSON, whole or not at all.

    Raises `InputError` when the path cannot be written.
    """
    write_text(path, json.dumps(ADAPTER.dump_python(report, mode="json"), indent=2) + "\n")


def load(path: Path) -> Report:
    """Read a report.

    Raises `InputError` when the file is missing, is not a report of this format, or its figures contradict
    each other.
    """
    check_readable("report file", path)
    text = path.read_bytes()
    try:
        return ADAPTER.validate_json(text)
    except ValidationError as error:
        if b'"loomwork-prediction-1"' in text[:100]:
            legal = f"a report of format {FORMAT}; `loomwork sweep` makes pages of predictions"
            raise InputError("report file", f"{path}, a prediction", legal) from error
        legal = f"a report of format {FORMAT} ({refusal(error)})"
        raise InputError("report file", str(path), legal) from error
