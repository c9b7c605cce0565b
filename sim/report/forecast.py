"""The forecast of a launch: its prediction with the board's clock and roofline, in the sections of a report.

Figures have the names that they have in `sim.report.report.Report`; nothing was run.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from hw.errors import InputError
from sim.host.files import write_text
from sim.host.paths import check_readable
from sim.report.report import derived, refusal
from sim.report.sections import (
    STRICT,
    Count,
    Cycles,
    EnergySection,
    Name,
    Positive,
    Ratio,
    Roofline,
    WorkSection,
    doc,
    require,
)

FORECAST: Literal["loomwork-prediction-1"] = "loomwork-prediction-1"


@dataclass(frozen=True, kw_only=True, config=STRICT)
class ForecastTraffic:
    """Predicted bytes, by stream."""

    compulsory_bytes: Annotated[
        Positive,
        doc("Bytes that must cross the memory port whatever the schedule: each input and output once."),
    ]
    read_bytes: Annotated[dict[str, Count], doc("Bytes that the engine reads, by stream.")]
    write_bytes: Annotated[dict[str, Count], doc("Bytes that the engine writes, by stream.")]
    useful_bytes: Annotated[Count, doc("Bytes of all streams.")]
    useful_over_compulsory_ratio: Annotated[Ratio, doc("Useful bytes over compulsory bytes; 1 is the least.")]
    port_channels: Annotated[
        dict[str, Count], doc("Memory channel of each port; the streams are spread over the ports.")
    ]

    def __post_init__(self) -> None:
        moved = sum(self.read_bytes.values()) + sum(self.write_bytes.values())
        require("useful_bytes", self.useful_bytes, moved, "the sum over streams")


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Rate:
    """The rate of an engine that repeats the launch."""

    unit: Annotated[Name, doc("The items: queries, frames, tokens, images, operations, launches ...")]
    items: Annotated[Positive, doc("Items of the launch.")]
    items_per_second: Annotated[Ratio, doc("Items over kernel_microseconds: one launch after the other.")]
    microjoules_per_item: Annotated[Ratio, doc("Energy of the launch over its items.")]


@dataclass(frozen=True, kw_only=True, config=STRICT)
class Forecast:
    """A launch as the analytic model predicts it; made by `sim.run.forecast.forecast`.

    Consistent by construction, as a report is.
    """

    format: Annotated[Literal["loomwork-prediction-1"], doc("Format and its version.")] = FORECAST
    label: Annotated[str, doc("The user's name for the launch; may be empty.")]
    engine: Annotated[Name, doc("Engine of the launch.")]
    board: Annotated[Name, doc("Board it is predicted for.")]
    config: Annotated[dict[str, Any], doc("The engine's configuration, every key.")]
    config_hash: Annotated[
        str, Field(pattern="^[0-9a-f]{12}$"), doc("Hash of engine, configuration and board.")
    ]
    git_revision: Annotated[str | None, doc("Revision of the Loomwork checkout, if it is one.")]
    predicted_lower_bound: Annotated[
        bool, doc("Whether values of the inputs, and not shapes alone, add cycles and bytes: gathering does.")
    ]
    details: Annotated[dict[str, float | int], doc("Further figures of the engine.")]
    cycles: Annotated[Cycles, doc("Where the clock cycles go.")]
    work: Annotated[WorkSection, doc("What is computed.")]
    traffic: Annotated[ForecastTraffic, doc("Bytes that move.")]
    roofline: Annotated[Roofline, doc("The least cycles the work could take.")]
    rate: Annotated[Rate, doc("What the engine does a second, in the user's unit.")]
    energy: Annotated[EnergySection, doc("Energy of the predicted activity.")]

    def __post_init__(self) -> None:
        figures = {name: asdict(self)[name] for name in ("cycles", "work", "traffic", "roofline")}
        for section, known in completed(figures).items():
            for field, legal in known.items():
                require(field, getattr(getattr(self, section), field), legal, "what the prediction gives")
        seconds = self.cycles.kernel_microseconds / 1e6
        legal = self.rate.items / seconds
        require("items_per_second", self.rate.items_per_second, legal, "items over kernel_microseconds")
        self.energy.check_watts(self.cycles.kernel_microseconds)
        legal = self.energy.energy_total_picojoules / 1e6 / self.rate.items
        require("microjoules_per_item", self.rate.microjoules_per_item, legal, "energy over items")


#: Checks, reads and writes forecasts.
ADAPTER: TypeAdapter[Forecast] = TypeAdapter(Forecast)


def completed(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the figures that follow from others, by section; see `sim.report.report.derived`."""
    cycles = figures["cycles"]["cycles_total"]
    further = derived({**figures, "prediction": {"predicted_cycles": cycles}, "simulation": None})
    return {section: further[section] for section in figures}


def save(forecast: Forecast, path: Path) -> None:
    """Write a forecast as JSON, whole or not at all.

    Raises `InputError` when the path cannot be written.
    """
    write_text(path, json.dumps(ADAPTER.dump_python(forecast, mode="json"), indent=2) + "\n")


def load(path: Path) -> Forecast:
    """Read a forecast.

    Raises `InputError` when the file is missing, is no forecast of this format, or contradicts itself.
    """
    check_readable("prediction file", path)
    try:
        return ADAPTER.validate_json(path.read_bytes())
    except ValidationError as error:
        legal = f"a prediction of format {FORECAST} ({refusal(error)})"
        raise InputError("prediction file", str(path), legal) from error
